extension Settings {
    /// How servers are verified that are asked over TLS: the HTTPS service (`[tls]`), or those of a group.
    public struct TLS: Sendable, Equatable {
        /// The name the certificate must have; empty: the address dialled. In a group each server says that itself.
        public var serverName = ""
        /// Path of a PEM or DER file; empty: the system's store.
        public var caFile = ""
        /// What `caFile` holds; nil without one.
        public var anchors: [UInt8]? {
            get { caContents?.bytes }
            set { caContents = newValue.map { FileContents($0) } }
        }
        /// With `caFile`: trust that file alone.
        public var caOnly = true
        /// SHA-256 digests of SubjectPublicKeyInfos, 32 bytes each, of which the verified chain must have one; empty:
        /// any chain that verifies will do.
        public var pins: [[UInt8]] = []
        /// False, with `caFile` and `caOnly` alone: the certificate may be for any name.
        public var validateDomain = true
        /// Path of a PKCS #12 file for mutual TLS; empty: none.
        public var clientCertificate = ""
        /// What `clientCertificate` holds, a private key; nil without one.
        public var clientCertificateBytes: [UInt8]? {
            get { clientKey?.bytes }
            set { clientKey = newValue.map { FileContents($0) } }
        }
        /// Path of the file that holds the password of `clientCertificate`; empty: it has none.
        public var clientCertificatePasswordFile = ""
        /// What that file holds; nil without one, or without `clientCertificate`.
        public var clientCertificatePassword: Secret? {
            get { password?.secret }
            set { password = newValue.map { FileContents($0.bytes) } }
        }
        public var whenClockUnset = WhenClockUnset.accept
        private(set) var caContents: FileContents?
        private(set) var clientKey: FileContents?
        private(set) var password: FileContents?

        /// What becomes of certificates while the clock stands before this build was made.
        public enum WhenClockUnset: String, Sendable, CaseIterable {
            /// They are judged by all but their dates.
            case accept
            /// They are not valid yet.
            case refuse
        }

        /// What the files held is forgotten, but whether they hold the same when they are read again.
        public mutating func forgetFiles() {
            caContents?.forget()
            clientKey?.forget()
            password?.forget()
        }
    }

    /// What the files of secrets and authorities held is forgotten, but whether they hold the same when they are read
    /// again.
    public mutating func forgetFiles() {
        tls.forgetFiles()
        fallback.group.tls.forgetFiles()
        for index in upstreams.indices { upstreams[index].tls.forgetFiles() }
    }
}
