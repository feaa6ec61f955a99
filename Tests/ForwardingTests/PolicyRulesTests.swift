import Base
import DNSCache
import DNSWire
import Names
import Testing

@testable import Forwarding

/// The groups that are asked: HTTPDNS, resolvers, an office's resolvers, a second account before the office.
@Suite struct PolicyRulesTests {
    private let office = GroupID(2)
    private let shop = GroupID(3)

    private func policy(
        _ lists: (DomainList, DomainRules.Owner)..., behindFallback: [Step] = [], privateAllowed: [Name]? = nil
    ) throws -> Policy {
        Policy(
            groups: [
                UpstreamGroup(.httpdns, [], .addresses(namesPerRequest: 8), .lastThatAnswered, timeout: 0),
                UpstreamGroup(.fallback, [], .messages, .lastThatAnswered, timeout: 0),
                UpstreamGroup(office, [], .messages, .lastThatAnswered, timeout: 0),
                UpstreamGroup(shop, [], .addresses(namesPerRequest: 8), .lastThatAnswered, timeout: 0),
            ],
            routes: [
                .httpdns: [Step(.httpdns), Step(.fallback)], .fallback: [Step(.fallback)] + behindFallback,
                office: [Step(office)],
                shop: [Step(shop), Step(office), Step(.fallback)],
            ],
            rules: try DomainRules(lists), otherwise: .httpdns, negativeTTL: 30, privateAllowed: privateAllowed)
    }

    private func asked(_ text: String, _ policy: Policy) -> String { asked(text, .a, policy) }

    /// The groups that are asked, or the reason for which none is.
    private func asked(_ text: String, _ type: RecordType, _ policy: Policy) -> String {
        func names(_ steps: [Step]) -> String {
            steps.map { ["httpdns", "fallback", "office", "shop"][$0.group.rawValue] }.joined(separator: " ")
        }
        switch policy.route(Name(text)!, type) {
        case .ask(let steps): return names(steps)
        case .serviceBinding(let steps, _): return "binding " + names(steps)
        case .answer(let answer, by: _): return ScenarioAnswer.said(answer)
        case .alias(of: let target, by: _): return "alias of \(target)"
        }
    }

