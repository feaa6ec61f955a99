import Base
import DNSCache
import DNSWire
import Names
import TestSupport
import Testing

@testable import Forwarding

/// Whatever changes, and in whatever order: a client gets no answer that a change has made wrong, and an answer that is
/// still right is not asked for again.
@Suite struct BasisChanceTests {
    /// The way of a question, computed a second time in another way than the policy's.
    private enum Law: Equatable {
        case hosts, nothing
        case asks(GroupID)
    }

    /// An account, the local resolvers, `office` and `private`; the address in each answer shows the group, the network
    /// and the second of the answer.
    private struct World: ~Copyable {
        var upstreams = TestUpstreams()
        var hosts: Set<Name> = []
        var prefix: NAT64Prefix?
        var cache = World.cache()
        var forwarder: Forwarder
        var second: UInt32 = 1000
        var flushed: [Name: UInt32] = [:]
        /// The cache file of a daemon that has ended, until the next one reads it.
        var unread: [UInt8]?
        var asked = 0
        var faults: [String] = []
        /// The last answer by group and name, with its network and second.
        private var said: [IPAddress: (group: GroupID, network: UInt64, second: UInt32, name: Name)] = [:]

        static let names = ["a.example", "b.example", "c.corp.example", "d.corp.example", "nas.lan", "tv.lan"].map {
            Name($0)!
        }
        static func cache() -> DNSCache { DNSCache(bytes: 1 << 20, staleSeconds: 100_000, seed: (1, 2)) }

        init() {
            upstreams.named = [
                NamedGroup(["office", "1", "takes", "corp.example"])!, NamedGroup(["private", "1", "ofNetwork"])!,
            ]
            upstreams.thenTry = []
            forwarder = upstreams.forwarder(cache)
        }

        var now: Tick { Tick(nanoseconds: UInt64(second) * 1_000_000_000) }
        private var moment: DNSCache.Moment { DNSCache.Moment(wall: UInt64(second), tick: second, boot: 1) }
        private var hostsTable: HostsTable {
            HostsTable(parsing: Array(hosts.map { "192.0.2.255 \($0)\n" }.joined().utf8).span)
        }

        func law(_ name: Name) -> Law {
            if hosts.contains(name) { return .hosts }
            if upstreams.bypass.contains(name) { return .asks(.fallback) }
            if name.isWithin(Name("corp.example")!), let office = upstreams.number(of: "office") {
                return .asks(office)
            }
            guard name.isWithin(Name("lan")!) else { return .asks(.httpdns) }
            let group = upstreams.named.first { $0.name == "private" }!
            return group.servers.isEmpty ? .nothing : .asks(group.id)
        }

        mutating func change(_ chance: inout Chance) {
            second += UInt32(chance.below(20))
            let name = Self.names[chance.below(Self.names.count)]
            switch chance.below(9) {
            case 0:
                if hosts.remove(name) == nil { hosts.insert(name) }
                forwarder.change(.hosts(hostsTable), at: now)
            case 1:
                if upstreams.bypass.contains(name) {
                    upstreams.bypass = []
                } else {
                    upstreams.bypass.append(name)
                }
                reload()
            case 2:
                if upstreams.number(of: "office") == nil {
                    upstreams.named.insert(NamedGroup(["office", "1", "takes", "corp.example"])!, at: 0)
                } else {
                    upstreams.named.removeFirst()
                }
                reload()
            case 3:
                upstreams.network = UInt64(chance.below(3))
                forwarder.change(.otherNetwork(upstreams.network), at: now)
            case 4:
                prefix =
                    [nil, NAT64Prefix(Network("64:ff9b::/96")!), NAT64Prefix(Network("2001:db8:64::/96")!)][
                        chance.below(3)]
                forwarder.change(.synthesis(prefix), at: now)
            case 5:
                let count = chance.below(2)
                let at = upstreams.named.count - 1
                upstreams.named[at].servers = .scenario(count, list: 0)
                forwarder.change(.servers(upstreams.named[at].id, upstreams.named[at].servers), at: now)
            case 6:
                let scope: NameScope = chance.below(4) == 0 ? .all : .only(name)
                for name in Self.names where scope.contains(name) { flushed[name] = second }
                _ = forwarder.forget(scope, at: now)
            case 7 where unread == nil:
                var bytes: [UInt8] = []
                cache.writeSnapshot(at: moment) { bytes += $0 }
                unread = bytes
                cache = Self.cache()
                forwarder = upstreams.forwarder(cache, Timing(), hostsTable)
                forwarder.change(.synthesis(prefix), at: now)
            default:
                guard let bytes = unread else { return }
                unread = nil
                _ = cache.restoreSnapshot(length: bytes.count, at: moment) { Array(bytes[$0]) }
            }
        }

        private mutating func reload() {
            forwarder.change(
                .settings(upstreams.policy(30, hostsTable), Timing(), upstreams.groups, renewed: []), at: now)
        }

        /// Asks as a client, first the cache, and answers the queries, in some cases after a further change.
        mutating func ask(_ chance: inout Chance) {
            second += UInt32(chance.below(3))
            let name = Self.names[chance.below(Self.names.count)]
            let type: RecordType = chance.below(2) == 0 ? .a : .aaaa
            if let held = cache.find(name, type: type, for: .plain, at: second), held.isFresh {
                return judge(name, type, held.answer, isNew: false)
            }
            forwarder.receive(name, type, for: .plain, from: 1, at: now)
            var answers = carryOut(changing: &chance)
            if answers.isEmpty { answers = carryOut(changing: &chance) }
            guard let answer = answers.first else {
                faults.append("\(second): \(name) gets nothing")
                return
            }
            if answer.isNew { return }
            judge(name, type, answer.answer, isNew: false)
        }

