import Base
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

/// The cache entries that stay when the hosts file changes.
@Suite struct HostsChangeTests {
    private static func hosts(_ lines: [String]) -> HostsTable {
        HostsTable(parsing: Array(lines.map { $0 + "\n" }.joined().utf8).span)
    }

    private static func change(_ forwarder: inout Forwarder, to lines: [String], at now: Tick) {
        forwarder.change(.hosts(hosts(lines)), at: now)
    }

    private static func name(_ number: Int) -> Name { Name("h\(number).example")! }

    /// The numbers of the names that the cache still knows after a change from one file to another.
    private static func kept(_ names: Range<Int>, from old: [String], to new: [String]) -> [Int] {
        let cache = DNSCache(bytes: 1 << 20, seed: (1, 2))
        var forwarder = TestUpstreams().forwarder(cache, Timing(), hosts(old))
        for number in names {
            cache.store(
                .addresses(name(number), type: .a, [.v4(192, 0, 2, 1)], ttl: 600), to: name(number), type: .a,
                for: .everyone, at: 0)
        }
        change(&forwarder, to: new, at: Tick(nanoseconds: 0))
        return names.filter { cache.find(name($0), type: .a, for: .everyone, at: 0) != nil }
    }

    private static let blockList = (0..<1000).map { "0.0.0.0 ad\($0).example" }

    @Test func ofALongFileOnlyWhatHasChangedIsForgotten() {
        let new = Self.blockList + ["192.0.2.9 h1.example h2.example"]
        #expect(Self.kept(0..<4, from: Self.blockList, to: new) == [0, 3])
        #expect(Self.kept(0..<4, from: new, to: new.reversed()) == [0, 3])
    }

    @Test func andOfManyChangesToo() {
        let new = (0..<100).map { "0.0.0.0 h\(2 * $0).example" }
        #expect(Self.kept(0..<200, from: [], to: new) == (0..<100).map { 2 * $0 + 1 })
    }

    /// A file is often changed because a name is slow or wrong just then, so that a lookup is nearly always under way.
    @Test(arguments: [true, false], ["hosts", "flush", "flush of all"])
    func whatIsUnderWayIsGivenAndNotCached(hasService: Bool, change: String) throws {
        let cache = DNSCache(bytes: 1 << 20, staleSeconds: 3600, seed: (1, 2))
        var upstreams = TestUpstreams()
        upstreams.hasService = hasService
        var forwarder = upstreams.forwarder(cache)
        let (name, now) = (Self.name(1), Tick(nanoseconds: 1_000_000_000_000))
        /// Begins a lookup, and returns the ID of its query.
        func ask(_ forwarder: inout Forwarder, client: Int) throws -> QueryID {
            forwarder.receive(name, .a, for: .plain, from: client, at: now)
            forwarder.endTurn(at: now)
            let asked = forwarder.takeActions().compactMap { if case .ask(let id, _, _) = $0 { id } else { nil } }
            return try #require(asked.first)
        }
        /// Answers it, and returns the clients that get the answer.
        func settle(_ forwarder: inout Forwarder, _ id: QueryID) -> [Int] {
            let addresses = FamilyAddresses.addresses([.v4(192, 0, 2, 1)], ttl: 600)
            forwarder.settle(
                id,
                hasService
                    ? .addresses([NameAddresses(name: name, ipv4: addresses, ipv6: .noRecord)])
                    : .answer(.addresses(name, type: .a, [.v4(192, 0, 2, 1)], ttl: 600)), at: now)
            return forwarder.takeActions().flatMap { (action: Action) -> [Int] in
                if case .reply(let all, _, _, by: _, way: _) = action { Array(all) } else { [] }
            }
        }
        func isCached() -> Bool { cache.find(name, type: .a, for: .plain, at: now.seconds) != nil }
        let id = try ask(&forwarder, client: 1)
        switch change {
        case "hosts": Self.change(&forwarder, to: ["192.0.2.9 h1.example"], at: now)
        case "flush": _ = forwarder.forget(.only(name), at: now)
        default: _ = forwarder.forget(.all, at: now)
        }
        #expect(settle(&forwarder, id) == [1])
        #expect(!isCached())
        // The next question is answered anew.
        if change == "hosts" { return }
        let next = try ask(&forwarder, client: 2)
        #expect(settle(&forwarder, next) == [2])
        #expect(isCached())
        #expect(forwarder.flightsUnderWay == 0)
    }
}
