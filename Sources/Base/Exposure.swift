/// How a question went to the servers that answer it: the further down, the more people can read it.
public enum Exposure: UInt8, Comparable, CaseIterable, Sendable {
    /// No server was asked.
    case none
    /// Asked in the clear, of a resolver on this machine. Which way that one asks further is not known here.
    case loopback
    /// Over TLS, or encrypted by an HTTPDNS account.
    case encrypted
    /// Left this machine so that everybody on the path can read it.
    case clear

    /// What people and programs call it, and ask for it by.
    public var word: String {
        switch self {
        case .none: "cache"
        case .loopback: "loopback"
        case .encrypted: "encrypted"
        case .clear: "clear"
        }
    }

    /// The one with a word; nil: there is none.
    public init?(word: String) {
        guard let exposure = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = exposure
    }

    public static func < (a: Exposure, b: Exposure) -> Bool { a.rawValue < b.rawValue }
}
