import Base
import DNSCache
import DNSWire
import TestSupport
import Testing

@testable import Forwarding

/// No source can take all of a shared limit.
@Suite struct SourcesTests {
    @Test func whatIsOneSource() {
        func source(_ text: String) -> Source { Source(IPAddress(text)!) }
        #expect(source("127.0.0.1") == .host && source("127.9.9.9") == .host && source("::1") == .host)
        #expect(source("::ffff:127.0.0.1") == .host)
        #expect(source("192.0.2.1") == source("::ffff:192.0.2.1"))
        #expect(source("192.0.2.1") != source("192.0.2.2"))
        #expect(
            source("2001:db8::1") == source("2001:db8::ffff:1") && source("2001:db8::1") != source("2001:db8:0:1::1"))
        #expect(source("2001:db8::1").network == nil && source("192.0.2.1").network == nil)
        // An IPv6 network whose bits are an IPv4 address's.
        #expect(source("192.0.2.1") != Source(IPAddress(v6: 0xC000_0201, 1)))
        #expect(Source.daemon != .host)
    }

    /// Each address is a source in networks on links of this machine, and in networks that the Internet does not reach.
    @Test(arguments: [
        ("2001:db8:1::1", "2001:db8:1::2", true), ("2001:db8:2::1", "2001:db8:2::2", true),
        ("2001:db8:2:ff::1", "2001:db8:2:ff::2", true), ("2001:db8:3::1", "2001:db8:3::2", false),
        ("2001:db8:4::11", "2001:db8:4::12", true), ("2001:db8:4::1:1", "2001:db8:4::1:2", false),
        ("fe80::1", "fe80::2", true), ("febf::1", "febf::2", true), ("fec0::1", "fec0::2", false),
        ("fd00:1::1", "fd00:1::2", true), ("fc00::1", "fc00::2", true), ("fe00::1", "fe00::2", false),
    ])
    func whereAnAddressIsASourceOfItsOwn(first: String, second: String, isWhole: Bool) {
        let links = Links(["2001:db8:1::/64", "2001:db8:2::/48", "2001:db8:4::/112"].map { Network($0)! })
        let (one, other) = (links.source(of: IPAddress(first)!), links.source(of: IPAddress(second)!))
        #expect((one != other) == isWhole)
        #expect((one.network != nil) == isWhole && one.network == other.network)
    }

    /// All addresses of a link together leave an eighth of each table, however many of them are invented.
    @Test func aNetworkOnALinkLeavesSomething() {
        func source(_ number: Int) -> Source { Source(IPAddress(v6: 0xFD00 << 48, UInt64(number) + 1)) }
        let elsewhere = Source(.v4(192, 0, 2, 1))
        var counts = SourceCounts<Int>()
        while counts.mayHaveMore(source(0), most: 1024) { counts.add(1, to: source(0)) }
        #expect(
            counts.all == 896 && !counts.mayHaveMore(source(1), most: 1024), "alone it has what all of them may have")
        #expect(counts.mayHaveMore(elsewhere, most: 1024))
        counts = SourceCounts()
        for number in 0..<10_000 where counts.mayHaveMore(source(number), most: 1024) {
            counts.add(1, to: source(number))
        }
        #expect(counts.all == 896 && counts.mayHaveMore(elsewhere, most: 1024))
        for number in 0..<10_000 where counts[source(number)] > 0 { counts.add(-1, to: source(number)) }
        #expect(counts.all == 0 && counts.count == 0 && counts.mayHaveMore(source(1), most: 1024))
    }

    @Test func afterSevenOfANetworkComesAnother() {
        func spread(_ text: String) -> String {
            String(Array(text).spread { $0.isLowercase ? UInt64($0.asciiValue!) : nil })
        }
        #expect(
            spread("") == "" && spread("ABCDEFGHIJKL") == "ABCDEFGHIJKL" && spread("aaaaaaaaaaaa") == "aaaaaaaaaaaa")
        #expect(spread("aaaaaaaaaaaaaaaaXY") == "aaaaaaaXaaaaaaaYaa")
        #expect(spread("XYaaaaaaaaaa") == "XYaaaaaaaaaa" && spread("aaaaaaaaXbbbbbbbbb") == "aaaaaaaXabbbbbbbbb")
        #expect(spread("aaaaaaaaabbbbbbbbbX") == "aaaaaaabaabbbbbbbXb")
    }

    @Test func howeverManyThereAreSomeIsLeft() {
        for sources in 1...40 {
            var has = [Int](repeating: 0, count: sources)
            var grows = true
            while grows {
                grows = false
                for source in has.indices
                where Shares.mayHaveMore(own: has[source], all: has.reduce(0, +), most: 1024) {
                    has[source] += 1
                    grows = true
                }
            }
            let all = has.reduce(0, +)
            #expect(all < 1024 && Shares.mayHaveMore(own: 0, all: all, most: 1024))
            if sources == 1 { #expect(all == 896) }
        }
    }

    /// One source asks for 2,000 names a second that get no answer, another for 50 that are answered in 30 ms.
    private struct Flood: ~Copyable {
        var forwarder: Forwarder
        var chance: Chance
        var now = Tick(nanoseconds: 1_000_000_000_000)
        var due: [(at: Tick, request: QueryID, names: [Name])] = []
        var clients = 0
        /// The names of the other source: the waiting ones, and the fates of the rest.
        var waiting: Set<Int> = []
        var (answered, refused) = (0, 0)
        var most = 0

        init(seed: UInt64) {
            chance = Chance(seed: seed)
            forwarder = TestUpstreams().forwarder(DNSCache(bytes: 1 << 20, seed: (seed, 2)))
        }

        mutating func ask(_ name: String, of source: Source) -> Int {
            clients += 1
            forwarder.receive(Name(name)!, .a, for: .everyone, from: clients, by: Asker(source), at: now)
            return clients
        }

        mutating func turn() {
            forwarder.endTurn(at: now)
            for action in forwarder.takeActions() {
                switch action {
                case .ask(let request, _, .addresses(let names, _)):
                    due.append((now.advanced(milliseconds: 20 + chance.below(20)), request, names))
                case .reply(let numbers, let answer, _, _, way: _):
                    for number in numbers where waiting.remove(number) != nil {
                        if answer.head.answerCount > 0 { answered += 1 } else { refused += 1 }
                    }
                default: break
                }
            }
            most = max(most, forwarder.flightsUnderWay)
        }

        /// Lets a millisecond pass: HTTPDNS has no record of a dead name, and the local resolver does not answer.
        mutating func pass() {
            now = now.advanced(milliseconds: 1)
            forwarder.expire(at: now)
            let ended = due.filter { $0.at <= now }
            due.removeAll { $0.at <= now }
            for (_, request, names) in ended {
                let results = names.map { name in
                    let isDead = name.description.hasPrefix("dead")
                    return NameAddresses(
                        name: name, ipv4: isDead ? .noRecord : .addresses([.v4(192, 0, 2, 1)], ttl: 60), ipv6: .noRecord
                    )
                }
                forwarder.settle(request, .addresses(results), at: now)
            }
            turn()
        }

        /// - Returns: The share of the other source's names that were answered.
        mutating func run(_ other: Source) -> Double {
            for millisecond in 0..<12_000 {
                for _ in 0..<2 {
                    _ = ask("dead\(chance.next()).d\(chance.below(100)).example", of: Source(.v4(192, 0, 2, 66)))
                }
                // The first seconds fill the table.
                if millisecond > 4000, millisecond % 20 == 0 {
                    waiting.insert(ask("live\(millisecond).example.com", of: other))
                }
                pass()
            }
            for _ in 0..<5000 { pass() }
            return Double(answered) / Double(answered + refused + waiting.count)
        }
    }

    @Test(arguments: UInt64(1)...4) func aFloodOfDeadNamesLeavesOthersTheirs(seed: UInt64) {
        var alone = Flood(seed: seed)
        let inOneShare = alone.run(Source(.v4(192, 0, 2, 66)))
        var beside = Flood(seed: seed)
        let inItsOwn = beside.run(Source(.v4(192, 0, 2, 1)))
        print(
            "seed \(seed): \(Int(inOneShare * 100)) % answered in the flood's share, \(Int(inItsOwn * 100)) % in its own"
        )
        #expect(beside.most == Shares.flights, "the flood is one")
        #expect(inOneShare < 0.6)
        #expect(inItsOwn == 1)
        #expect(beside.forwarder.admission.flights.count == 0 && beside.forwarder.admission.clients.all == 0)
    }

    /// Names that still wait to be sent make room as well, and are not sent.
    @Test func whatWaitsForARequestMakesRoom() {
        var flood = Flood(seed: 9)
        for number in 0..<Shares.flights {
            _ = flood.ask("dead\(number).example.com", of: Source(.v4(192, 0, 2, 66)))
        }
        flood.turn()
        let waiting = flood.forwarder.desk.groups[0].outbox.count
        #expect(waiting == Shares.flights - 8 * GroupState.maximumRequests)
        _ = flood.ask("live.example.com", of: .host)
        #expect(flood.forwarder.desk.groups[0].outbox.count == waiting)
        #expect(flood.forwarder.desk.groups[0].outbox.last?.key.name == Name("live.example.com"))
        #expect(flood.forwarder.desk.groups[0].lookups[NameKey(Name("dead1535.example.com")!)] == nil)
        #expect(flood.forwarder.counters.refusedFlights == 1)
    }

    /// A name of the flood that was sent already stays when its answer comes, even without a waiting client.
    @Test func whatWasSentIsKept() throws {
        var flood = Flood(seed: 9)
        for number in 0..<Shares.flights {
            _ = flood.ask("live\(number).example.com", of: Source(.v4(192, 0, 2, 66)))
            if number % 8 == 7 { flood.turn() }
        }
        for number in 0..<600 { _ = flood.ask("other\(number).example.com", of: Source(.v4(192, 0, 2, 1))) }
        flood.turn()
        #expect(flood.forwarder.desk.groups[0].lookups[NameKey(Name("live1000.example.com")!)]?.flights.isEmpty == true)
        for _ in 0..<200 { flood.pass() }
        let found = flood.forwarder.cache.find(
            Name("live1000.example.com")!, type: .a, for: .everyone, at: flood.now.seconds)
        #expect(found?.answer.head.answerCount == 1)
        #expect(
            flood.forwarder.flightsUnderWay == 0 && flood.forwarder.desk.queries.count == 0
                && flood.forwarder.desk.groups[0].lookups.isEmpty)
    }

    @Test func theRegisteredDomainOfAName() {
        func isSame(_ name: String, _ other: String) -> Bool {
            NoRecordBudget.domain(of: Name(name)!) == NoRecordBudget.domain(of: Name(other)!)
        }
        #expect(isSame("a.example.com", "b.c.example.com") && !isSame("a.example.com", "a.example.net"))
        #expect(isSame("a.example.co.uk", "b.c.example.co.uk") && !isSame("a.example.co.uk", "a.other.co.uk"))
        #expect(isSame("a.b.example.cn", "c.example.cn"))
        #expect(!isSame("a.one.com.cn", "a.two.com.cn") && isSame("a.name.info.pl", "a.other.info.pl"))
        #expect(NoRecordBudget.domain(of: Name("one.co.uk")!) == nil)
        #expect(NoRecordBudget.domain(of: Name("example.com")!) == nil)
        #expect(NoRecordBudget.domain(of: Name("com")!) == nil && NoRecordBudget.domain(of: Name(".")!) == nil)
    }

    @Test func theBudgetsStayWithinTheirBound() {
        var budget = NoRecordBudget()
        let now = Tick(nanoseconds: 1_000_000_000_000)
        for number in 0..<5000 {
            budget.charge(Name("x.d\(number).example")!, at: now)
        }
        #expect(budget.count <= NoRecordBudget.maximumDomains)
    }
}
