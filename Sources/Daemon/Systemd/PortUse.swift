import Base
import Transport

/// The ports of this network's sockets (proc_pid_net(5)).
enum PortUse {
    private static let limit = 1 << 22

    /// Whether a UDP socket, or a listening TCP socket, has an address and port, by itself or through all addresses.
    static func isTaken(_ endpoint: Endpoint, folder: String = "/proc/net") -> Bool {
        let names = endpoint.address.isIPv4 ? ["udp", "tcp"] : ["udp6", "tcp6"]
        return names.contains { name in
            guard let octets = try? SystemFile.read("\(folder)/\(name)", limit: limit) else { return false }
            return String(decoding: octets, as: UTF8.self).split(separator: "\n").dropFirst().contains { line in
                let fields = line.split(separator: " ")
                // 0A: TCP_LISTEN.
                guard fields.count > 3, !name.hasPrefix("tcp") || fields[3] == "0A" else { return false }
                return isThis(fields[1], endpoint)
            }
        }
    }

    /// - Parameter local: `0100007F:0035`: the address in words of 32 bits, each in this machine's byte order, and the
    ///   port.
    private static func isThis(_ local: Substring, _ endpoint: Endpoint) -> Bool {
        let parts = local.split(separator: ":")
        guard parts.count == 2, UInt16(parts[1], radix: 16) == endpoint.port, parts[0].utf8.count % 8 == 0 else {
            return false
        }
        var (rest, octets) = (parts[0], [UInt8]())
        while !rest.isEmpty {
            guard let word = UInt32(rest.prefix(8), radix: 16) else { return false }
            let ordered = word.littleEndian == word ? word.byteSwapped : word
            octets += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: ordered >> UInt32($0)) }
            rest = rest.dropFirst(8)
        }
        return octets.allSatisfy { $0 == 0 } || IPAddress(bytes: octets.span) == endpoint.address
    }
}
