import Base
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

/// What the cache keeps when the hosts file changes.
@Suite struct HostsChangeTests {
    private static func hosts(_ lines: [String]) -> HostsTable {
        HostsTable(parsing: Array(lines.map { $0 + "\n" }.joined().utf8).span)
    }

    private static func name(_ number: Int) -> Name { Name("h\(number).example")! }

    /// The numbers of the names that the cache still knows after a change from one file to another.
    private static func kept(_ names: Range<Int>, from old: [String], to new: [String]) -> [Int] {
        let cache = DNSCache(bytes: 1 << 20, seed: (1, 2))
        let policy = Policy(
            groups: [], routes: [:], rules: DomainRules(), otherwise: .fallback, negativeTTL: 30, hosts: hosts(old))
        var forwarder = Forwarder(policy: policy, timing: Timing(), groups: [], cache: cache)
        for number in names {
            cache.store(
                .addresses(name(number), type: .a, [.v4(192, 0, 2, 1)], ttl: 600), to: name(number), type: .a,
                for: .everyone, at: 0)
        }
        forwarder.change(.hosts(hosts(new)), at: Tick(nanoseconds: 0))
        return names.filter { cache.find(name($0), type: .a, for: .everyone, at: 0) != nil }
    }

    private static let blockList = (0..<1000).map { "0.0.0.0 ad\($0).example" }

    @Test func ofALongFileOnlyWhatHasChangedIsForgotten() {
        let new = Self.blockList + ["192.0.2.9 h1.example h2.example"]
        #expect(Self.kept(0..<4, from: Self.blockList, to: new) == [0, 3])
        #expect(Self.kept(0..<4, from: new, to: Self.blockList) == [0, 3])
        // Another address.
        #expect(Self.kept(0..<4, from: new, to: Self.blockList + ["192.0.2.8 h2.example"]) == [0, 3])
        #expect(Self.kept(0..<4, from: new, to: new.reversed()) == [0, 1, 2, 3])
    }

    @Test func andOfManyChangesToo() {
        let new = (0..<100).map { "0.0.0.0 h\(2 * $0).example" }
        #expect(Self.kept(0..<200, from: [], to: new) == (0..<100).map { 2 * $0 + 1 })
    }
}