        /// - Returns: The answers of clients, and whether a server has just given each one.
        private mutating func carryOut(changing chance: inout Chance) -> [(answer: Answer, isNew: Bool)] {
            var given: [(answer: Answer, isNew: Bool)] = []
            forwarder.endTurn(at: now)
            var actions = forwarder.takeActions()[...]
            while let action = actions.popFirst() {
                switch action {
                case .reply(_, let answer, _, by: let answerer, way: _):
                    var isNew = false
                    if case .server = answerer { isNew = true }
                    given.append((answer, isNew))
                case .ask(let id, _, let ask):
                    asked += 1
                    let network = upstreams.network
                    if chance.below(5) == 0 {
                        let isRestart = unread == nil
                        change(&chance)
                        // The question ended with the daemon.
                        if isRestart, unread != nil {
                            return [(.failure(.root, type: .a, .servFail, extendedError: nil), true)]
                        }
                    }
                    forwarder.settle(id, answer(to: ask, of: id.group, network), at: now)
                    forwarder.endTurn(at: now)
                    actions += forwarder.takeActions()
                default: break
                }
            }
            return given
        }

        private mutating func answer(to ask: Ask, of group: GroupID, _ network: UInt64) -> Outcome {
            let number = UInt32(said.count + 1)
            let address = IPAddress(v4: 0x0102_0000 + number)
            switch ask {
            case .addresses(let names, _):
                said[address] = (group, network, second, names[0])
                let family = FamilyAddresses.addresses([address], ttl: 10_000)
                return .addresses([NameAddresses(name: names[0], ipv4: family, ipv6: .noRecord)], [])
            case .message(let question):
                said[address] = (group, network, second, question.name)
                return .answer(
                    question.type == .a
                        ? .addresses(question.name, type: .a, [address], ttl: 10_000)
                        : .noData(question.name, type: question.type, negativeTTL: 10_000))
            }
        }

        private mutating func judge(_ name: Name, _ type: RecordType, _ answer: Answer, isNew: Bool) {
            func fault(_ what: String) { faults.append("\(second): \(name) \(type): \(what)") }
            let law = law(name)
            guard let address = answer.addresses.first else {
                if type == .aaaa, prefix != nil, case .asks(.httpdns) = law { fault("no address under the prefix") }
                if type == .a, law == .hosts { fault("not that of the hosts file") }
                return
            }
            if law == .hosts { return address == .v4(192, 0, 2, 255) ? () : fault("not that of the hosts file") }
            guard law != .nothing else { return fault("a private name without a resolver") }
            var own = address
            if type == .aaaa {
                guard let inside = prefix?.ipv4(in: address) else { return fault("\(address) is under another prefix") }
                own = inside
            }
            guard let source = said[own], source.name == name else { return fault("no server has said \(own)") }
            if law != .asks(source.group) { fault("\(source.group) has said it, and \(law)") }
            let isOfNetwork = source.group == .fallback || source.group == upstreams.number(of: "private")
            if isOfNetwork, source.network != upstreams.network { fault("of network \(source.network)") }
            if let flushed = flushed[name], source.second < flushed { fault("it was flushed at \(flushed)") }
        }
    }

    @Test(arguments: UInt64(0)..<40) func everyAnswerObeysTheLastChange(seed: UInt64) {
        var world = World()
        var chance = Chance(seed: seed)
        for _ in 0..<1500 where world.faults.isEmpty {
            if chance.below(4) == 0 { world.change(&chance) } else { world.ask(&chance) }
        }
        #expect(world.faults == [], "seed \(seed)")
        #expect(world.asked > 20)
    }

    /// More entries and names than any limit of an earlier version.
    @Test func aListThatIsReplacedCostsTheNamesThatItDecidesAlone() throws {
        let cache = DNSCache(bytes: 32 << 20, seed: (1, 2))
        func name(_ number: Int) -> Name { Name("n\(number).example")! }
        func policy(_ listed: Range<Int>) throws -> Policy {
            let list = DomainList(listed.lazy.map { .subtree(name($0)) })
            let rules = try DomainRules([(list, .group(.fallback))])
            let base = TestUpstreams()
            return Policy(
                groups: base.groups, routes: [.httpdns: [Step(.httpdns)], .fallback: [Step(.fallback)]], rules: rules,
                otherwise: .httpdns, negativeTTL: 30)
        }
        let (count, length) = (60_000, 10_000)
        let groups = TestUpstreams().groups
        var forwarder = Forwarder(policy: try policy(0..<length), timing: Timing(), groups: groups, cache: cache)
        for number in 0..<count {
            let name = name(number)
            cache.store(
                .addresses(name, type: .a, [.v4(192, 0, 2, 1)], ttl: 600), to: name, type: .a, for: .everyone, at: 0)
        }
        #expect(cache.statistics.entries == count)
        forwarder.change(
            .settings(try policy(20..<length + 20), Timing(), groups, renewed: []), at: Tick(nanoseconds: 0))
        let missing = (0..<count).filter { cache.find(name($0), type: .a, for: .everyone, at: 1) == nil }
        #expect(missing == Array(0..<20) + Array(length..<length + 20))
        #expect(cache.statistics.entries == count - 40)
        // And the hosts file, with more names than were ever searched one by one.
        let hosts = HostsTable(parsing: Array((100..<200).map { "192.0.2.9 n\($0).example\n" }.joined().utf8).span)
        forwarder.change(.hosts(hosts), at: Tick(nanoseconds: 0))
        let gone = (50..<count).filter { cache.find(name($0), type: .a, for: .everyone, at: 1) == nil }
        #expect(gone == Array(100..<200) + Array(length..<length + 20))
    }
}
