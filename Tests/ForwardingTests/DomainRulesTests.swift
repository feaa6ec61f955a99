import Base
import DNSWire
import Names
import TestSupport
import Testing

@testable import Forwarding

/// The group that takes a name.
@Suite struct DomainRulesTests {
    @Test func theLongestPatternHoldsWhateverTheOrder() throws {
        let lists = [
            list("corp.example", of: office), list("www.corp.example", of: shop),
            list("example", of: .group(.fallback)),
            list("a.www.corp.example", of: office), list(".", of: other),
        ]
        for order in [lists, lists.reversed(), Array(lists[2...] + lists[..<2])] {
            let rules = try DomainRules(order)
            #expect(taker("corp.example", rules) == "office corp.example")
            #expect(taker("x.corp.example", rules) == "office corp.example")
            #expect(taker("WWW.corp.example", rules) == "shop www.corp.example")
            #expect(taker("b.www.corp.example", rules) == "shop www.corp.example")
            #expect(taker("b.a.www.corp.example", rules) == "office a.www.corp.example")
            #expect(taker("notcorp.example", rules) == "fallback example")
            #expect(taker("corp.example.org", rules) == "other .")
            #expect(taker(".", rules) == "other .")
        }
    }

    @Test func belowIsAnotherPatternThanTheName() throws {
        let rules = try DomainRules([list("x.example", of: office), list("*.x.example", of: shop)])
        #expect(taker("x.example", rules) == "office x.example")
        #expect(taker("a.x.example", rules) == "shop *.x.example")
        #expect(taker("b.a.x.example", rules) == "shop *.x.example")
        let below = try DomainRules([list("*.x.example", of: shop)])
        #expect(taker("x.example", below) == "nobody")
        #expect(taker("ax.example", below) == "nobody")
    }

    @Test func singleLabels() throws {
        let rules = try DomainRules([list("", "*.nas", of: office), list("printer", of: shop), list(".", of: other)])
        #expect(taker("nas", rules) == "office ")
        #expect(taker("printer", rules) == "shop printer")
        #expect(taker("tray.printer", rules) == "shop printer")
        #expect(taker("a.nas", rules) == "office *.nas")
        #expect(taker("a.b", rules) == "other .")
        #expect(taker(".", rules) == "other .")
        #expect(taker("localhost", rules) == "localhost localhost")
    }

    @Test func aNetworkIsAsLongAsItsPrefix() throws {
        let rules = try DomainRules([
            list("10.0.0.0/9", of: office), list("10.20.0.0/16", of: shop), list("10.0.0.0/8", of: other),
            list("10.64.0.0/10", "10.20.30.0/25", of: other), list("*.10.in-addr.arpa", of: shop),
        ])
        #expect(taker("4.3.20.10.in-addr.arpa", rules) == "shop 10.20.0.0/16")
        #expect(taker("20.10.in-addr.arpa", rules) == "shop 10.20.0.0/16")
        #expect(taker("127.30.20.10.in-addr.arpa", rules) == "other 10.20.30.0/25")
        #expect(taker("128.30.20.10.in-addr.arpa", rules) == "shop 10.20.0.0/16")
        #expect(taker("4.3.63.10.in-addr.arpa", rules) == "office 10.0.0.0/9")
        #expect(taker("0.10.in-addr.arpa", rules) == "office 10.0.0.0/9")
        #expect(taker("64.10.in-addr.arpa", rules) == "other 10.64.0.0/10")
        #expect(taker("4.3.127.10.in-addr.arpa", rules) == "other 10.64.0.0/10")
        #expect(taker("4.3.128.10.in-addr.arpa", rules) == "shop *.10.in-addr.arpa")
        #expect(taker("064.10.in-addr.arpa", rules) == "shop *.10.in-addr.arpa")
        #expect(taker("_dns-sd.10.in-addr.arpa", rules) == "shop *.10.in-addr.arpa")
        #expect(taker("10.in-addr.arpa", rules) == "other 10.0.0.0/8")
        #expect(taker("in-addr.arpa", rules) == "nobody")
        #expect(taker("64.10.ip6.arpa", rules) == "nobody")
        #expect(taker("64.10.in-addr.arpa.example", rules) == "nobody")
    }

