import Addresses
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

@Suite struct RecentNamesTests {
    private func name(_ number: Int) -> Name { Name("n\(number).example")! }
    private func tick(_ seconds: UInt64) -> Tick { Tick(nanoseconds: seconds * 1_000_000_000) }

    @Test func aNameIsRememberedUntilItsMoment() {
        var names = RecentNames()
        #expect(!names.contains(name(1), at: tick(0)))
        names.insert(name(1), until: tick(30))
        #expect(names.contains(name(1), at: tick(29)))
        #expect(!names.contains(name(1), at: tick(30)))
        names.insert(name(1), until: tick(60))
        #expect(names.contains(name(1), at: tick(59)))
        #expect(!names.contains(name(2), at: tick(0)))
    }

    @Test func pastItsBoundTheOldestIsForgotten() {
        var names = RecentNames()
        let count = 2 * RecentNames.maximum + 7
        for number in 0..<count { names.insert(name(number), until: tick(30)) }
        let remembered = (0..<count).filter { names.contains(name($0), at: tick(0)) }
        #expect(remembered == Array(count - RecentNames.maximum..<count))
    }
}

@Suite struct HostsTableTests {
    private func table(_ text: String) -> HostsTable { HostsTable(parsing: Array(text.utf8).span) }
    private func said(_ table: HostsTable, _ name: String, _ type: RecordType) -> String? {
        table.answer(Name(name)!, type, ttl: 5).map(ScenarioAnswer.said)
    }

    @Test func addressesAndNamesOfEachLine() {
        let hosts = table(
            """
            # a comment
            127.0.0.1\tlocalhost loopback   # another
            192.0.2.1 NAS.lan nas
            192.0.2.2 nas.lan
            192.0.2.1 nas.lan
            2001:db8::1 nas.lan\r

            """)
        #expect(said(hosts, "nas.lan", .a) == "NOERROR 192.0.2.1 192.0.2.2 ttl 5")
        #expect(said(hosts, "nas.lan", .aaaa) == "NOERROR 2001:db8::1 ttl 5")
        #expect(said(hosts, "nas", .aaaa) == "NOERROR none soa 5")
        #expect(said(hosts, "loopback", .a) == "NOERROR 127.0.0.1 ttl 5")
        #expect(said(hosts, "nas", .https) == "NOERROR none soa 5")
        #expect(said(hosts, "nas", .svcb) == "NOERROR none soa 5")
        #expect(said(hosts, "nas", .mx) == nil)
        #expect(said(hosts, "other", .a) == nil)
        #expect(said(hosts, "lan", .a) == nil)
        #expect(said(hosts, "another", .a) == nil)
    }

    @Test func reverseNamesHaveTheFirstNameOfEachLineOnce() {
        let hosts = table("192.0.2.1 nas.lan nas\n192.0.2.1 box.lan\n192.0.2.1 nas.lan\n2001:db8::1 six.lan\n")
        #expect(said(hosts, "1.2.0.192.in-addr.arpa", .ptr) == "NOERROR PTR nas.lan. PTR box.lan. ttl 5")
        let six = "1" + String(repeating: ".0", count: 23) + ".8.b.d.0.1.0.0.2.ip6.arpa"
        #expect(said(hosts, six, .ptr) == "NOERROR PTR six.lan. ttl 5")
        #expect(said(hosts, "2.2.0.192.in-addr.arpa", .ptr) == nil)
    }

    @Test(arguments: [
        "", "\n\n", "nas 192.0.2.1\n", "192.0.2.1\n", "192.0.2.256 nas\n", "192.0.2 nas\n", "fe80::1%eth0 nas\n",
        "192.0.2.1 nas..lan\n", "# 192.0.2.1 nas", "192.0.2.1 # nas", "192.0.2.1#nas\n", "\u{FEFF}192.0.2.1 nas\n",
    ])
    func linesOfAnotherFormArePassedOver(_ text: String) {
        #expect(table(text).allNames.isEmpty)
        #expect(said(table(text + "\n192.0.2.7 fine\n"), "fine", .a) == "NOERROR 192.0.2.7 ttl 5")
    }

    @Test func theLastLineNeedsNoEnd() {
        #expect(said(table("192.0.2.1 nas"), "nas", .a) == "NOERROR 192.0.2.1 ttl 5")
    }

    @Test func aLineNobodyWroteIsCutOff() {
        let hosts = table("192.0.2.1 nas " + String(repeating: "x ", count: 3000) + "late\n192.0.2.2 next\n")
        #expect(said(hosts, "nas", .a) != nil)
        #expect(said(hosts, "late", .a) == nil)
        #expect(said(hosts, "next", .a) != nil)
    }

