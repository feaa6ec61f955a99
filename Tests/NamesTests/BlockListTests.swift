import TestSupport
import Testing

@testable import Names

/// A list for a group that answers by itself: patterns, lines of hosts files and rules of filter lists.
@Suite struct BlockListTests {
    private func read(_ text: String) throws(DomainListError) -> BlockList {
        try BlockList(parsing: Array(text.utf8).span)
    }

    /// `x` for a name alone, as rules of filter lists have it: `|x`.
    private func said(_ list: DomainList) -> [String] {
        list.patterns.map { if case .only(let name) = $0 { "|\(name)" } else { "\($0)" } }
    }

    @Test func theThreeFormsAreToldApartByLine() throws {
        let list = try read(
            """
            [Adblock Plus 2.0]
            ! Title: a list
            # and a comment
            ||ads.example^
            ||*.b.example^
            |c.example^
            ||D.Example^|
            @@||good.ads.example^|
            @@|c.example^
            @@||e.ads.example^$important
            ||b.ads.example^$important
            ||c.ads.example^|$important

            0.0.0.0 e.example f.example\t g.example   # two more
            \t:: h.example
            127.0.0.1 I.example
            ::1 j.example
            plain.example
            *.below.example # and all below
            k.example#comment
            server=/l.example/m.example/192.0.2.53#5353
            local=/n.example/
            address=/o.example/#
            address=/p.example/0.0.0.0  # nowhere
            Address=/q.example/
            bücher.example
            0.0.0.0 MÜNCHEN.example
            ||ü.example^
            """)
        #expect(
            said(list.taken) == [
                "ads.example", "*.b.example", "|c.example", "d.example", "b.ads.example", "c.ads.example",
                "|e.example", "|f.example", "|g.example", "|h.example", "|i.example", "|j.example", "plain.example",
                "below.example", "k.example", "l.example",
                "m.example", "n.example", "o.example", "p.example", "q.example", "xn--bcher-kva.example",
                "|xn--mnchen-3ya.example", "xn--tda.example",
            ])
        #expect(said(list.released) == ["good.ads.example", "|c.example", "e.ads.example"])
        #expect(list.rules == BlockList.LeftOut() && list.others == BlockList.LeftOut() && list.lines == 24)
    }

    @Test func whatHostsFilesBeginWithIsNotTaken() throws {
        let list = try read(
            """
            127.0.0.1 localhost
            127.0.0.1 localhost.localdomain
            127.0.0.1 local
            255.255.255.255 broadcasthost
            ::1 localhost ip6-localhost ip6-loopback
            fe80::1%lo0 localhost
            ff00::0 ip6-localnet
            ff00::0 ip6-mcastprefix
            ff02::1 ip6-allnodes
            ff02::2 ip6-allrouters
            ff02::3 ip6-allhosts
            0.0.0.0 0.0.0.0
            0.0.0.0 ads.example ::1 b.example
            """)
        #expect(said(list.taken) == ["|ads.example", "|b.example"])
        #expect(list.rules.count == 0 && list.others.count == 0)
    }

    @Test(arguments: [
        "||ad*.example^", "||a.*.example^", "||192.0.2.1^", "||a.example", "||a.", "|a.example",
        "||a.example^$third-party",
        "||a.example^$important,third-party", "||$important", "@@||a.example^$document", "@@||a*.example^|",
        "@@-ds.metric.example^|", "/ad[0-9]+/",
        "/banner.gif", "a.example##.ad", "a.example,b.example#@#.ad", "a.example#?#div", "a.example#$#p",
        "a.example#@$?#p",
        "-ads.example^", "&ad=1|", "example.com^", "ads$image", "||a example^", "[$path=/x]a.example##p", "||^",
    ])
    func aRuleThatIsNotFollowedIsCounted(_ rule: String) throws {
        let list = try read("a.example\n\n\(rule)\nb.example\n\(rule)\n")
        #expect(said(list.taken) == ["a.example", "b.example"] && list.released.count == 0)
        #expect(list.rules.count == 2 && list.rules.firstLine == 3 && list.others.count == 0)
    }

    /// What lists of others have beside their names, or instead of them: the other lines are taken.
    @Test(
        arguments: [
            "<!doctype html>", "ads example", "Thanks for using this list.", "404: Not Found",
            "{\"message\": \"rate limit\"}",
            "local-zone: \"a.example\" always_nxdomain", "ads.example CNAME .", "a..example", "a..b", ".ads.example",
            "*ads.example", "*.ads*.x", "0.0.0.0", "109.201.133.7", "168.2", "203.0.113.0/24", "2001:db8::1",

            "10.0.0.1/8", "0.0.0.0.0 a.example", "://ads.", "://x", "://[2001:db8::1]", "https://ads.example/x",
            "&ad_box_", "@a.example", "@direct/www.example", ".", "\"\"", "*", "*.", "192.0.2.1 a.example",
            "10.0.0.1\tlocalhost a.example", "2001:db8::1 a.example", "127.0.0.1 *.a.example",
            "server=192.0.2.53", "server=//192.0.2.53", "address=/a.example/192.0.2.1", "address=/#/0.0.0.0",
            "bogus-nxdomain=192.0.2.1", "address=/", "server=", "DOMAIN-SUFFIX,ads.example", "full:ads.example",
            "include:ads", "a.example\u{0}", "\u{1F}\u{FFFD}\u{8}\u{0}", "ads,example", "a.example; b.example",
            "„ads“.example", "ads.example.123", String(repeating: "a", count: 64) + ".example",
            String(repeating: "a.", count: 130) + "example", String(repeating: "x", count: 1_000_000),
        ])
    func aLineThatIsLeftOut(_ line: String) throws {
        let list = try read("a.example\r\n\n\(line)\r\n\(line)  # b\nb.example")
        #expect(said(list.taken) == ["a.example", "b.example"] && list.released.count == 0)
        #expect(list.others.count == 2 && list.others.firstLine == 3 && list.rules.count == 0 && list.lines == 4)
        let first = list.others.first
        #expect(first.utf8.count <= 60 && first.utf8.allSatisfy { (0x20..<0x7F).contains($0) })
        #expect(line.hasPrefix(first) || line.utf8.contains { !(0x20..<0x7F).contains($0) })
    }

    /// Of such a line the names are taken, and it is counted.
    @Test(arguments: [
        "0.0.0.0 a.example a..b b.example", "0.0.0.0 a.example 192.0.2.1 b.example",
        "server=/a.example/a..b/b.example/",
        "0.0.0.0 a.example ||x^ b.example",
    ])
    func aLineThatIsTakenInPart(_ line: String) throws {
        let list = try read(line)
        #expect(list.taken.patterns.map(\.description) == ["a.example", "b.example"])
        #expect(list.others.count + list.rules.count == 1)
    }

    @Test func byteOrderMarks() throws {
        let mark = "\u{FEFF}"
        let list = try read("\(mark)\(mark)a.example\n\(mark)||b.example^\n\(mark)# c\n\(mark)\n0.0.0.0 d.example")
        #expect(said(list.taken) == ["a.example", "b.example", "|d.example"] && list.others.count == 0)
    }

    @Test func theLinesOfPatterns() throws {
        let list = try read(
            "! a\n||a.example^\n@@||b.example^\n0.0.0.0 c.example 192.0.2.1 d.example localhost e.example 192.0.2.1\n\n"
                + "||192.0.2.1^\nf.example\n@@||g.example^\n0.0.0.0 192.0.2.1\nh.example\n")
        func lines(_ list: DomainList) -> [Int] {
            var (offset, lines) = (0, [Int]())
            while let entry = list.entry(after: &offset) { lines.append(list.line(at: entry.offset)) }
            return lines
        }
        #expect(said(list.taken) == ["a.example", "|c.example", "|d.example", "|e.example", "f.example", "h.example"])
        #expect(lines(list.taken) == [2, 4, 4, 4, 7, 10])
        #expect(lines(list.released) == [3, 8])
    }

    /// Two octets a name more than its text, one more for each further name of a line.
    @Test func theMemoryOfAList() throws {
        let names = (0..<20_000).map { "host-\(100_000 + $0).example" }
        let list = try read(names.map { "0.0.0.0 \($0)\n" }.joined())
        #expect(list.taken.count == 20_000)
        #expect(list.taken.octets.capacity <= names.reduce(0) { $0 + $1.utf8.count + 3 } * 17 / 16)
    }

    @Test func tooManyNames() {
        let line = "0.0.0.0" + String(repeating: " a", count: 1_000_000) + "\n"
        #expect(throws: DomainListError.tooManyNames(line: 3)) { try read(line + line + line) }
    }
}
