/// An address and a port, written `1.2.3.4:53` or `[::1]:53` (RFC 3986 §3.2.2, RFC 5952 §6).
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    public var address: IPAddress
    public var port: UInt16

    public init(_ address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// An endpoint from text; nil if it is anything else.
    ///
    /// - Parameter defaultPort: The port of a text that names none, which may then also be an IPv6 address without
    ///   brackets. Nil: the text must name its port.
    public init?(_ text: some StringProtocol, defaultPort: UInt16? = nil) {
        if let defaultPort, let address = IPAddress(text) {
            self.init(address, port: defaultPort)
            return
        }
        let inBrackets = text.utf8.first == UInt8(ascii: "[")
        guard let end = inBrackets ? text.firstIndex(of: "]") : text.firstIndex(of: ":") ?? text.endIndex else {
            return nil
        }
        let rest = inBrackets ? text[end...].dropFirst() : text[end...]
        guard let address = IPAddress(inBrackets ? text[..<end].dropFirst() : text[..<end]),
            address.isIPv4 != inBrackets
        else { return nil }
        if rest.isEmpty, let defaultPort {
            self.init(address, port: defaultPort)
        } else if let port = Endpoint.port(rest) {
            self.init(address, port: port)
        } else {
            return nil
        }
    }

    public var description: String {
        address.isIPv4 ? "\(address):\(port)" : "[\(address)]:\(port)"
    }

    /// Reads `:53`.
    private static func port(_ text: some StringProtocol) -> UInt16? {
        guard text.utf8.first == UInt8(ascii: ":") else { return nil }
        let digits = Array(text.utf8.dropFirst().prefix(6))
        var index = 0
        guard let port = decimal(digits.span, at: &index, maximum: Int(UInt16.max)), index == digits.count else {
            return nil
        }
        return UInt16(port)
    }
}