    @Test func aBlockListOfManyNamesStaysWithinTheBound() {
        let hosts = table((0..<110_000).map { "0.0.0.0 ad\($0).example\n" }.joined())
        #expect(said(hosts, "ad0.example", .a) == "NOERROR 0.0.0.0 ttl 5")
        #expect(said(hosts, "ad99999.example", .a) == "NOERROR 0.0.0.0 ttl 5")
        #expect(said(hosts, "ad100000.example", .a) == nil)
        // All of them have one reverse name.
        #expect(
            hosts.answer(Name("0.0.0.0.in-addr.arpa")!, .ptr, ttl: 5)!.records().count == HostsTable.maximumAddresses)
    }

    @Test func aNameWithManyAddressesHasSome() {
        let hosts = table((0..<3000).map { "10.0.\($0 / 250).\($0 % 250) many\n" }.joined())
        let count = hosts.answer(Name("many")!, .a, ttl: 5)!.records().count
        #expect(count > 0 && count <= HostsTable.maximumAddresses)
    }

    @Test func anyOctetsAreRead() {
        var chance = Chance(seed: 42)
        for _ in 0..<200 {
            let text = (0..<chance.below(400)).map { _ in chance.below(4) == 0 ? UInt8(10) : UInt8(chance.below(256)) }
            _ = HostsTable(parsing: text.span)
            _ = ResolverList.parse(text.span)
        }
    }
}

@Suite struct ResolverListTests {
    private func parse(_ text: String) -> [String] { ResolverList.parse(Array(text.utf8).span).map(\.description) }

    @Test func nameserverLinesInTheirOrder() {
        let text = """
            # Generated by a person
            ; likewise
            search lan
            nameserver 192.0.2.1
            nameserver\t2001:db8::1   # fine
            options edns0 trust-ad
            nameserver 192.0.2.1
            nameserver fe80::1%eth0
            nameserver
            nameserver nonsense
            Nameserver 192.0.2.7
            nameserver 127.0.0.53 trailing
            """
        #expect(parse(text) == ["192.0.2.1:53", "[2001:db8::1]:53", "127.0.0.53:53"])
    }

    @Test func noMoreThanAnybodyWouldWaitFor() {
        #expect(parse((1...20).map { "nameserver 192.0.2.\($0)\n" }.joined()).count == ResolverList.maximumServers)
    }

    @Test(arguments: [
        // What it listens on, the server, whether that is the daemon itself.
        ("127.0.0.1:53", "127.0.0.1:53", true), ("127.0.0.1:53", "127.0.0.1:5353", false),
        ("127.0.0.1:53", "127.0.0.53:53", false), ("127.0.0.1:53", "0.0.0.0:53", true),
        ("127.0.0.1:53", "192.0.2.10:53", false), ("192.0.2.10:53", "192.0.2.10:53", true),
        ("0.0.0.0:53", "192.0.2.10:53", true), ("0.0.0.0:53", "192.0.2.11:53", false),
        ("0.0.0.0:53", "127.0.0.53:53", true), ("0.0.0.0:53", "0.0.0.0:53", true),
        ("0.0.0.0:53", "[2001:db8::10]:53", false), ("0.0.0.0:5300", "127.0.0.1:53", false),
        ("[::]:53", "[::1]:53", true), ("[::]:53", "[2001:db8::10]:53", true), ("[::]:53", "[2001:db8::11]:53", false),
        ("[::1]:53", "[::1]:53", true), ("[::1]:53", "[::]:53", true), ("[::1]:53", "127.0.0.1:53", false),
        ("127.0.0.1:53", "[::ffff:127.0.0.1]:53", true), ("0.0.0.0:53", "[::ffff:192.0.2.10]:53", true),
        ("127.0.0.1:53", "[::ffff:192.0.2.11]:53", false),
    ])
    func whatIsTheDaemonItself(_ row: (String, String, Bool)) throws {
        let server = try #require(Endpoint(row.1))
        let split = ResolverList.withoutLoops(
            [server], listening: [try #require(Endpoint(row.0))],
            own: [IPAddress("192.0.2.10")!, IPAddress("2001:db8::10")!])
        #expect(split.loops == (row.2 ? [server] : []))
        #expect(split.usable == (row.2 ? [] : [server]))
    }

    @Test func theOrderStays() {
        let servers = ["192.0.2.1:53", "127.0.0.1:53", "192.0.2.2:53"].map { Endpoint($0)! }
        let split = ResolverList.withoutLoops(servers, listening: [Endpoint("127.0.0.1:53")!], own: [])
        #expect(split.usable == [servers[0], servers[2]])
        #expect(split.loops == [servers[1]])
    }
}
