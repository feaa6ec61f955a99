import Base
import DNSWire

/// The file format for the addresses of servers: each line a name and its addresses, the latest that worked first.
enum ServerAddressText {
    /// The most octets of a text: far more than ``ServerAddresses/maximumNames`` lines of the longest names.
    static let maximumOctets = 64 * 1024

    private static let heading = "# Addresses at which servers were reached last; written by httpdnsd."

    /// Reads the format of ``write(_:)``. Malformed lines, further lines for a name and lines beyond the limits are
    /// ignored.
    static func parse(_ text: [UInt8]) -> [(name: Name, addresses: [IPAddress])] {
        guard text.count <= maximumOctets else { return [] }
        var servers: [(name: Name, addresses: [IPAddress])] = []
        for line in text.split(separator: UInt8(ascii: "\n")) where servers.count < ServerAddresses.maximumNames {
            let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map {
                String(decoding: $0, as: UTF8.self)
            }
            guard let name = Name(words[0]), name.isHostname, !servers.contains(where: { $0.name == name }),
                let addresses = addresses(words.dropFirst())
            else { continue }
            servers.append((name, addresses))
        }
        return servers
    }

    private static func addresses(_ words: ArraySlice<String>) -> [IPAddress]? {
        let addresses = words.compactMap { IPAddress($0) }.filter { $0.isOfOneMachine && !$0.isIPv6LinkLocal }
        guard addresses.count == words.count, Set(addresses).count == words.count,
            1...ServerAddresses.maximumWorked ~= addresses.count
        else { return nil }
        return addresses
    }

    static func write(_ servers: [(name: Name, addresses: [IPAddress])]) -> [UInt8] {
        let lines = servers.map { "\($0.name) \($0.addresses.map(\.description).joined(separator: " "))\n" }
        return Array("\(heading)\n\(lines.joined())".utf8)
    }
}
