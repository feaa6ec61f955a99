import Base
import DNSWire
import TestSupport
import Testing

@testable import Forwarding

@Suite struct RememberedTests {
    private func tick(_ seconds: UInt64) -> Tick { Tick(nanoseconds: seconds * 1_000_000_000) }

    @Test func somethingIsRememberedUntilItsMoment() {
        var known = Remembered<Int, String>(atMost: 10)
        #expect(known.value(1, at: tick(0)) == nil)
        known.insert(1, "a", until: tick(30))
        #expect(known.value(1, at: tick(29)) == "a")
        #expect(known.value(1, at: tick(30)) == nil)
        known.insert(1, "b", until: tick(60))
        #expect(known.value(1, at: tick(59)) == "b")
        #expect(known.value(2, at: tick(0)) == nil)
        known.removeAll()
        #expect(known.value(1, at: tick(59)) == nil)
    }

    @Test func pastItsBoundTheOldestIsForgotten() {
        var known = Remembered<Int, Void>(atMost: 1000)
        for number in 0..<2007 {
            known.insert(number, (), until: tick(30))
            known.insert(number / 2, (), until: tick(30))
        }
        #expect(known.count == 1000)
        #expect(known.value(2006, at: tick(0)) != nil)
    }

    @Test(arguments: [UInt64(1), 2]) func itAgreesWithAList(seed: UInt64) {
        print("seed \(seed)")
        var chance = Chance(seed: seed)
        var known = Remembered<Int, Int>(atMost: 50)
        var model: [(key: Int, value: Int, until: Tick)] = []
        for step in 0..<20_000 {
            let key = chance.below(120)
            if chance.below(2) == 0 {
                let until = tick(UInt64(chance.below(100)))
                known.insert(key, step, until: until)
                if let at = model.firstIndex(where: { $0.key == key }) {
                    model[at] = (key, step, until)
                } else {
                    if model.count == 50 { model.removeFirst() }
                    model.append((key, step, until))
                }
            }
            let now = tick(UInt64(chance.below(100)))
            #expect(known.value(key, at: now) == model.first { $0.key == key && now < $0.until }?.value)
        }
    }
}

@Suite struct HostsTableTests {
    private func table(_ text: String) -> HostsTable { HostsTable(parsing: Array(text.utf8).span) }
    private func said(_ table: HostsTable, _ name: String, _ type: RecordType) -> String? {
        table.answer(NameKey(Name(name)!), type).map(ScenarioAnswer.said)
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
        #expect(said(hosts, "nas.lan", .a) == "NOERROR 192.0.2.1 192.0.2.2 ttl 0")
        #expect(said(hosts, "nas.lan", .aaaa) == "NOERROR 2001:db8::1 ttl 0")
        #expect(said(hosts, "nas", .aaaa) == "NOERROR none soa 0")
        #expect(said(hosts, "loopback", .a) == "NOERROR 127.0.0.1 ttl 0")
        #expect(said(hosts, "nas", .https) == "NOERROR none soa 0")
        #expect(said(hosts, "nas", .svcb) == "NOERROR none soa 0")
        #expect(said(hosts, "nas", .mx) == nil)
        #expect(said(hosts, "other", .a) == nil)
        #expect(said(hosts, "lan", .a) == nil)
        #expect(said(hosts, "another", .a) == nil)
    }

    @Test func reverseNamesHaveTheFirstNameOfEachLineOnce() {
        let hosts = table("192.0.2.1 nas.lan nas\n192.0.2.1 box.lan\n192.0.2.1 nas.lan\n2001:db8::1 six.lan\n")
        #expect(said(hosts, "1.2.0.192.in-addr.arpa", .ptr) == "NOERROR PTR nas.lan. PTR box.lan. ttl 0")
        let six = "1" + String(repeating: ".0", count: 23) + ".8.b.d.0.1.0.0.2.ip6.arpa"
        #expect(said(hosts, six, .ptr) == "NOERROR PTR six.lan. ttl 0")
        #expect(said(hosts, "2.2.0.192.in-addr.arpa", .ptr) == nil)
    }

    @Test(arguments: [
        "", "\n\n", "nas 192.0.2.1\n", "192.0.2.1\n", "192.0.2.256 nas\n", "192.0.2 nas\n", "fe80::1%eth0 nas\n",
        "192.0.2.1 nas..lan\n", "# 192.0.2.1 nas", "192.0.2.1 # nas", "192.0.2.1#nas\n",
    ])
    func linesOfAnotherFormArePassedOver(_ text: String) {
        #expect(table(text).allNames.isEmpty)
        #expect(said(table(text + "\n192.0.2.7 fine\n"), "fine", .a) == "NOERROR 192.0.2.7 ttl 0")
    }

