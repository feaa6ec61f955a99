package import Base
package import DNSWire

/// A question that was answered, as a watcher sees it.
package struct Watched: Sendable, Equatable {
    /// When it was answered, in microseconds since 1970.
    package var at: UInt64
    /// From its arrival to its answer, in nanoseconds.
    package var took: UInt64
    package var client: IPAddress
    /// Whether it came over TCP.
    package var isStream: Bool
    /// Nil for a message whose question could not be read; the type means nothing then.
    package var name: Name?
    package var type: RecordType
    package var code: ResponseCode
    package var by: By

    /// Where the answer came from.
    package enum By: Sendable, Equatable {
        case cache, stale, hosts
        /// The daemon itself: names that RFCs reserve, refusals, limits.
        case daemon
        /// The client is told that no server has answered.
        case nobody
        case server(group: String, String)

        /// The word for it in filters and JSON; for a server that of its group.
        package var word: String {
            switch self {
            case .cache: "cache"
            case .stale: "stale"
            case .hosts: "hosts"
            case .daemon: "daemon"
            case .nobody: "nobody"
            case .server(let group, _): group
            }
        }

        /// The words of all answerers that are no server.
        package static var words: [String] { [By.cache, .stale, .hosts, .daemon, .nobody].map(\.word) }
    }

    package init(
        at: UInt64, took: UInt64, client: IPAddress, isStream: Bool, name: Name?, type: RecordType, code: ResponseCode,
        by: By
    ) {
        (self.at, self.took, self.client, self.isStream) = (at, took, client, isStream)
        (self.name, self.type, self.code, self.by) = (name, type, code, by)
    }
}

/// What watchers are sent, octet by octet: frames, each with its length in front, of a daemon and a command of the same
/// version.
package enum WatchFrame: Sendable, Equatable {
    case answered(Watched)
    /// So many questions are not among those before and after.
    case dropped(UInt64)

    /// Length, kind, flags, type, code, time, duration, client, and the lengths of name, group and server.
    static let headLength = 43
    /// The longest frame, in octets.
    static let maximumLength = headLength + 3 * 255

    private static let droppedKind: UInt8 = 6
    private static let serverKind: UInt8 = 5
    private static let isIPv6: UInt8 = 1
    private static let isStream: UInt8 = 2

    private static func kind(_ by: Watched.By) -> UInt8 {
        switch by {
        case .cache: 0
        case .stale: 1
        case .hosts: 2
        case .daemon: 3
        case .nobody: 4
        case .server: serverKind
        }
    }

    /// Appends an answered question.
    /// - Parameters:
    ///   - watched: all but the name.
    ///   - name: in wire form; empty if there is none.
    package static func append(_ watched: borrowing Watched, name: Span<UInt8>, to frames: inout [UInt8]) {
        var (group, server) = ([UInt8](), [UInt8]())
        if case .server(let groupText, let serverText) = watched.by {
            (group, server) = (Array(groupText.utf8.prefix(255)), Array(serverText.utf8.prefix(255)))
        }
        let flags = (watched.client.isIPv4 ? 0 : isIPv6) | (watched.isStream ? isStream : 0)
        append(
            kind(watched.by), flags, watched.type.rawValue, watched.code.rawValue, (watched.at, watched.took),
            watched.client, (UInt8(name.count), UInt8(group.count), UInt8(server.count)), to: &frames)
        frames.append(name)
        if !group.isEmpty { frames.append(contentsOf: group) }
        if !server.isEmpty { frames.append(contentsOf: server) }
    }

    package static func append(dropped count: UInt64, to frames: inout [UInt8]) {
        append(droppedKind, 0, 0, 0, (count, 0), IPAddress(v4: 0), (0, 0, 0), to: &frames)
    }

    private static func append(
        _ kind: UInt8, _ flags: UInt8, _ type: UInt16, _ code: UInt16, _ times: (UInt64, UInt64), _ client: IPAddress,
        _ lengths: (name: UInt8, group: UInt8, server: UInt8), to frames: inout [UInt8]
    ) {
        let length = headLength + Int(lengths.name) + Int(lengths.group) + Int(lengths.server)
        frames.append(addingCapacity: headLength) { out in
            out.append(UInt16(length))
            out.append(kind)
            out.append(flags)
            out.append(type)
            out.append(code)
            out.append(times.0)
            out.append(times.1)
            out.append(client.high)
            out.append(client.low)
            out.append(lengths.name)
            out.append(lengths.group)
            out.append(lengths.server)
        }
    }

    /// The length of the frame at `offset`; nil if it is not all there.
    package static func length(_ frames: Span<UInt8>, at offset: Int) -> Int? {
        guard frames.count - offset >= 2 else { return nil }
        let length = max(headLength, Int(integer(frames, at: offset, octets: 2)))
        return frames.count - offset >= length ? length : nil
    }

    /// When the question of the frame at `offset` was answered.
    package static func time(_ frames: Span<UInt8>, at offset: Int) -> UInt64 {
        integer(frames, at: offset + 8, octets: 8)
    }

    /// - Parameter frame: of the length that it gives itself; nil if it is none.
    package init?(_ frame: Span<UInt8>) {
        func integer(_ offset: Int, _ octets: Int) -> UInt64 { Self.integer(frame, at: offset, octets: octets) }
        guard frame.count >= Self.headLength else { return nil }
        let (name, group, server) = (Int(frame[40]), Int(frame[41]), Int(frame[42]))
        guard frame.count == Self.headLength + name + group + server else { return nil }
        func text(_ start: Int, _ length: Int) -> String {
            String(decoding: (start..<start + length).map { frame[$0] }, as: UTF8.self)
        }
        let by: Watched.By
        switch frame[2] {
        case 0: by = .cache
        case 1: by = .stale
        case 2: by = .hosts
        case 3: by = .daemon
        case 4: by = .nobody
        case Self.serverKind:
            let start = Self.headLength + name
            by = .server(group: text(start, group), text(start + group, server))
        case Self.droppedKind:
            self = .dropped(integer(8, 8))
            return
        default: return nil
        }
        let (high, low) = (integer(24, 8), integer(32, 8))
        self = .answered(
            Watched(
                at: integer(8, 8), took: integer(16, 8),
                client: frame[3] & Self.isIPv6 == 0
                    ? IPAddress(v4: UInt32(truncatingIfNeeded: low)) : IPAddress(v6: high, low),
                isStream: frame[3] & Self.isStream != 0,
                name: name == 0 ? nil : Name(wire: frame, at: Self.headLength, length: name),
                type: RecordType(rawValue: UInt16(integer(4, 2))), code: ResponseCode(rawValue: UInt16(integer(6, 2))),
                by: by))
    }

    private static func integer(_ frames: Span<UInt8>, at offset: Int, octets: Int) -> UInt64 {
        var value: UInt64 = 0
        for index in offset..<offset + octets { value = value << 8 | UInt64(frames[index]) }
        return value
    }
}

extension OutputSpan<UInt8> {
    fileprivate mutating func append(_ value: some FixedWidthInteger) {
        var shift = value.bitWidth
        while shift > 0 {
            shift -= 8
            append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }
}
