extension Settings {
    /// The TLS verification of the HTTPS service (`[tls]`), or of the encrypted servers of a group.
    public struct TLS: Sendable, Equatable {
        /// The name that the certificate must have; empty: the dialled address. In a group, each server's text gives
        /// the name.
        public var serverName = ""
        /// Path of a PEM or DER file with the trusted certificates; empty for the system's store.
        public var caFile = ""
        /// The contents of `caFile`; nil without a `caFile`.
        public var anchors: [UInt8]? { caContents?.bytes }
        /// If there is a `caFile`, whether only its certificates are trusted.
        public var caOnly = true
        /// SHA-256 digests of SubjectPublicKeyInfos, 32 bytes each, one of which must be in the verified chain; empty:
        /// any verified chain is accepted.
        public var pins: [[UInt8]] = []
        /// Whether the certificate must have the name. False is possible only with `caFile` and `caOnly`.
        public var validateDomain = true
        /// Path of a PKCS #12 file for mutual TLS; empty for none.
        public var clientCertificate = ""
        /// The contents of `clientCertificate`, which hold a private key; nil without a `clientCertificate`.
        public var clientCertificateBytes: [UInt8]? { clientKey?.bytes }
        /// Path of the file that holds the password of `clientCertificate`; empty: the certificate has no password.
        public var clientCertificatePasswordFile = ""
        /// The contents of that file; nil without such a file, or without `clientCertificate`.
        public var clientCertificatePassword: Secret? { password?.secret }
        public var whenClockUnset = WhenClockUnset.accept
        var caContents: FileContents?
        var clientKey: FileContents?
        var password: FileContents?

        /// The treatment of certificates while the clock is earlier than the release of this version.
        public enum WhenClockUnset: String, Sendable, CaseIterable {
            /// Certificates are checked except for their dates.
            case accept
            /// Certificates are refused as not yet valid.
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
