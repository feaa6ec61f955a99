package import Base
package import DNSWire

/// One of the frames that watchers are sent, octets with their length in front: a question that was answered, or how many
/// were dropped. They go from a daemon to a command of the same version, a hundred thousand in a second, so that one is
/// written and read as a few numbers; the texts stay in the octets.
package struct WatchFrame: Sendable, Equatable {
    package enum Kind: UInt8, Sendable {
        /// Who has answered, as ``Watched/By``.
        case cache, stale, hosts, daemon, nobody, server
        /// ``count`` questions are not among those before and after; nothing else means anything then.
        case dropped

        /// The words of those who answer and are no server, in this order, as filters and programs have them.
        package static let words = ["cache", "stale", "hosts", "daemon", "nobody"]

        /// Nil for a server, which is called by its group.
        package var word: String? { Self.words.indices.contains(Int(rawValue)) ? Self.words[Int(rawValue)] : nil }
    }

    package let kind: Kind
    /// Whether the question came over TCP.
    package let isStream: Bool
    package let type: RecordType
    package let code: ResponseCode
    /// When it was answered, in microseconds since 1970.
    package let at: UInt64
    /// From its arrival to its answer, in nanoseconds.
    package let took: UInt64
    package let client: IPAddress
    /// Where the name is, in wire form; empty for a message whose question could not be read.
    package let name: Range<Int>
    /// Where the texts of a server are; empty if no server has answered.
    package let group, server: Range<Int>

    /// How many questions were dropped.
    package var count: UInt64 { at }

    /// Six numbers: length, kind, flags, type and code; time; duration; the two of the client's address; the lengths of the texts.
    static let headLength = 6 * 8
    /// The longest frame, in octets.
    static let maximumLength = headLength + 3 * 255

    /// The length of the frame at `offset`; nil if it is not all there.
    package static func length(_ octets: Span<UInt8>, at offset: Int) -> Int? {
        guard octets.count - offset >= headLength else { return nil }
        let length = max(headLength, Int(eightOctets(octets, at: offset) & 0xFFFF))
        return octets.count - offset >= length ? length : nil
    }

    /// When the question of the frame at `offset` was answered.
    package static func time(_ octets: Span<UInt8>, at offset: Int) -> UInt64 { eightOctets(octets, at: offset + 8) }

    /// - Parameter offset: where ``length(_:at:)`` has found a frame to be all there; nil if it is none.
    package init?(_ octets: Span<UInt8>, at offset: Int) {
        let head = eightOctets(octets, at: offset)
        let lengths = eightOctets(octets, at: offset + 40)
        func length(_ place: Int) -> Int { Int(lengths >> (8 * UInt64(place)) & 0xFF) }
        name = Self.behind(offset + Self.headLength, length(0))
        group = Self.behind(name.upperBound, length(1))
        server = Self.behind(group.upperBound, length(2))
        guard let kind = Kind(rawValue: UInt8(head >> 16 & 0xFF)), server.upperBound - offset == head & 0xFFFF else {
            return nil
        }
        (self.kind, isStream) = (kind, head >> 24 & Self.stream != 0)
        type = RecordType(rawValue: UInt16(truncatingIfNeeded: head >> 32))
        code = ResponseCode(rawValue: UInt16(truncatingIfNeeded: head >> 48))
        (at, took) = (Self.time(octets, at: offset), eightOctets(octets, at: offset + 16))
        let (high, low) = (eightOctets(octets, at: offset + 24), eightOctets(octets, at: offset + 32))
        client =
            head >> 24 & Self.ipv6 == 0
            ? IPAddress(v4: UInt32(truncatingIfNeeded: low)) : IPAddress(v6: high, low)
    }

    private static func behind(_ start: Int, _ count: Int) -> Range<Int> { start..<start + count }

    // MARK: Writing

    private static let ipv6: UInt64 = 1
    private static let stream: UInt64 = 2

    /// Appends an answered question.
    /// - Parameter name: in wire form; empty if there is none.
    package static func append(_ watched: borrowing Watched, name: Span<UInt8>, to octets: inout [UInt8]) {
        let kind: Kind
        switch watched.by {
        case .server(let group, let server):
            let (group, server) = (group.utf8.prefix(255), server.utf8.prefix(255))
            append(.server, watched, (name.count, group.count, server.count), to: &octets)
            octets.append(name)
            octets.append(contentsOf: group)
            octets.append(contentsOf: server)
            return
        case .cache: kind = .cache
        case .stale: kind = .stale
        case .hosts: kind = .hosts
        case .daemon: kind = .daemon
        case .nobody: kind = .nobody
        }
        append(kind, watched, (name.count, 0, 0), to: &octets)
        octets.append(name)
    }

    package static func append(dropped count: UInt64, to octets: inout [UInt8]) {
        octets.append((UInt64(headLength) | UInt64(Kind.dropped.rawValue) << 16, count, 0, 0, 0, 0))
    }

    private static func append(
        _ kind: Kind, _ watched: borrowing Watched, _ lengths: (name: Int, group: Int, server: Int),
        to octets: inout [UInt8]
    ) {
        let length = headLength + lengths.name + lengths.group + lengths.server
        let flags = (watched.client.isIPv4 ? 0 : ipv6) | (watched.isStream ? stream : 0)
        octets.append(
            (
                UInt64(length) | UInt64(kind.rawValue) << 16 | flags << 24 | UInt64(watched.type.rawValue) << 32
                    | UInt64(watched.code.rawValue) << 48,
                watched.at, watched.took, watched.client.high, watched.client.low,
                UInt64(lengths.name) | UInt64(lengths.group) << 8 | UInt64(lengths.server) << 16
            ))
    }
}
