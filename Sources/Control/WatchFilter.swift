package import Base
import Counters
package import DNSWire

/// The filter of a watcher. One of several values of the same kind must match, and each kind must match.
package struct WatchFilter: Sendable, Equatable {
    /// Only questions for these names, and for names under them.
    package var names: [Name] = []
    package var types: [RecordType] = []
    package var codes: [ResponseCode] = []
    package var clients: [Network] = []
    /// Only questions with one of these sources: a word of ``Watched/By/words``, or the name of a group.
    package var by: [String] = []
    package var ways: [Exposure] = []
    /// Only questions over one of ``transports``.
    package var over: [String] = []
    /// Only questions that took longer than this, in milliseconds.
    package var slowerThan = 0.0

    /// The transports of questions.
    package static let transports = Tally.Transport.allCases.map(\.rawValue)

    package init() {}

    func holds(_ question: Watched) -> Bool {
        (types.isEmpty || !question.name.isEmpty && types.contains(question.type))
            && (codes.isEmpty || codes.contains(question.code))
            && (slowerThan == 0 || Double(question.took) > slowerThan * 1_000_000)
            && (by.isEmpty || by.contains(question.by.word)) && (ways.isEmpty || ways.contains(question.way))
            && (over.isEmpty || over.contains(question.transport.rawValue))
            && (clients.isEmpty || clients.contains { $0.contains(question.client) })
            && (names.isEmpty || names.contains { $0.contains(question.name.span) })
    }
}

/// The filter as parameters of a request.
extension WatchFilter {
    var parameters: [(String, String)] {
        var pairs = names.map { ("name", "\($0)") } + types.map { ("type", "\($0)") } + codes.map { ("code", "\($0)") }
        pairs += clients.map { ("client", "\($0)") } + by.map { ("by", $0) }
        pairs += ways.map { ("way", $0.word) } + over.map { ("over", $0) }
        if slowerThan > 0 { pairs.append(("slower", "\(slowerThan)")) }
        return pairs
    }

    /// - Returns: Nil if a parameter is invalid.
    init?(_ target: RequestTarget) {
        func values<T>(_ key: String, _ parse: (String) -> T?) -> [T]? {
            let texts = target.values(key)
            let values = texts.compactMap(parse)
            return values.count == texts.count ? values : nil
        }
        guard let names = values("name", { Name($0) }), let types = values("type", RecordType.init(parsing:)),
            let codes = values("code", ResponseCode.init(parsing:)), let clients = values("client", { Network($0) }),
            let ways = values("way", { Exposure(word: $0) }),
            let over = values("over", { Self.transports.contains($0) ? $0 : nil }),
            let slower = values("slower", { Double($0) }), slower.allSatisfy({ $0 >= 0 && $0.isFinite })
        else { return nil }
        (self.names, self.types, self.codes, self.clients) = (names, types, codes, clients)
        (by, self.ways, self.over, slowerThan) = (target.values("by"), ways, over, slower.first ?? 0)
    }
}