    @Test func theLastLineNeedsNoEnd() {
        #expect(said(table("192.0.2.1 nas"), "nas", .a) == "NOERROR 192.0.2.1 ttl 0")
    }

    @Test(arguments: [3000, 600_000])
    func aLongLineIsReadToItsEnd(_ words: Int) {
        let hosts = table("\n192.0.2.1 nas" + String(repeating: " x", count: words) + " late\n192.0.2.2 next\n")
        #expect(said(hosts, "nas", .a) != nil && said(hosts, "late", .a) != nil && said(hosts, "next", .a) != nil)
        #expect(hosts.unread.count == 0)
    }

    @Test func severalFilesCountAsOne() {
        var hosts = table("192.0.2.1 nas\n")
        hosts.add(parsing: Array("192.0.2.2 nas printer\n192.0.2.3 a..b\n".utf8).span)
        #expect(said(hosts, "nas", .a) == "NOERROR 192.0.2.1 192.0.2.2 ttl 0")
        #expect(said(hosts, "printer", .a) == "NOERROR 192.0.2.2 ttl 0")
        #expect((hosts.unread.count, hosts.unread.firstFile, hosts.unread.firstLine) == (1, 1, 2))
    }

    @Test func aWordThatIsTooLongForANameIsCounted() {
        let hosts = table("\n192.0.2.1 nas \(String(repeating: "x", count: 600_000)) late\n")
        #expect(said(hosts, "nas", .a) != nil && said(hosts, "late", .a) != nil)
        #expect(hosts.unread.count == 1 && hosts.unread.firstLine == 2)
    }

