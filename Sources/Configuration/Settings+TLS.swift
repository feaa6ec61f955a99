public import Base

extension Settings {
    /// The TLS verification of the HTTPS service (`[tls]`), or of the encrypted servers of a group.
    public struct TLS: Sendable, Equatable {
        /// The name that the certificate must have; empty: the dialled address. In a group, each server's text gives
        /// the name.
        public var serverName = ""
        /// A PEM or DER file with the trusted certificates; none for the system's store.
        public var caFile = NamedFile()
        /// The contents of `caFile`; nil without a `caFile`.
        public var anchors: [UInt8]? { caFile.contents?.bytes }
        /// If there is a `caFile`, whether only its certificates are trusted.
        public var caOnly = true
        /// SHA-256 digests of SubjectPublicKeyInfos, 32 bytes each, one of which must be in the verified chain; empty:
        /// any verified chain is accepted.
        public var pins: [[UInt8]] = []
        /// Whether the certificate must have the name. False is possible only with `caFile` and `caOnly`.
        public var validateDomain = true
        /// A PKCS #12 file for mutual TLS.
        public var clientCertificate = NamedFile()
        /// The contents of `clientCertificate`, which hold a private key; nil without a `clientCertificate`.
        public var clientCertificateBytes: [UInt8]? { clientCertificate.contents?.bytes }
        /// The file that holds the password of `clientCertificate`; none: the certificate has no password.
        public var clientCertificatePasswordFile = NamedFile()
        /// The contents of that file; nil without such a file, or without `clientCertificate`.
        public var clientCertificatePassword: Secret? { clientCertificatePasswordFile.contents?.secret }
        public var whenClockUnset = WhenClockUnset.accept

        /// The treatment of certificates while the clock is earlier than the release of this version.
        public enum WhenClockUnset: String, Sendable, CaseIterable {
            /// Certificates are checked except for their dates.
            case accept
            /// Certificates are refused as not yet valid.
            case refuse
        }

        /// Forgets the contents of the files; they can still be compared with later contents.
        public mutating func forgetFiles() {
            caFile.contents?.forget()
            clientCertificate.contents?.forget()
            clientCertificatePasswordFile.contents?.forget()
        }
    }

    /// Forgets the contents of the files with secrets and authorities; they can still be compared with later contents.
    public mutating func forgetFiles() {
        changeGroups { $0.tls.forgetFiles() }
        listen.forgetFiles()
        sharedCache.forgetFiles()
    }
}