    @Test func aNetworkOfIPv6IsToldByFourBits() throws {
        let rules = try DomainRules([
            list("fd12:3456::/32", of: office), list("fd12:3450::/29", of: shop), list("2000::/3", of: other),
            list("::/0", of: .group(.fallback)),
        ])
        #expect(taker("6.5.4.3.2.1.d.f.ip6.arpa", rules) == "office fd12:3456::/32")
        #expect(taker("a.6.5.4.3.2.1.d.f.ip6.arpa", rules) == "office fd12:3456::/32")
        #expect(taker("7.5.4.3.2.1.d.f.ip6.arpa", rules) == "shop fd12:3450::/29")
        #expect(taker("8.5.4.3.2.1.d.f.ip6.arpa", rules) == "privateName fc00::/7")
        #expect(taker("5.4.3.2.1.d.f.ip6.arpa", rules) == "privateName fc00::/7")
        #expect(taker("F.0.3.ip6.arpa", rules) == "other 2000::/3")
        #expect(taker("f.0.4.ip6.arpa", rules) == "fallback ::/0")
        #expect(taker("10.3.ip6.arpa", rules) == "other 2000::/3")
        #expect(taker("10.ip6.arpa", rules) == "fallback ::/0")
    }

    @Test func whatIsExceptedGoesToTheNextShorterOfAnotherGroup() throws {
        let rules = try DomainRules([
            list("corp.example", "vpn.www.corp.example", of: office),
            list("www.corp.example", "*.lab.corp.example", of: exceptOffice),
            list("example", of: shop), list("www.corp.example", of: .except(GroupID(3))),
            list("www.corp.example", of: other),
        ])
        #expect(taker("corp.example", rules) == "office corp.example")
        #expect(taker("www.corp.example", rules) == "other www.corp.example")
        #expect(taker("vpn.www.corp.example", rules) == "office vpn.www.corp.example")
        #expect(taker("lab.corp.example", rules) == "office corp.example")
        #expect(taker("a.lab.corp.example", rules) == "shop example")
        let alone = try DomainRules([list("corp.example", of: office), list("www.corp.example", of: exceptOffice)])
        #expect(taker("www.corp.example", alone) == "nobody")
        #expect(taker("a.www.corp.example", alone) == "nobody")
        #expect(taker("a.corp.example", alone) == "office corp.example")
    }

    @Test func anExceptionOfOneNetworkLeavesTheNextShorter() throws {
        let rules = try DomainRules([
            list("10.0.0.0/10", of: office), list("10.1.0.0/16", of: exceptOffice), list("10.0.0.0/9", of: shop),
        ])
        #expect(taker("5.1.10.in-addr.arpa", rules) == "shop 10.0.0.0/9")
        #expect(taker("5.2.10.in-addr.arpa", rules) == "office 10.0.0.0/10")
    }

    @Test func interceptAndBypassGiveWayToAGroup() throws {
        let rules = try DomainRules([
            list("a.example", "b.example", of: .group(.httpdns)),
            list("a.example", "b.example", "c.example", of: .group(.fallback)),
            list("a.example", of: office),
        ])
        #expect(taker("a.example", rules) == "office a.example")
        #expect(taker("b.example", rules) == "fallback b.example")
        #expect(taker("c.example", rules) == "fallback c.example")
        let reversed = try DomainRules([
            list("a.example", of: office), list("a.example", of: .group(.fallback)),
            list("a.example", of: .group(.httpdns)),
        ])
        #expect(taker("a.example", reversed) == "office a.example")
        // `*.corp.example` wins over `corp.example` for the names below.
        let longer = try DomainRules([list("corp.example", of: .group(.fallback)), list("*.corp.example", of: office)])
        #expect(taker("corp.example", longer) == "fallback corp.example")
        #expect(taker("a.corp.example", longer) == "office *.corp.example")
    }