    @Test func byteOrderMarksAndUnicode() {
        let mark = "\u{FEFF}"
        let hosts = table("\(mark)192.0.2.1 nas Büro.example\n\(mark)# a\n\(mark)192.0.2.2 box\n")
        #expect(
            said(hosts, "nas", .a) == "NOERROR 192.0.2.1 ttl 0" && said(hosts, "box", .a) == "NOERROR 192.0.2.2 ttl 0")
        #expect(said(hosts, "xn--bro-hoa.example", .a) == "NOERROR 192.0.2.1 ttl 0")
        #expect(hosts.unread.count == 0)
    }

    /// Octets that are no text are no name, either.
    @Test func octetsBeyondASCIIHaveToBeText() {
        for octet: UInt8 in [0x80, 0xC3, 0xFF] {
            let text = Array("192.0.2.1 a".utf8) + [octet] + Array("b\n".utf8)
            let hosts = HostsTable(parsing: text.span)
            #expect(hosts.unread.count == 1 && hosts.allNames.isEmpty, "\(octet)")
        }
    }

    /// Texts that are no names, and texts beyond the limits.
    @Test(
        arguments: [
            ("192.0.2.1 a..b good\n", 1, 1), ("# a\n192.0.2.1 good „a“ \u{FFFD}\n", 2, 2), ("fe80::1%lo0 good\n", 0, 0),
            ("not an address\n", 0, 0),
            ((0..<99).map { "192.0.2.\($0) a\n" }.joined(), 35, 65),
            ((0..<99).map { "192.0.2.1 n\($0)\n" }.joined(), 35, 65),
            ((0..<99).map { "127.0.0.1 n\($0)\n" }.joined(), 0, 0),
            (String(repeating: "192.0.2.1 a\n", count: 99), 0, 0),
        ] as [(String, Int, Int)])
    func whatIsLeftOutIsCounted(_ row: (text: String, count: Int, line: Int)) {
        let unread = table(row.text).unread
        #expect(unread.count == row.count && unread.firstLine == row.line)
    }

    @Test func aBlockListOfManyNamesIsKeptWhole() {
        let hosts = table((0..<110_000).map { "0.0.0.0 ad\($0).example\n" }.joined())
        #expect(said(hosts, "ad0.example", .a) == "NOERROR 0.0.0.0 ttl 0")
        #expect(said(hosts, "ad109999.example", .a) == "NOERROR 0.0.0.0 ttl 0")
        #expect(hosts.leftOut == 0)
        // All of them have one reverse name.
        #expect(
            hosts.answer(NameKey(Name("0.0.0.0.in-addr.arpa")!), .ptr)!.records().count
                == HostsTable.maximumAddresses)
    }

    @Test func aTableWithTheNamesThatItLacks() {
        let former = table("192.0.2.1 one\n192.0.2.2 two\n")
        #expect(table("192.0.2.2 two\n192.0.2.3 one three\n").joined(with: former) == nil)
        let joined = table("192.0.2.3 one three\n").joined(with: former)
        let answers = ["one", "two", "three"].map { name in joined.flatMap { said($0, name, .a) } }
        #expect(answers == ["NOERROR 192.0.2.3 ttl 0", "NOERROR 192.0.2.2 ttl 0", "NOERROR 192.0.2.3 ttl 0"])
    }

    @Test func namesForWhichThereIsNoRoomAreCounted() {
        let text = "192.0.2.1 one two three\n192.0.2.2 four one\n192.0.2.3 five\n"
        let hosts = HostsTable(parsing: Array(text.utf8).span, maximumNames: 2)
        #expect(said(hosts, "one", .a) == "NOERROR 192.0.2.1 192.0.2.2 ttl 0")
        #expect(said(hosts, "two", .a) == "NOERROR 192.0.2.1 ttl 0")
        #expect(["three", "four", "five"].allSatisfy { said(hosts, $0, .a) == nil })
        #expect(said(hosts, "3.2.0.192.in-addr.arpa", .ptr) == nil)
        #expect(hosts.leftOut == 3)
        #expect(HostsTable.maximumNames >= 2_000_000)
    }

    @Test func aNameWithManyAddressesHasSome() {
        let hosts = table((0..<3000).map { "10.0.\($0 / 250).\($0 % 250) many\n" }.joined())
        let count = hosts.answer(NameKey(Name("many")!), .a)!.records().count
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
            nameserver fe80::1%
            nameserver 2001:db8::1%eth0
            nameserver 192.0.2.9:5353
            nameserver
            nameserver nonsense
            Nameserver 192.0.2.7
            nameserver 127.0.0.53 trailing
            """
        #expect(parse(text) == ["192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1%eth0]:53", "127.0.0.53:53"])
    }

    @Test func noMoreThanAnybodyWouldWaitFor() {
        #expect(parse((1...20).map { "nameserver 192.0.2.\($0)\n" }.joined()).count == ResolverList.maximumServers)
    }

    @Test(arguments: [
        // The daemon's address, the server's address, and whether the server is the daemon itself.
        ("127.0.0.1:53", "127.0.0.1:53", true), ("127.0.0.1:53", "127.0.0.1:5353", false),
        ("127.0.0.1:53", "127.0.0.53:53", false), ("127.0.0.1:53", "0.0.0.0:53", true),
        ("127.0.0.1:53", "192.0.2.10:53", false), ("192.0.2.10:53", "192.0.2.10:53", true),
        ("0.0.0.0:53", "192.0.2.10:53", true), ("0.0.0.0:53", "192.0.2.11:53", false),
        ("0.0.0.0:53", "127.0.0.53:53", true), ("0.0.0.0:53", "0.0.0.0:53", true),
        // Docker's name server in a container.
        ("0.0.0.0:53", "127.0.0.11:53", false), ("127.0.0.11:53", "127.0.0.11:53", true),
        ("0.0.0.0:53", "[2001:db8::10]:53", false), ("0.0.0.0:5300", "127.0.0.1:53", false),
        ("[::]:53", "[::1]:53", true), ("[::]:53", "[2001:db8::10]:53", true), ("[::]:53", "[2001:db8::11]:53", false),
        ("[::1]:53", "[::1]:53", true), ("[::1]:53", "[::]:53", true), ("[::1]:53", "127.0.0.1:53", false),
        ("127.0.0.1:53", "[::ffff:127.0.0.1]:53", true), ("0.0.0.0:53", "[::ffff:192.0.2.10]:53", true),
        ("127.0.0.1:53", "[::ffff:192.0.2.11]:53", false), ("[::]:53", "[fe80::10%eth0]:53", true),
        ("[::]:53", "[fe80::10%2]:53", true), ("[::]:53", "[fe80::10%eth1]:53", false),
        ("[::1]:53", "[fe80::10%eth0]:53", false),
    ])
    func whatIsTheDaemonItself(_ row: (String, String, Bool)) throws {
        let server = try #require(Endpoint(row.1, allowsZone: true))
        let split = ResolverList.withoutLoops(
            [server], listening: [try #require(Endpoint(row.0))],
            own: ["192.0.2.10:0", "[2001:db8::10]:0", "[fe80::10%eth0]:0", "[fe80::10%2]:0"].map {
                Endpoint($0, allowsZone: true)!
            })
        #expect(split.loops == (row.2 ? [server] : []))
        #expect(split.usable == (row.2 ? [] : [server]))
    }

    /// systemd-resolved answers at 127.0.0.53; the servers that it asks are in a file of its own.
    @Test(arguments: [
        ("127.0.0.53:53", ["192.0.2.1:53"], false), ("127.0.0.53:53", ["192.0.2.1:53", "127.0.0.1:53"], true),
        ("127.0.0.54:53", ["127.0.0.1:53"], true), ("127.0.0.53:53", ["127.0.0.1:5353"], false),
        ("127.0.0.53:5353", ["127.0.0.1:53"], false), ("192.0.2.1:53", ["127.0.0.1:53"], false),
        ("127.0.0.53:53", [], false),
    ])
    func whoAsksTheDaemonInTurn(_ row: (server: String, resolvedAsks: [String], isLoop: Bool)) throws {
        let server = try #require(Endpoint(row.server))
        let split = ResolverList.withoutLoops(
            [server], listening: [Endpoint("127.0.0.1:53")!], own: [],
            resolvedAsks: row.resolvedAsks.compactMap { Endpoint($0) })
        #expect(split.loops == (row.isLoop ? [server] : []))
    }

    @Test func theOrderStays() {
        let servers = ["192.0.2.1:53", "127.0.0.1:53", "192.0.2.2:53"].map { Endpoint($0)! }
        let split = ResolverList.withoutLoops(servers, listening: [Endpoint("127.0.0.1:53")!], own: [])
        #expect(split.usable == [servers[0], servers[2]])
        #expect(split.loops == [servers[1]])
    }

    /// Links are written `LINK USE ADDRESS`; a server is asked or of the link behind `=`.
    @Test(arguments: [
        (["eth0 other 192.0.2.1", "tun0 some 10.1.0.53"], ["192.0.2.1", "10.1.0.53=tun0"]),
        (["eth0 other 192.0.2.1", "tun0 other 10.1.0.53"], ["192.0.2.1", "10.1.0.53"]),
        (["eth0 other 192.0.2.1", "tun0 all 10.1.0.53"], ["192.0.2.1=eth0", "10.1.0.53"]),
        (["eth0 all 192.0.2.1", "tun0 all 10.1.0.53"], ["192.0.2.1", "10.1.0.53"]),
        (["eth0 some 192.0.2.1", "tun0 some 10.1.0.53"], ["192.0.2.1=eth0", "10.1.0.53=tun0"]),
        (["eth0 other 192.0.2.1", " all 127.0.0.1"], ["192.0.2.1"]),
        // A server of both links, and a server that no link has.
        (["eth0 other 192.0.2.1", "tun0 some 192.0.2.1"], ["192.0.2.1"]),
        (["tun0 some 10.1.0.53"], ["192.0.2.1", "10.1.0.53=tun0"]), ([], ["192.0.2.1", "10.1.0.53"]),
        // A server of the machine as a whole.
        ([" other 192.0.2.1", "tun0 some 10.1.0.53"], ["192.0.2.1", "10.1.0.53=tun0"]),
        // The same link-local address on both links.
        (["eth0 other fe80::1%eth0", "tun0 some fe80::1%tun0"], ["fe80::1%eth0", "fe80::1%tun0=tun0"]),
        (["eth0 other fe80::1%eth0", "tun0 all fe80::1%tun0"], ["fe80::1%eth0=eth0", "fe80::1%tun0"]),
    ])
    func whichServersAreForAllNames(_ row: (links: [String], servers: [String])) throws {
        let uses: [Substring: LinkServer.Use] = ["some": .someNames, "other": .otherNames, "all": .allNames]
        let known = try row.links.map { text in
            let words = text.split(separator: " ", omittingEmptySubsequences: false)
            let server = try #require(Endpoint(address: words[2], port: 53, allowsZone: true))
            return LinkServer(server, of: String(words[0]), for: try #require(uses[words[1]]))
        }
        let named = try row.servers.map { text in
            let words = text.split(separator: "=")
            let server = try #require(Endpoint(address: words[0], port: 53, allowsZone: true))
            return (server: server, link: words.dropFirst().first.map(String.init))
        }
        let split = LinkServer.split(named.map(\.server), by: known)
        #expect(split.usable == named.filter { $0.link == nil }.map(\.server))
        #expect(split.others.map(\.server) == named.filter { $0.link != nil }.map(\.server))
        #expect(split.others.map(\.link) == named.compactMap(\.link))
    }
}
