package import Base
import Counters
package import DNSWire

/// Which questions a watcher wants to see. Of several values of one kind any may hold; of several kinds all must.
package struct WatchFilter: Sendable, Equatable {
    /// These names, and names under them.
    package var names: [Name] = []
    package var types: [RecordType] = []
    package var codes: [ResponseCode] = []
    package var clients: [Network] = []
    /// Only questions with one of these answerers: a word of ``WatchFrame/Kind/word``, or the name of a group.
    package var by: [String] = []
    /// Only questions that took longer than this, in milliseconds.
    package var slowerThan = 0.0

    package init() {}

    /// - Parameter octets: in which the frame is.
    func holds(_ frame: WatchFrame, of octets: Span<UInt8>) -> Bool {
        (types.isEmpty || !frame.name.isEmpty && types.contains(frame.type))
            && (codes.isEmpty || codes.contains(frame.code))
            && (slowerThan == 0 || Double(frame.took) > slowerThan * 1_000_000)
            && (by.isEmpty || by.contains { Self.isBy($0, frame, octets) })
            && (clients.isEmpty || clients.contains { $0.contains(frame.client) })
            && (names.isEmpty || names.contains { $0.contains(octets.extracting(frame.name)) })
    }

    private static func isBy(_ word: String, _ frame: WatchFrame, _ octets: Span<UInt8>) -> Bool {
        if let own = frame.kind.word { return word == own }
        return word.utf8.count == frame.group.count
            && zip(word.utf8, frame.group).allSatisfy { $0 == octets[$1] }
    }

    /// Whether it holds for each question.
    var isEmpty: Bool { self == WatchFilter() }
}

/// As the parameters of a request.
extension WatchFilter {
    var query: String {
        var pairs = names.map { ("name", "\($0)") } + types.map { ("type", "\($0)") } + codes.map { ("code", "\($0)") }
        pairs += clients.map { ("client", "\($0)") } + by.map { ("by", $0) }
        if slowerThan > 0 { pairs.append(("slower", "\(slowerThan)")) }
        return pairs.map { "\($0.0)=\(RequestTarget.encoded($0.1))" }.joined(separator: "&")
    }

    /// - Returns: nil if a parameter cannot be read.
    init?(_ target: RequestTarget) {
        func values<T>(_ key: String, _ parse: (String) -> T?) -> [T]? {
            let texts = target.values(key)
            let values = texts.compactMap(parse)
            return values.count == texts.count ? values : nil
        }
        guard let names = values("name", { Name($0) }), let types = values("type", RecordType.init(parsing:)),
            let codes = values("code", ResponseCode.init(parsing:)), let clients = values("client", { Network($0) }),
            let slower = values("slower", { Double($0) }), slower.allSatisfy({ $0 >= 0 && $0.isFinite })
        else { return nil }
        (self.names, self.types, self.codes, self.clients) = (names, types, codes, clients)
        (by, slowerThan) = (target.values("by"), slower.first ?? 0)
    }
}