    @Test func onePatternOfTwoGroupsIsNamedTwice() {
        let first = DomainList(["b.example", "a.example"].map { DomainPattern($0)! })
        let second = DomainList(["c.example", "d.example", "A.example."].map { DomainPattern($0)! })
        let conflict = DomainRulesError.conflict(
            DomainPattern("a.example")!, PatternLocation(list: 0, line: 2), PatternLocation(list: 2, line: 3))
        #expect(throws: conflict) { try DomainRules([(first, office), (DomainList(), other), (second, shop)]) }
    }

    @Test(arguments: [
        ("a.example", "a.example", true), ("a.example", "*.a.example", false), ("*.a.example", "*.a.example", true),
        ("", "", true),
        (".", ".", true), (".", "", false), ("10.0.0.0/8", "10.in-addr.arpa", true), ("10.0.0.0/9", "10.0.0.0/9", true),
        ("10.0.0.0/9", "10.0.0.0/10", false), ("10.0.0.0/9", "10.128.0.0/9", false),
        ("10.0.0.0/8", "10.0.0.0/9", false),
        ("fc00::/7", "fc00::/7", true), ("fd00::/8", "d.f.ip6.arpa", true), ("::/0", "0.0.0.0/0", false),
    ])
    func whatIsTheSamePattern(_ row: (first: String, second: String, isSame: Bool)) {
        for lists in [
            [list(row.first, of: office), list(row.second, of: shop)],
            [list(row.second, of: shop), list(row.first, of: office)],
            [list(row.first, of: office), list(row.second, of: exceptOffice)],
            [list(row.second, of: exceptOffice), list(row.first, of: office)],
        ] {
            let isRefused = (try? DomainRules(lists)) == nil
            #expect(isRefused == row.isSame)
        }
        for fine in [office, .group(.httpdns), .group(.fallback), .except(GroupID(3))] {
            #expect((try? DomainRules([list(row.first, of: office), list(row.second, of: fine)])) != nil)
        }
    }

    @Test func aConflictOfFilesNamesTheirLines() throws {
        let first = try DomainList(parsing: Array("# a\n\na.example\nb.example\n".utf8).span)
        let second = try DomainList(parsing: Array("c.example\n#\n\n\nb.example".utf8).span)
        let conflict = DomainRulesError.conflict(
            DomainPattern("b.example")!, PatternLocation(list: 0, line: 4), PatternLocation(list: 1, line: 5))
        #expect(throws: conflict) { try DomainRules([(first, office), (second, shop)]) }
    }

