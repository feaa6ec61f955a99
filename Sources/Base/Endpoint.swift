/// An address and a port, written `1.2.3.4:53` or `[::1]:53` (RFC 3986 §3.2.2, RFC 5952 §6); a link-local address may
/// have its zone, `[fe80::1%eth0]:53`.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    public var address: IPAddress
    public var port: UInt16
    /// The link of a link-local IPv6 address; nil for any other address.
    public var zone: Zone?

    public init(_ address: IPAddress, port: UInt16, zone: Zone? = nil) {
        self.address = address
        self.port = port
        self.zone = zone
    }

    /// The endpoint at an address from text.
    ///
    /// - Parameter allowsZone: The text of a link-local address may name its zone.
    public init?(address text: some StringProtocol, port: UInt16, allowsZone: Bool) {
        let end = allowsZone ? text.firstIndex(of: "%") ?? text.endIndex : text.endIndex
        guard let address = IPAddress(text[..<end]) else { return nil }
        self.init(address, port: port)
        guard end != text.endIndex else { return }
        guard address.isIPv6LinkLocal, let zone = Zone(text[end...].dropFirst()) else { return nil }
        self.zone = zone
    }

    /// An endpoint from text; nil: the text is not an endpoint.
    ///
    /// - Parameters:
    ///   - defaultPort: The port if the text has none. A text without a port may be an IPv6 address without brackets.
    ///     If `defaultPort` is nil, the text must have a port.
    ///   - allowsZone: A link-local address may have its zone.
    public init?(_ text: some StringProtocol, defaultPort: UInt16? = nil, allowsZone: Bool = false) {
        if let defaultPort, let endpoint = Endpoint(address: text, port: defaultPort, allowsZone: allowsZone) {
            self = endpoint
            return
        }
        let inBrackets = text.utf8.first == UInt8(ascii: "[")
        guard let end = inBrackets ? text.firstIndex(of: "]") : text.firstIndex(of: ":") ?? text.endIndex else {
            return nil
        }
        let rest = inBrackets ? text[end...].dropFirst() : text[end...]
        guard let port = rest.isEmpty ? defaultPort : Endpoint.port(rest) else { return nil }
        self.init(address: inBrackets ? text[..<end].dropFirst() : text[..<end], port: port, allowsZone: allowsZone)
        guard address.isIPv4 != inBrackets else { return nil }
    }

    /// The endpoint with the IPv4 address of an IPv4-mapped address, on which no socket can listen; any other endpoint
    /// unchanged.
    public var unmapped: Endpoint { Endpoint(address.unmapped, port: port, zone: zone) }

    public var description: String { "\(host):\(port)" }

    /// The text without the port.
    var host: String {
        let zone = zone.map { "%\($0)" } ?? ""
        return address.isIPv4 ? "\(address)" : "[\(address)\(zone)]"
    }

    /// The port of a text like `:53`.
    private static func port(_ text: some StringProtocol) -> UInt16? {
        guard text.utf8.first == UInt8(ascii: ":") else { return nil }
        let digits = Array(text.utf8.dropFirst())
        return decimal(digits.span, digits.indices, atMost: Int(UInt16.max)).map { UInt16($0) }
    }
}