    @Test(arguments: [
        "local", "test", "home.arpa", "ipv4only.arpa", "10.in-addr.arpa", "20.172.in-addr.arpa", "d.f.ip6.arpa", "nas",
    ])
    func aGroupMayNamePrivateNames(_ name: String) throws {
        for text in [name, name == "nas" ? name : "a.\(name)"] {
            #expect(asked(text, .ptr, try policy()) == "fallback")
            #expect(asked(text, .ptr, try policy(list(".", of: .group(office)))) == "fallback")
            #expect(
                asked(text, .ptr, try policy(list("arpa", "in-addr.arpa", "8.0.0.0/6", of: .group(office))))
                    == "fallback")
            #expect(asked(text, .ptr, try policy(list(name, of: .group(office)))) == "office")
        }
        #expect(asked("a.\(name)", .ptr, try policy(list("a.\(name)", of: .group(office)))) == "office")
    }

    @Test func anAccountIsAskedForPrivateNamesThatAreGivenToIt() throws {
        let policy = try policy(
            list("local", "10.0.0.0/8", "nas", of: .group(shop)), list("printer.home.arpa", "tv", of: .group(.httpdns)),
            list("test", of: .group(.fallback)))
        #expect(asked("a.local", .a, policy) == "shop office fallback")
        #expect(asked("a.local", .mx, policy) == "office fallback")
        #expect(asked("printer.home.arpa", .aaaa, policy) == "httpdns fallback")
        #expect(asked("home.arpa", .aaaa, policy) == "fallback")
        // An HTTPDNS service cannot be asked for these names.
        #expect(asked("nas", .a, policy) == "office fallback")
        #expect(asked("tv", .a, policy) == "fallback")
        #expect(asked("1.10.in-addr.arpa", .ptr, policy) == "office fallback")
        #expect(asked("a.test", .a, policy) == "fallback")
        #expect(policy.mayAsk(shop, Name("a.local")!))
    }

    @Test func eachAccountIsAskedForItsOwnFamilies() throws {
        var policy = try policy(list("shop.example", of: .group(shop)), list("test", of: .group(office)))
        let both = policy
        policy.setFamilies([.httpdns: .ipv4, shop: .ipv6])
        #expect(policy.families(of: .httpdns) == .ipv4 && policy.families(of: shop) == .ipv6)
        #expect(policy.families(of: .fallback) == .both && both.families(of: shop) == .both)
        for (name, type, route) in [
            ("a.example", RecordType.a, "httpdns fallback"), ("a.example", .aaaa, "NOERROR none soa 30"),
            ("shop.example", .a, "NOERROR none soa 30"), ("shop.example", .aaaa, "shop office fallback"),
            ("shop.example", .mx, "office fallback"), ("shop.example", .https, "binding shop office fallback"),
        ] {
            #expect(asked(name, type, policy) == route)
            #expect(policy.reason(Name(name)!, type) == both.reason(Name(name)!, type) || route.hasPrefix("NOERROR"))
            #expect((policy.reason(Name(name)!, type) == .familyLeftOut) == route.hasPrefix("NOERROR"))
        }
        policy.setFamilies([:])
        #expect(asked("shop.example", .a, policy) == "shop office fallback")
    }

    /// A later account that leaves the family out is passed over; so is what stands in the place of a group that is not
    /// asked itself.
    @Test func aLaterAccountIsAskedForItsOwnFamilies() throws {
        var policy = Policy(
            groups: [
                UpstreamGroup(.httpdns, [], .addresses(namesPerRequest: 8), .lastThatAnswered, timeout: 0),
                UpstreamGroup(.fallback, [], .messages, .lastThatAnswered, timeout: 0),
                UpstreamGroup(shop, [], .addresses(namesPerRequest: 8), .lastThatAnswered, timeout: 0),
            ],
            routes: [.httpdns: [Step(.httpdns), Step(shop)], shop: [Step(.httpdns), Step(.fallback)]],
            rules: try DomainRules([list("shop.example", of: .group(shop))]), otherwise: .httpdns, negativeTTL: 30)
        policy.setFamilies([.httpdns: .both, shop: .ipv4])
        #expect(asked("a.example", .a, policy) == "httpdns shop" && asked("a.example", .aaaa, policy) == "httpdns")
        policy.setFamilies([.httpdns: .ipv4, shop: .both])
        #expect(asked("shop.example", .a, policy) == "httpdns fallback")
        #expect(asked("shop.example", .aaaa, policy) == "fallback")
    }

    /// The rules are the same whether a group's servers come with the settings or after them, as those of `resolvConf`.
    @Test func laterServersMakeTheRulesOfSettingsWithThem() {
        func group(_ servers: [Server]) -> UpstreamGroup {
            UpstreamGroup(office, servers, .messages, .lastThatAnswered, timeout: 0)
        }
        func rules(_ group: UpstreamGroup) -> Policy {
            Policy(
                groups: [group], routes: [office: [Step(office)]], rules: DomainRules(), otherwise: office,
                negativeTTL: 30)
        }
        let encrypted = Server(Endpoint(.v4(192, 0, 2, 1), port: 853), .tls)
        let both = [Server(Endpoint(.v4(192, 0, 2, 2), port: 53)), encrypted]
        let (before, whole, name) = (rules(group([encrypted])), rules(group(both)), Name("www.example")!)
        var later = before
        later.setServers(of: group(both))
        #expect(later.basis(name, .a, .plain) == whole.basis(name, .a, .plain))
        #expect(later.basis(name, .a, .plain) != before.basis(name, .a, .plain))
        #expect(later.trusts(office, as: whole) && !later.trusts(office, as: before))
    }

    @Test(arguments: ["localhost", "invalid", "onion", "alt", "use-application-dns.net", "resolver.arpa"])
    func whatIsNobodysIsNoGroups(_ name: String) throws {
        let policy = try policy(
            list(name, "a.\(name)", "*.\(name)", of: .group(office)), list(name, of: .group(.fallback)))
        for text in [name, "a.\(name)", "b.\(name)"] {
            for type in [RecordType.a, .ds, .https] {
                let answer = asked(text, type, policy)
                #expect(answer.hasPrefix("NXDOMAIN") || answer.hasPrefix("NOERROR"), "\(text) \(answer)")
                #expect(!policy.mayAsk(office, Name(text)!))
            }
        }
    }

    @Test func singleLabelsAreTheirs() throws {
        let all = try policy(list(".", of: .group(office)))
        #expect(asked("nas", all) == "fallback")
        #expect(asked("a.example", all) == "office")
        #expect(asked(".", .ns, all) == "office")
        let labels = try policy(list("", of: .group(office)))
        #expect(asked("nas", labels) == "office")
        #expect(asked("a.example", labels) == "httpdns fallback")
        #expect(asked(".", .ns, labels) == "fallback")
        #expect(asked("local", labels) == "fallback")
        #expect(asked("localhost", labels).hasPrefix("NOERROR 127.0.0.1"))
    }

    @Test func dsIsAskedWhereTheNameAboveGoes() throws {
        let policy = try policy(
            list("corp.example", "10.0.0.0/8", "local", "", of: .group(office)),
            list("*.example.org", of: .group(.fallback)),
            list("shop.example", of: .group(shop)))
        #expect(asked("corp.example", .a, policy) == "office")
        #expect(asked("corp.example", .ds, policy) == "fallback")
        #expect(asked("a.corp.example", .ds, policy) == "office")
        #expect(asked("10.in-addr.arpa", .ds, policy) == "office")
        #expect(asked("1.10.in-addr.arpa", .ds, policy) == "office")
        #expect(asked("shop.example", .ds, policy) == "fallback")
        #expect(asked("a.shop.example", .ds, policy) == "office fallback")
        // "" takes the name and not what it is a part of.
        #expect(asked("com", .ns, policy) == "office")
        #expect(asked("com", .ds, policy) == "fallback")
        #expect(policy.rule(for: Name("com")!, .ds).taker == .reserved(.singleLabel))
        #expect(asked(".", .ds, policy) == "fallback")
        // What is nobody's stays so, and private names go to no other.
        let all = try self.policy(list(".", of: .group(office)))
        #expect(asked("com", .ds, all) == "office")
        #expect(asked("local", .ds, all) == "fallback")
        #expect(asked("test", .ds, all) == "fallback")
        #expect(asked("onion", .ds, all).hasPrefix("NXDOMAIN"))
        #expect(policy.mayAsk(office, Name("corp.example")!))
        #expect(!policy.mayAsk(office, Name("corp.example")!, .ds))
    }

    @Test func otherTypesGoToTheFirstThatCarriesMessages() throws {
        let policy = try policy(list("shop.example", of: .group(shop)))
        #expect(asked("a.shop.example", .aaaa, policy) == "shop office fallback")
        #expect(asked("a.shop.example", .https, policy) == "binding shop office fallback")
        #expect(asked("a.shop.example", .mx, policy) == "office fallback")
        #expect(asked("a\\,b.shop.example", .a, policy) == "office fallback")
        #expect(asked("a.other.example", .mx, policy) == "fallback")
    }

    @Test func bypassIsNotHTTPDNS() throws {
        let policy = try policy(
            list("lan.example", of: .group(.fallback)), list("lan.example", "office.lan.example", of: .group(office)),
            list("x.lan.example", of: .group(.fallback)))
        #expect(asked("lan.example", policy) == "office")
        #expect(asked("a.office.lan.example", policy) == "office")
        #expect(asked("x.lan.example", policy) == "fallback")
        #expect(asked("a.example", policy) == "httpdns fallback")
    }

    @Test func bypassIsNoAccountBehindTheFallback() throws {
        let policy = try policy(
            list("lan.example", of: .group(.fallback)), list("b.example", of: .group(office)),
            behindFallback: [Step(.httpdns), Step(office), Step(shop)])
        for type in [RecordType.a, .aaaa, .https, .mx] {
            #expect(asked("x.lan.example", type, policy) == "fallback office", "\(type)")
            #expect(!policy.mayAsk(.httpdns, Name("x.lan.example")!, type), "\(type)")
        }
        // A single label goes to the fallback without a pattern.
        #expect(asked("nas", policy) == "fallback office")
    }

    @Test func whoMayHavePrivateAddresses() throws {
        let policy = try policy(
            list("corp.example", "*.lab.example", "nas", of: .group(office)), list("shop.example", of: .group(shop)),
            list("lan.example", of: .group(.fallback)), list("cdn.example", of: .group(.httpdns)),
            list("www.corp.example", of: .except(office)), privateAllowed: [Name("allowed.example")!])
        for name in [
            "corp.example", "a.lab.example", "nas", "shop.example", "a.lan.example", "x.allowed.example", "a.local",
        ] {
            #expect(!policy.refusesPrivate(Name(name)!), "\(name)")
        }
        for name in ["lab.example", "cdn.example", "a.example", "www.corp.example", "tv", "localhost"] {
            #expect(policy.refusesPrivate(Name(name)!), "\(name)")
        }
        for owner in [DomainRules.Owner.group(office), .group(.fallback)] {
            let all = try self.policy(list(".", "", of: owner), privateAllowed: [])
            for name in [".", "a.example", "nas"] { #expect(all.refusesPrivate(Name(name)!), "\(name)") }
            #expect(!all.refusesPrivate(Name("a.local")!))
        }
        #expect(!(try self.policy()).refusesPrivate(Name("a.example")!))
    }

    @Test func whichRuleIsToBeExplained() throws {
        let policy = try policy(
            list("corp.example", "10.0.0.0/8", of: .group(office)), list("www.corp.example", of: .except(office)))
        func rule(_ text: String, _ type: RecordType = .a) -> PolicyDecision { policy.rule(for: Name(text)!, type) }
        let first = PolicyDecision(
            taker: .group(office), pattern: DomainPattern("corp.example")!, location: PatternLocation(list: 0, line: 1))
        let nobody = PolicyDecision(taker: .group(.httpdns), pattern: nil, location: nil)
        #expect(rule("a.corp.example") == first)
        #expect(rule("a.corp.example", .ds) == first)
        #expect(rule("corp.example", .ds) == nobody)
        let left = PolicyDecision.Exception(
            group: office, pattern: DomainPattern("www.corp.example")!, location: PatternLocation(list: 1, line: 1))
        #expect(
            rule("www.corp.example")
                == PolicyDecision(taker: .group(.httpdns), pattern: nil, location: nil, exception: left))
        #expect(rule("4.3.2.10.in-addr.arpa", .ptr).pattern?.description == "10.0.0.0/8")
        #expect(
            rule("4.3.20.172.in-addr.arpa", .ptr)
                == PolicyDecision(
                    taker: .reserved(.privateName), pattern: DomainPattern("172.16.0.0/12")!, location: nil))
        #expect(rule("a.onion").taker == .reserved(.nonexistent))
    }

    /// RFC 9462: the daemon answers at two names if it has a name to announce, for types other than SVCB with NODATA.
    @Test func theWaysToAskAreTold() throws {
        var policy = try policy()
        let names = ["_dns.resolver.arpa", "_dns.ns.example"]
        #expect(names.map { asked($0, .svcb, policy) } == ["NOERROR none soa 3600", "binding httpdns fallback"])
        policy.designation = Designation(
            name: Name("ns.example")!, [Designation.Listener(isHTTPS: false, port: 853, addresses: [])],
            path: "/dns-query")
        for name in names {
            #expect(policy.reason(Name(name)!, .svcb) == .designation)
            guard case .answer(let answer, by: nil) = policy.route(Name(name)!, .svcb) else {
                Issue.record("it is asked of others")
                continue
            }
            #expect(answer.head.answerCount == 1 && answer.isCacheable)
        }
        #expect(names.map { asked($0, .https, policy) } == ["NOERROR none soa 300", "NOERROR none soa 300"])
        #expect(asked("x._dns.ns.example", .txt, policy) == "fallback")
        #expect(asked("x._dns.resolver.arpa", .svcb, policy) == "NOERROR none soa 3600")
        #expect(asked("resolver.arpa", .svcb, policy) == "NOERROR none soa 3600")
    }

    /// A client knows the usual ports, so a record tells any other.
    @Test(
        arguments: [
            (false, 853, nil), (true, 443, nil), (false, 443, 443), (true, 853, 853), (true, 8443, 8443),
        ] as [(Bool, UInt16, UInt16?)])
    func theUsualPortGoesWithoutSaying(_ row: (isHTTPS: Bool, port: UInt16, told: UInt16?)) {
        let name = Name("ns.example")!
        let listener = Designation.Listener(isHTTPS: row.isHTTPS, port: row.port, addresses: [])
        let data = Answer.serviceData(
            priority: 1, target: name, alpn: [row.isHTTPS ? "h2" : "dot"], port: row.told,
            dohPath: row.isHTTPS ? "/dns-query{?dns}" : nil, hints: [])
        let answer = Designation(name: name, [listener], path: "/dns-query").answer(name, .svcb)
        #expect(answer == .services(name, [data], ttl: 300))
    }

    /// One listener for each port, with its addresses if they lead a client to this machine.
    @Test func waysToAskAreMadeOfAddresses() {
        func endpoints(_ texts: String...) -> [Designation.Listener] {
            Designation.Listener.all(texts.compactMap { Endpoint($0) }, isHTTPS: true)
        }
        func endpoint(_ port: UInt16, _ addresses: String...) -> Designation.Listener {
            Designation.Listener(isHTTPS: true, port: port, addresses: addresses.compactMap { IPAddress($0) })
        }
        #expect(endpoints() == [])
        #expect(endpoints("0.0.0.0:443", "[::]:443") == [endpoint(443)])
        #expect(endpoints("192.0.2.1:443", "[2001:db8::1]:443") == [endpoint(443, "192.0.2.1", "2001:db8::1")])
        #expect(endpoints("127.0.0.1:443", "192.0.2.1:8443") == [endpoint(443), endpoint(8443, "192.0.2.1")])
        #expect(endpoints("127.0.0.1:443", "192.0.2.1:443") == [endpoint(443)])
        #expect(endpoints("192.0.2.1:0", "192.0.2.1:443") == [endpoint(443, "192.0.2.1")])
    }

    @Test func aRouteMayHaveAsManyGroupsAsAQuestionCanPass() {
        let all = (0..<64).map { GroupID($0) }
        let policy = Policy(
            groups: all.map { UpstreamGroup($0, [], .messages, .lastThatAnswered, timeout: 0) },
            routes: [.httpdns: all.map { Step($0) }], rules: DomainRules(), otherwise: .httpdns, negativeTTL: 30)
        guard case .ask(let steps) = policy.route(Name("www.example.com")!, .txt) else {
            Issue.record("nobody is asked")
            return
        }
        #expect(steps.map(\.group) == all)
    }
}