    @Test func whereAPatternStands() throws {
        let file = try DomainList(parsing: Array("# a\n\na.example\nb.example\n".utf8).span)
        let policy = Policy(
            groups: [], routes: [:], rules: try DomainRules([list("c.example", of: shop), (file, office)]),
            otherwise: .httpdns,
            negativeTTL: 30)
        #expect(
            policy.rule(for: Name("www.b.example")!)
                == PolicyDecision(
                    taker: .group(GroupID(2)), pattern: .subtree(Name("b.example")!),
                    location: PatternLocation(list: 1, line: 4)))
        #expect(
            policy.rule(for: Name("b")!)
                == PolicyDecision(taker: .reserved(.singleLabel), pattern: .singleLabels, location: nil))
        #expect(
            policy.rule(for: Name("b.org")!) == PolicyDecision(taker: .group(.httpdns), pattern: nil, location: nil))
    }

    @Test func theLongestNames() throws {
        let label = String(repeating: "a", count: 63)
        let octets = "\(label).\(label).\(label).\(String(repeating: "b", count: 61))"
        let labels = Array(repeating: "a", count: 127).joined(separator: ".")
        let rules = try DomainRules([list(octets, of: office), list(labels, of: shop)])
        #expect(taker(octets, rules) == "office \(octets)")
        #expect(taker(labels, rules) == "shop \(labels)")
        #expect(taker(String(labels.dropFirst(2)), rules) == "nobody")
        #expect(taker(String(octets.dropFirst(64)), rules) == "nobody")
        // A pattern at each of its ends.
        let ends = (0..<127).map { String(labels.dropFirst(2 * $0)) }
        let all = try DomainRules([(DomainList(ends.map { DomainPattern($0)! }), office)])
        for end in ends { #expect(taker(end, all) == "office \(end)") }
        #expect(taker(String(repeating: "\\255", count: 63), rules) == "singleLabel ")
    }

    /// Two hundred thousand names of some twenty octets take no more than forty each, all told.
    @Test func theMemoryOfManyNames() throws {
        let text = (0..<200_000).map { "n\($0 * 5).list.example\n" }.joined()
        let rules = try DomainRules([(try DomainList(parsing: Array(text.utf8).span), office)])
        let each = Double(rules.residentOctets) / 200_000
        print("theMemoryOfManyNames: \(each) octets a name of \(Double(text.utf8.count) / 200_000 - 1)")
        #expect(each <= 40)
        for number in 0..<2000 {
            #expect(taker("www.n\(number * 500).list.example", rules) == "office n\(number * 500).list.example")
            #expect(taker("n\(number * 5 + 1).list.example", rules) == "nobody")
        }
    }
}

let (office, shop, other) = (
    DomainRules.Owner.group(GroupID(2)), DomainRules.Owner.group(GroupID(3)), DomainRules.Owner.group(GroupID(4))
)
let exceptOffice = DomainRules.Owner.except(GroupID(2))

extension DomainRulesTests {
    @Test func aNameAloneTakesNothingUnderIt() throws {
        let names = DomainList(["a.example", "a.b.example"].map { .only(Name($0)!) })
        let rules = try DomainRules([(names, office), list("b.example", of: shop)])
        #expect(taker("A.example", rules) == "office a.example")
        #expect(taker("x.a.example", rules) == "nobody")
        #expect(taker("a.b.example", rules) == "office a.b.example")
        #expect(taker("x.a.b.example", rules) == "shop b.example")
        // The parent name belongs to the other group, and so does the DS record of the name.
        #expect(taker("x.a.b.example", rules, .ds) == "shop b.example")
        #expect(taker("a.b.example", rules, .ds) == "shop b.example")
        // Both forms of one name in one list.
        for patterns in [[DomainPattern.only(Name("c.example")!), .subtree(Name("c.example")!)]] {
            for order in [patterns, patterns.reversed()] {
                let both = try DomainRules([(DomainList(order), office)])
                #expect(taker("x.c.example", both) == "office c.example")
                #expect(taker("c.example", both) == "office c.example")
            }
        }
    }

    @Test func aListFromElsewhereGivesWayToTheSamePatternOfOthers() throws {
        let listed = DomainList(
            ["a.example", "b.example", "c.example"].map { .subtree(Name($0)!) } + [.only(Name("d.example")!)])
        let second = DomainRules.Owner.listed(GroupID(4))
        let rules = try DomainRules([
            list("a.example", "d.example", of: office), list("c.example", of: .group(.httpdns)),
            (listed, .listed(GroupID(3))), (listed, second),
        ])
        #expect(taker("x.a.example", rules) == "office a.example")
        #expect(taker("d.example", rules) == "office d.example")
        #expect(taker("b.example", rules) == "shop b.example")
        #expect(taker("c.example", rules) == "shop c.example")
    }

