public import Base
public import Configuration
import Control
import DNSCache
public import DNSWire
import Forwarding
import Log
import Transport
import Upstreams

extension Explained {
    /// - Parameters:
    ///   - settings: those in effect, accounts' `proxy` applied.
    ///   - names: of these settings.
    init(
        _ explanation: Explanation, _ settings: Settings, _ numbers: GroupNumbers, _ names: NameLists,
        _ provenance: Provenance, at now: Tick
    ) {
        self.init(explanation)
        at = now
        hasAccount = settings.httpdns != nil
        accounts = settings.waysOfAccounts
        hostsFile = settings.fallback.hosts
        if case .group(let taker) = explanation.rule.taker {
            remark = provenance.proxies.first { numbers[$0.account] == taker }?.text
        }
        let origins = provenance.origins
        func rule(_ place: DomainPlace) -> Rule {
            let (key, file, number) = names.place(place)
            return Rule(
                key: key, place: file.map { .file($0, line: number) } ?? origins?.find(key, item: number) ?? .standard)
        }
        exception = explanation.rule.exception.map { rule($0.place) }
        if let place = explanation.rule.place {
            self.rule = rule(place)
        } else if explanation.rule.taker == .group(.httpdns) {
            let section = Settings.Group.httpdnsName
            self.rule = Rule(key: section, place: origins?.find(section: section) ?? .standard)
        } else if explanation.rule.taker == .group(.fallback), hasAccount {
            let key = settings.domains.intercept.isEmpty ? "domains.interceptFile" : "domains.intercept"
            self.rule = Rule(key: key, place: origins?.find(key) ?? .standard)
        }
    }
}

extension ForwarderLoop {
    /// What becomes of a question, and what the servers say that it may be put to. From any thread.
    /// - Parameter done: called once, on the loop; nil: too many questions are being explained.
    func explain(_ question: Explained.Question, _ done: @escaping @Sendable (Explained?) -> Void) {
        loop.submit { [self] in
            let now = Tick(nanoseconds: Clock.now())
            let asked = look { forwarder, _ in
                forwarder.explain(question.name, question.type, at: now).parts.compactMap(\.sharedQuestion)
            }
            let (store, upstreams) = look { ($1.store.upstream, $1.upstreams) }
            guard let store, !asked.isEmpty else { return explain(question, StoreLooks(), done) }
            let inquiry = StoreInquiry(asked, in: store, at: now)
            let isTaken = upstreams.begin(inquiry, at: now) { [self] in
                let looks = StoreLooks(inquiry.found, wall: WallClock.unixSeconds())
                // In a turn of its own, at whose end the servers are asked.
                loop.submit { [self] in explain(question, looks, done) }
            }
            if !isTaken { done(nil) }
        }
    }

    private func explain(
        _ question: Explained.Question, _ looks: StoreLooks, _ done: @escaping @Sendable (Explained?) -> Void
    ) {
        let inEffect = look { $1 }
        guard let names = inEffect.names else { return done(nil) }
        let now = Tick(nanoseconds: Clock.now())
        let explanation = look { forwarder, _ in
            forwarder.explain(question.name, question.type, looks, at: now)
        }
        var explained = Explained(
            explanation, inEffect.settings, inEffect.numbers, names, inEffect.provenance, at: now)
        explained.leftOut = inEffect.leftOut
        let targets = targets(explanation, question)
        guard !targets.joined().isEmpty else { return done(explained) }
        let asked = targets.joined().filter { $0.target != nil }
        let isTaken = inEffect.upstreams.inquire(asked.compactMap(\.target), at: now) { results in
            var results = results[...]
            explained.said = targets.map { servers in
                servers.map { server in
                    guard server.target != nil else { return Explained.Said(.notAsked(server.whyNot)) }
                    guard let said = results.removeFirst() else {
                        return Explained.Said(.notAsked("there was no time left"))
                    }
                    return Explained.Said(.outcome(said.outcome), milliseconds: said.milliseconds)
                }
            }
            done(explained)
        }
        if !isTaken { done(nil) }
    }

    /// A server that may be asked; with nil, why it is not.
    private typealias Candidate = (target: Inquiry.Target?, whyNot: String)

    /// The candidates of each group of the route.
    private func targets(_ explanation: Explanation, _ question: Explained.Question) -> [[Candidate]] {
        switch explanation.fate {
        case .refused, .made: return []
        case .cached, .stored, .asked, .failedLately, .nobody: break
        }
        let message = Ask.message(MessageQuestion(name: question.name, type: question.type))
        var count = 0
        return explanation.parts.map { part in
            let group = part.group
            return group.servers.map { server in
                if group.carriesAddresses, !question.asksAccounts {
                    return (nil, "it bills for that; with --ask it is asked")
                }
                guard count < Explained.mostServers else { return (nil, "there are too many") }
                count += 1
                let ask =
                    group.carriesAddresses
                    ? Ask.addresses([question.name], look { forwarder, _ in forwarder.policy.families(of: group.id) })
                    : message
                return (Inquiry.Target(server.server, of: group.id, timeout: group.timeout, ask), "")
            }
        }
    }
}

extension Daemon {
    /// What would become of a question by settings alone, of a daemon that has just started; no server is asked.
    /// - Parameters:
    ///   - environment: where `http_proxy` and its like are looked for.
    ///   - why: why no running daemon was asked.
    /// - Returns: the text, or the JSON, to be printed.
    public static func explain(
        _ name: Name, _ type: RecordType, by settings: Settings, _ origins: Settings.Origins,
        environment: [String: String] = [:], because why: String, asJSON: Bool
    ) throws(StartFailure) -> String {
        let (settings, proxies) = settings.applyingProxy(in: environment)
        var numbers = GroupNumbers()
        numbers.add(settings)
        let names = try NameLists(settings, numbers)
        let local = LocalReading(settings, [.resolvers, .hosts])
        let described = UpstreamGroups(settings, numbers, services: settings.services(numbers)) {
            local.servers(of: $0)
        }
        let policy = Policy(settings, numbers, described, names, hosts: local.hosts ?? HostsTable())
        let cache = DNSCache(bytes: 1 << 20, seed: (0, 0))
        var forwarder = Forwarder(policy: policy, timing: Timing(settings), groups: described.groups, cache: cache)
        let now = Tick(nanoseconds: Clock.now())
        forwarder.change(.sharedCache(SharedSettings(settings)), at: now)
        var explained = Explained(
            forwarder.explain(name, type, at: now), settings, numbers, names,
            Provenance(origins: origins, proxies: proxies), at: now)
        explained.leftOut = local.leftOut(of: settings)
        explained.source = .configuration(why)
        return explained.printed(asJSON: asJSON)
    }
}
