/// The limits of all clients together, and the share of each.
///
/// | resource | all | one source | one network on a link |
/// | --- | --- | --- | --- |
/// | connections over TCP, TLS or HTTPS | `listen.tcpClients` each | a quarter; this host all | 7 in 8 |
/// | octets kept for the clients of each | `ClientRoom.maximumHeld` | the one with most loses its largest connection; of this host, each connection is one | the same |
/// | TLS handshakes under way | those connections | ``handshakes``; this host all | the same |
/// | questions on their way from listeners | ``submitted`` | 7 of 8 left | 7 of 8 left |
/// | questions looked up | ``flights`` | the newest of the source with most ends for another's | 7 of 8 left; once all are taken, 7 in 8 |
/// | clients that wait | ``clients`` | 7 of 8 left | 7 of 8 left |
/// | clients that wait for one question | ``waiting`` | 7 of 8 left | 7 of 8 left |
/// | clients that wait and are not proven; for one question | the same | ``unproven``; ``unprovenWaiting`` | the same |
/// | messages under way to a server | `concurrency` | 7 of 8 left, while others wait | 7 of 8 left, while others wait |
/// | names that an account is asked for | `queriesPerSecond` | in turn: see ``TokenBucket`` | 7 of 8 in a row |
/// | long replies in a second, not proven | | ``longReplies`` | |
/// | late replies in 10 ms, not proven | | ``lateReplies`` | |
///
/// "7 of 8 left" is ``mayHaveMore(own:all:most:)``. In a network on a link of this machine (a /64) each host is a
/// source: a host that invents addresses there leaves a part for the rest.
public enum Shares {
    /// A handshake takes a hundred times as long as an answer.
    public static let handshakes = 8
    /// Each question takes some 250 octets.
    public static let submitted = 1024
    /// Each flight takes some 1.3 KB.
    static let flights = 1536
    /// Each client takes some 300 octets. The first client of a question is always accepted.
    static let clients = 8192
    static let waiting = 1024
    /// All clients that wait for one question are answered at the same moment, even if their source is forged (DNSBomb,
    /// CVE-2024-33655).
    static let unproven = 1000
    static let unprovenWaiting = 64
    /// Long replies to a forged address amplify the question.
    public static let longReplies: UInt64 = 100
    /// The most replies that can wait, divided by the shortest wait after which a reply counts as late: no reply is
    /// held back while questions come and are answered evenly.
    public static let lateReplies = 100

    /// Whether a source that has `own` of a resource may have one more: its part is at most seven times the rest. So
    /// one source may have seven eighths, and for any number of sources a part is left for the next.
    ///
    /// - Parameters:
    ///   - all: The part of all sources together.
    ///   - most: The whole resource.
    public static func mayHaveMore(own: Int, all: Int, most: Int) -> Bool { own < 7 * (most - all) }

    /// The most that all sources of one network on a link have together.
    public static func ofNetwork(_ most: Int) -> Int { max(1, most - most / 8) }
}

/// The part of each source, and of each network on a link.
public struct SourceCounts<Count: SignedNumeric & Comparable & Sendable>: Sendable {
    private var sources = Counts<Source, Count>()
    private var networks = Counts<UInt64, Count>()
    /// The sum of all sources.
    public private(set) var all: Count = 0

    public init() {}

    /// The number of sources with a part.
    var count: Int { sources.count }
    /// The greatest part of a source or a network.
    var most: Count { max(sources.most, networks.most) }

    public subscript(source: Source) -> Count { sources[source] }
    public subscript(network network: UInt64) -> Count { networks[network] }

    /// - Parameter change: A decrease is limited to the source's part.
    public mutating func add(_ change: Count, to source: Source) {
        all += change
        sources.add(change, to: source)
        if let network = source.network { networks.add(change, to: network) }
    }

    /// The source with the greatest part, of all sources or of a network's. The call walks over all sources.
    func heaviest(of network: UInt64?) -> Source? {
        sources.largest { network == nil || $0.network == network }
    }

    /// Multiplies each part; a part below `least` is then dropped.
    mutating func scale(by factor: Count, least: Count) {
        sources.scale(by: factor, least: least)
        networks.scale(by: factor, least: least)
    }
}

extension SourceCounts<Int> {
    /// Whether a source and its network may have one more element, by ``Shares/mayHaveMore(own:all:most:)``.
    /// - Parameter all: The part of all sources together; nil: ``all``.
    func mayHaveMore(_ source: Source, all: Int? = nil, most: Int) -> Bool {
        let all = all ?? self.all
        return Shares.mayHaveMore(own: self[source], all: all, most: most)
            && (source.network.map { Shares.mayHaveMore(own: self[network: $0], all: all, most: most) } ?? true)
    }
}

extension Array {
    /// After seven elements of one network on a link in a row, moves an element of another network forward, if there is
    /// one; else the order stays.
    func spread(by network: (Element) -> UInt64?) -> [Element] {
        var spread: [Element] = []
        var (held, run): ([Element], (network: UInt64?, count: Int)) = ([], (nil, 0))
        func add(_ element: Element) {
            let network = network(element)
            run = (network, network == run.network ? run.count + 1 : 1)
            spread.append(element)
        }
        for element in self {
            if let network = network(element), network == run.network, run.count >= 7 {
                held.append(element)
                continue
            }
            add(element)
            let next = held.prefix(7)
            for element in next { add(element) }
            held.removeFirst(next.count)
        }
        return spread + held
    }
}

/// The part of each key; an empty part is not recorded. Mostly one key has all, and is found without a hash (some 1,400
/// instructions a query less).
private struct Counts<Key: Hashable & Sendable, Count: SignedNumeric & Comparable & Sendable>: Sendable {
    private var first: (key: Key, count: Count)?
    private var others: [Key: Count] = [:]

    var count: Int { others.count + (first.map { $0.count > 0 } ?? false ? 1 : 0) }
    var most: Count { max(first?.count ?? 0, others.values.max() ?? 0) }

    subscript(key: Key) -> Count {
        if let first, first.key == key { return first.count }
        return others[key] ?? 0
    }

    mutating func add(_ change: Count, to key: Key) {
        if first == nil || first?.count == 0, others[key] == nil { first = (key, 0) }
        if let count = first?.count, first?.key == key {
            first?.count = max(0, count + change)
            return
        }
        let count = (others[key] ?? 0) + change
        others[key] = count > 0 ? count : nil
    }

    func largest(where isMeant: (Key) -> Bool) -> Key? {
        let largest = others.filter { isMeant($0.key) }.max { $0.value < $1.value }
        guard let first, isMeant(first.key), first.count >= largest?.value ?? 0 else { return largest?.key }
        return first.key
    }

    mutating func scale(by factor: Count, least: Count) {
        func scaled(_ count: Count) -> Count? { count * factor < least ? nil : count * factor }
        first = first.flatMap { first in scaled(first.count).map { (first.key, $0) } }
        others = others.compactMapValues(scaled)
    }
}
