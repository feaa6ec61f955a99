import Base
import DNSCache
import DNSWire
import Names
import Testing

@testable import Forwarding

/// The groups that the daemon asks for the names of servers, and the names that depend on each other in a circle.
@Suite struct ServerNamesTests {
    private static let resolvers = GroupID(6)
    private static let (a, b, c) = (GroupID(2), GroupID(3), GroupID(4))

    /// A policy in which each group takes `NAME.example`.
    /// - Parameters:
    ///   - servers: The names of each group's servers.
    ///   - thenTry: The groups asked after a group.
    private func policy(
        _ servers: [GroupID: [String]], thenTry: [GroupID: [GroupID]] = [:], hasAccount: Bool = false
    ) -> (policy: Policy, circles: [ServerCircle]) {
        let taken = [(Self.a, "a"), (Self.b, "b"), (Self.c, "c")]
        var routes: [GroupID: [Step]] = [.fallback: [Step(.fallback)]]
        if hasAccount { routes[.httpdns] = [Step(.httpdns), Step(.fallback)] }
        for (id, _) in taken { routes[id] = [Step(id)] + (thenTry[id] ?? []).map { Step($0) } }
        let rules = try! DomainRules(
            taken.map { (DomainList([.subtree(Name("\($0.1).example")!)]), .group($0.0)) })
        let account = UpstreamGroup(.httpdns, [], .addresses(namesPerRequest: 1), .lastThatAnswered, timeout: 1)
        var policy = Policy(
            groups: [account], routes: routes, rules: rules, otherwise: hasAccount ? .httpdns : .fallback,
            negativeTTL: 30)
        let names = servers.mapValues { $0.map { Name($0)! } }
        let circles = policy.setServerNames(
            names, reports: ["collector.net", "collector.a.example"].map { Name($0)! }, resolvers: Step(Self.resolvers))
        return (policy, circles)
    }

    /// The groups that the daemon asks for the name.
    private func asked(_ name: String, _ policy: Policy) -> [GroupID] {
        guard case .ask(let steps) = policy.routeToServer(NameKey(Name(name)!), .a) else { return [] }
        return steps.map(\.group)
    }

    private func circle(_ name: String, _ owner: GroupID, _ taker: GroupID) -> ServerCircle {
        ServerCircle(name: Name(name)!, owner: owner, taker: taker)
    }

    // MARK: Whom a name is asked of

    @Test func otherNamesAreAskedOfTheAccountAndTheResolversOfResolvConf() {
        let names = [Self.a: ["dns.net"], .fallback: ["dot.net"]]
        for name in ["dns.net", "dot.net"] {
            #expect(asked(name, policy(names, hasAccount: true).policy) == [.httpdns, Self.resolvers])
            #expect(asked(name, policy(names).policy) == [Self.resolvers])
        }
        // An account cannot be asked for this name.
        #expect(asked("dns", policy([Self.a: ["dns"]], hasAccount: true).policy) == [Self.resolvers])
    }

    @Test func whatIsNoServersNameIsAskedOfNoAccount() {
        #expect(asked("collector.net", policy([Self.a: ["dns.net"]], hasAccount: true).policy) == [.fallback])
        #expect(asked("collector.a.example", policy([:], hasAccount: true).policy) == [Self.a])
        // A name that is neither a server's nor a collector's is asked of no group.
        #expect(asked("gone.net", policy([Self.a: ["dns.net"]], hasAccount: true).policy).isEmpty)
    }

    @Test func aGroupIsAskedForTheNamesItTakesButNotFallback() {
        let (policy, circles) = policy([Self.a: ["dns.b.example"]], thenTry: [Self.b: [.fallback, Self.c]])
        #expect(asked("dns.b.example", policy) == [Self.b, Self.resolvers, Self.c])
        #expect(circles.isEmpty)
    }

