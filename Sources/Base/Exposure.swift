/// How a question went to the servers that answer it: the further down, the more people can read it.
public enum Exposure: UInt8, Comparable, Sendable {
    /// No server was asked.
    case none
    /// Asked in the clear, of a resolver on this machine. Which way that one asks further is not known here.
    case loopback
    /// Over TLS, or encrypted by an HTTPDNS account.
    case encrypted
    /// Left this machine so that everybody on the path can read it.
    case clear

    public static func < (a: Exposure, b: Exposure) -> Bool { a.rawValue < b.rawValue }
}
