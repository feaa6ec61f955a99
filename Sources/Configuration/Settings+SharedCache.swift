public import Base

extension Settings {
    /// `[sharedCache]`: a store in which a fleet of daemons shares its lookups, sealed with the fleet's key.
    public struct SharedCache: Sendable, Equatable {
        /// The address of the store; nil: no store is configured.
        public var server: StoreServer?
        /// The store's ACL user; empty for the default user.
        public var user = ""
        /// The file with the store's password.
        public var passwordFile = NamedFile()
        /// The file with the fleet's key, ``minimumKeyLength`` octets or more.
        public var keyFile = NamedFile()
        /// The file with the previous key, which still opens answers.
        public var keyFileBefore = NamedFile()
        /// A PEM or DER file, the only one trusted for a store over TLS; none for the system's store.
        public var caFile = NamedFile()

        /// The least length of a fleet's key, in octets: the length of the keys derived from it.
        public static let minimumKeyLength = 32
        /// The least number of different octets in a key. A random key has more, in any encoding.
        static let minimumDifferentOctets = 8

        /// The contents of the files; nil without a file, and after the contents are forgotten.
        public var password: Secret? { passwordFile.contents?.secret }
        public var key: Secret? { keyFile.contents?.secret }
        public var keyBefore: Secret? { keyFileBefore.contents?.secret }
        public var anchors: [UInt8]? { caFile.contents?.bytes }

        /// Forgets the contents of the files; they can still be compared with later contents.
        mutating func forgetFiles() {
            passwordFile.contents?.forget()
            keyFile.contents?.forget()
            keyFileBefore.contents?.forget()
            caFile.contents?.forget()
        }
    }
}

/// The address of the store: Valkey, Redis or another server of their protocol.
public enum StoreServer: Hashable, Sendable {
    /// `redis://ADDRESS[:PORT]`, not encrypted.
    case plain(Endpoint)
    /// `tls://HOST[:PORT]`, with the addresses to dial if HOST is a name.
    case tls(Server)
    /// `unix:/PATH`
    case path(String)

    public static let usualPort: UInt16 = 6379
}

/// The text for the log and the status: without the part after `#`.
extension StoreServer: CustomStringConvertible {
    public var description: String {
        switch self {
        case .plain(let endpoint): "redis://\(endpoint)"
        case .tls(let server): "\(server)"
        case .path(let path): "unix:\(path)"
        }
    }
}

extension StoreServer {
    /// - Throws: What is wrong and what would be right. The message never contains user information.
    init(_ text: String) throws(Problem) {
        guard text.utf8.count <= ServerText.maximumLength, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Problem("a server that is too long, or not printable ASCII", expected: Self.expected)
        }
        if text.hasPrefix("unix:") {
            let path = text.dropFirst("unix:".count)
            guard path.hasPrefix("/"), !path.hasPrefix("//"), path.utf8.count <= Self.maximumPathLength else {
                throw Problem(
                    Given.text(text).shown, expected: "\"unix:/PATH\", at most \(Self.maximumPathLength) octets of path"
                )
            }
            self = .path(String(path))
            return
        }
        guard let separator = text.firstRange(of: "://") else {
            throw Problem(text.contains("@") ? "what it says" : Given.text(text).shown, expected: Self.expected)
        }
        let rest = text[separator.upperBound...]
        switch text[..<separator.lowerBound].lowercased() {
        case "redis": self = .plain(try ServerURL(text, rest, scheme: "redis").redis())
        case "tls": self = .tls(try ServerURL(text, rest, scheme: "tls").store())
        case "rediss", "valkeys":
            throw Problem("another word for TLS is not read; give \"tls://ADDRESS\", or \"tls://ADDRESS#NAME\"")
        case "valkey": throw Problem("\"valkey://\" is not read; give \"redis://ADDRESS\"")
        default: throw Problem("a server of that kind", expected: Self.expected)
        }
    }

    /// The text from which ``init(_:)`` makes this server.
    var text: String {
        switch self {
        case .plain, .path: description
        case .tls(let server): ServerText.text(of: .server(server))
        }
    }

    static let expected = "\"redis://ADDRESS\", \"tls://ADDRESS#NAME\" or \"unix:/PATH\""
    /// The longest path: 107 octets and a terminating zero (unix(7)).
    private static let maximumPathLength = 107
}

extension Kind where Value == StoreServer? {
    static var optionalStore: Kind {
        .string(
            StoreServer.expected + ", or \"\" for none",
            read: { text throws(Problem) in text.isEmpty ? nil : try StoreServer(text) }, show: { $0?.text ?? "" })
    }
}