    @Test func exceptOfItsOwnGroupGoesBeforeAList() throws {
        let listed = DomainList([.subtree(Name("a.example")!), .only(Name("b.example")!), .only(Name("x.b.example")!)])
        let rules = try DomainRules([
            list("a.example", "b.example", of: .except(GroupID(3))), (listed, .listed(GroupID(3))),
            list(".", of: .group(.fallback)),
        ])
        #expect(taker("a.example", rules) == "fallback .")
        #expect(taker("x.a.example", rules) == "fallback .")
        #expect(taker("b.example", rules) == "fallback .")
        // Like an exception of a list, this exception wins over longer patterns.
        #expect(taker("x.b.example", rules) == "fallback .")
    }

    @Test func anExceptionOfAListHoldsHoweverLongItsPatternsAre() throws {
        let rules = try DomainRules([
            list("x.free.a.example", of: office),
            (DomainList([.subtree(Name("a.example")!), .only(Name("y.free.a.example")!)]), .listed(GroupID(3))),
            (DomainList([.subtree(Name("free.a.example")!)]), .released(GroupID(3))),
            list("free.a.example", of: .listed(GroupID(4))),
        ])
        #expect(taker("a.example", rules) == "shop a.example")
        #expect(taker("x.free.a.example", rules) == "office x.free.a.example")
        // Another list takes the name, not the list with the exception.
        #expect(taker("y.free.a.example", rules) == "other free.a.example")
        let exception = rules.exception(Name("y.free.a.example")!)
        #expect(exception?.group == GroupID(3) && exception?.pattern == DomainPattern("free.a.example"))
    }

    @Test func aNameThatTheDaemonNeedsIsLeftOutOfTheListThatHasIt() throws {
        let needed = DomainList([.only(Name("dns.a.example")!), .only(Name("dns.b.example")!)])
        let rules = try DomainRules([
            (needed, .spared(GroupID(3))), list("a.example", "b.example", of: .listed(GroupID(3))),
            list("dns.b.example", of: .released(GroupID(4))),
        ])
        #expect(taker("dns.a.example", rules) == "nobody")
        #expect(taker("www.a.example", rules) == "shop a.example")
        let exception = rules.exception(Name("dns.a.example")!)
        #expect(exception?.group == GroupID(3) && exception?.pattern == DomainPattern("a.example"))
        #expect(rules.exception(Name("dns.b.example")!)?.group == GroupID(4))
        #expect(rules.exception(Name("www.a.example")!) == nil)
    }

    @Test func exceptionsHoldOverAllListsOfTheirGroup() throws {
        let rules = try DomainRules([
            list("own.good.example", of: .group(GroupID(3))), list("good.example", of: .except(GroupID(3))),
            list("a.example", "x.free.b.example", of: .listed(GroupID(3))),
            list("free.b.example", of: .released(GroupID(3))),
            list("y.good.example", "x.free.a.example", of: .listed(GroupID(3))),
            list("free.a.example", of: .released(GroupID(3))),
        ])
        #expect(taker("a.example", rules) == "shop a.example")
        for name in ["x.free.a.example", "x.free.b.example", "good.example", "y.good.example"] {
            #expect(rules.find(Name(name)!, .a).group == nil, "\(name)")
        }
        // Among the settings' own patterns the longest decides.
        #expect(taker("own.good.example", rules) == "shop own.good.example")
    }
}

func list(_ patterns: String..., of owner: DomainRules.Owner) -> (DomainList, DomainRules.Owner) {
    (DomainList(patterns.map { DomainPattern($0)! }), owner)
}

/// The group that takes a name, and its pattern.
func taker(_ text: String, _ rules: DomainRules, _ type: RecordType = .a) -> String {
    let found = rules.find(Name(text)!, type)
    guard let pattern = rules.pattern(found) else { return "nobody" }
    if let reserved = found.reserved { return "\(reserved) \(pattern)" }
    return "\(["httpdns", "fallback", "office", "shop", "other"][found.group!.rawValue]) \(pattern)"
}
