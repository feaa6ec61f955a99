import Base
import Counters
import DNSWire

/// Texts that were made lately. Each stands in the one place that its key has.
struct RecentTexts<Key: RecentKey> {
    private var places = [(key: Key, text: [UInt8])?](repeating: nil, count: 128)

    @inline(__always)
    subscript(key: Key) -> [UInt8]? {
        get {
            guard let found = places[place(key)], found.key == key else { return nil }
            return found.text
        }
        set { places[place(key)] = newValue.map { (key, $0) } }
    }

    @inline(__always)
    private func place(_ key: Key) -> Int { Int(truncatingIfNeeded: key.place & 127) }
}

protocol RecentKey: Equatable {
    /// As different as can be for what comes at the same time.
    var place: UInt64 { get }
}

extension WatchText {
    /// Who has asked, and how.
    struct Client: RecentKey {
        let address: IPAddress
        let isStream: Bool

        init(_ frame: WatchFrame) { (address, isStream) = (frame.client, frame.isStream) }

        var place: UInt64 { address.low &* 2 &+ (isStream ? 1 : 0) }
    }

    /// What a line says of the answer, but for its time.
    struct Outcome: RecentKey {
        let kind: WatchFrame.Kind
        let hasName: Bool
        let type: RecordType
        let code: ResponseCode
        /// Group and server.
        private let texts: [UInt8]
        private let groupLength: Int

        @inline(__always)
        init(_ frame: WatchFrame, _ octets: Span<UInt8>) {
            (kind, hasName, type, code) = (frame.kind, !frame.name.isEmpty, frame.type, frame.code)
            groupLength = frame.group.count
            var texts: [UInt8] = []
            if frame.kind == .server {
                texts.append(octets.extracting(frame.group.lowerBound..<frame.server.upperBound))
            }
            self.texts = texts
        }

        var group: String { String(decoding: texts[..<groupLength], as: UTF8.self) }
        var server: String { String(decoding: texts[groupLength...], as: UTF8.self) }

        var place: UInt64 {
            UInt64(type.rawValue) &+ UInt64(kind.rawValue) &* 29 &+ UInt64(code.rawValue) &* 7
                &+ UInt64(texts.last ?? 0)
        }
    }

    /// How long it took.
    struct Took: RecentKey {
        let nanoseconds: UInt64

        var place: UInt64 { nanoseconds / 1000 }
    }
}