    /// A group that answers by itself: its address is the server's address; without one the settings are refused.
    @Test func aGroupThatAnswersSaysWhereTheServerIsOrItIsRefused() {
        for answer in [GroupAnswer.nxdomain, .nodata, .refused, .addresses([.v4(192, 0, 2, 7)])] {
            var ads = UpstreamGroup(Self.b, [], .messages, .lastThatAnswered, timeout: 1)
            ads.answer = answer
            var policy = Policy(
                groups: [ads], routes: [.fallback: [Step(.fallback)], Self.a: [Step(Self.a)]],
                rules: try! DomainRules([(DomainList([.subtree(Name("ads.example")!)]), .group(Self.b))]),
                otherwise: .fallback, negativeTTL: 30)
            let circles = policy.setServerNames([Self.a: [Name("dns.ads.example")!]], resolvers: Step(Self.resolvers))
            #expect(circles == (answer.addresses.isEmpty ? [circle("dns.ads.example", Self.a, Self.b)] : []))
            guard case .answer(let said, by: Self.b) = policy.routeToServer(NameKey(Name("dns.ads.example")!), .a)
            else {
                Issue.record("\(answer)")
                continue
            }
            #expect(said.addresses == answer.addresses)
        }
    }

    @Test func everyGroupThatNeedsTheServerIsLeftOut() {
        // b needs a, and c needs b.
        let (policy, circles) = policy(
            [Self.a: ["dns.b.example"], Self.b: ["dns.a.example"], Self.c: ["x.b.example"]],
            thenTry: [Self.b: [Self.c, .fallback], Self.a: [.httpdns]], hasAccount: true)
        #expect(asked("dns.b.example", policy) == [Self.resolvers])
        #expect(asked("dns.a.example", policy) == [.httpdns])
        #expect(asked("x.b.example", policy) == [Self.resolvers])
        #expect(circles.isEmpty)
    }

    // MARK: Circles

    @Test func aGroupThatTakesTheNameOfItsOwnServer() {
        let names = [Self.a: ["dns.a.example", "dns.net"]]
        #expect(policy(names).circles == [circle("dns.a.example", Self.a, Self.a)])
        #expect(policy(names, hasAccount: true).circles == [circle("dns.a.example", Self.a, Self.a)])
        #expect(policy(names, thenTry: [Self.a: [.fallback]]).circles.isEmpty)
    }

    @Test func twoGroupsThatTakeEachOthersNames() {
        let names = [Self.a: ["dns.b.example"], Self.b: ["dns.a.example"]]
        #expect(
            policy(names).circles == [circle("dns.b.example", Self.a, Self.b), circle("dns.a.example", Self.b, Self.a)])
        #expect(policy(names, thenTry: [Self.a: [.fallback], Self.b: [.fallback]]).circles.isEmpty)
        #expect(
            policy(names, thenTry: [Self.a: [.fallback]]).circles == [circle("dns.b.example", Self.a, Self.b)])
    }

    @Test func threeGroupsInARound() {
        let names = [Self.a: ["dns.b.example"], Self.b: ["dns.c.example"], Self.c: ["dns.a.example"]]
        let (policy, circles) = policy(names)
        #expect(circles.map(\.owner) == [Self.a, Self.b, Self.c] && circles.map(\.taker) == [Self.b, Self.c, Self.a])
        // Such settings are refused; even if they were accepted, no group would be asked.
        #expect(asked("dns.a.example", policy).isEmpty)
    }

    @Test func byWayOfFallbackThereIsNoCircleSinceItIsNotAsked() {
        let (policy, circles) = policy([.fallback: ["dns.a.example"], Self.a: ["dns.net"]])
        #expect(circles.isEmpty)
        #expect(asked("dns.a.example", policy) == [Self.a])
        #expect(asked("dns.net", policy) == [Self.resolvers])
    }

    @Test func oneNameOfServersOfTwoGroupsIsAskedOfNeither() {
        let (policy, circles) = policy(
            [Self.a: ["dns.b.example"], Self.b: ["dns.b.example"]], thenTry: [Self.b: [.fallback]])
        #expect(circles.isEmpty)
        #expect(asked("dns.b.example", policy) == [Self.resolvers])
    }
}
