extension Settings {
    /// The TLS verification of the HTTPS service (`[tls]`), or of the encrypted servers of a group.
    public struct TLS: Sendable, Equatable {
        /// The name that the certificate must have; empty: the dialled address. In a group, each server's text gives
        /// the name.
        public var serverName = ""
        /// Path of a PEM or DER file; empty: the system's store.
        public var caFile = ""
        /// The contents of `caFile`; nil without one.
        public var anchors: [UInt8]? {
            get { caContents?.bytes }
            set { caContents = newValue.map { FileContents($0) } }
        }
        /// With `caFile`: only that file is trusted.
        public var caOnly = true
        /// SHA-256 digests of SubjectPublicKeyInfos, 32 bytes each, one of which must be in the verified chain; empty:
        /// any verified chain is accepted.
        public var pins: [[UInt8]] = []
        /// False, only with `caFile` and `caOnly`: the certificate may be for any name.
        public var validateDomain = true
        /// Path of a PKCS #12 file for mutual TLS; empty: none.
        public var clientCertificate = ""
        /// The contents of `clientCertificate`, which hold a private key; nil without one.
        public var clientCertificateBytes: [UInt8]? {
            get { clientKey?.bytes }
            set { clientKey = newValue.map { FileContents($0) } }
        }
        /// Path of the file that holds the password of `clientCertificate`; empty: it has none.
        public var clientCertificatePasswordFile = ""
        /// The contents of that file; nil without one, or without `clientCertificate`.
        public var clientCertificatePassword: Secret? {
            get { password?.secret }
            set { password = newValue.map { FileContents($0.bytes) } }
        }
        public var whenClockUnset = WhenClockUnset.accept
        private(set) var caContents: FileContents?
        private(set) var clientKey: FileContents?
        private(set) var password: FileContents?

        /// The treatment of certificates while the clock is earlier than the release of this version.
        public enum WhenClockUnset: String, Sendable, CaseIterable {
            /// Everything but their dates is checked.
            case accept
            /// They are refused as not yet valid.
            case refuse
        }

        /// Forgets the contents of the files; they can still be compared with later contents.
        public mutating func forgetFiles() {
            caContents?.forget()
            clientKey?.forget()
            password?.forget()
        }
    }

    /// Forgets the contents of the files with secrets and authorities; they can still be compared with later contents.
    public mutating func forgetFiles() {
        changeGroups { $0.tls.forgetFiles() }
        listen.forgetFiles()
        sharedCache.forgetFiles()
    }
}
