/// The observers that could read a question on its way to servers, the most private value first.
public enum Exposure: UInt8, Comparable, CaseIterable, Sendable {
    /// No server was asked.
    case none
    /// The question was sent in the clear to a resolver on this machine. How the resolver forwards it is unknown here.
    case loopback
    /// The question was sent over TLS, or encrypted by an HTTPDNS account.
    case encrypted
    /// The question was sent in the clear to another machine. Any host on the path can read the question.
    case clear

    /// The name for people and programs, also in filters.
    public var word: String {
        switch self {
        case .none: "cache"
        case .loopback: "loopback"
        case .encrypted: "encrypted"
        case .clear: "clear"
        }
    }

    /// The case with this word; nil: no case has the word.
    public init?(word: String) {
        guard let exposure = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = exposure
    }

    public static func < (a: Exposure, b: Exposure) -> Bool { a.rawValue < b.rawValue }
}
