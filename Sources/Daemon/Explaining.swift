public import Base
public import Configuration
import Control
public import DNSWire
import Forwarding
import Transport
import Upstreams

extension Explained {
    /// - Parameters:
    ///   - settings: The settings in effect, with accounts' `proxy` applied.
    ///   - names: The assignment of names by these settings.
    init(
        _ explanation: Explanation, _ settings: Settings, _ numbers: GroupNumbers, _ names: NameLists,
        _ provenance: Provenance, at now: Tick
    ) {
        self.init(explanation)
        at = now
        hasAccount = settings.httpdns != nil
        accounts = settings.waysOfAccounts
        hostsFile = settings.fallback.hosts.joined(separator: " or ")
        if case .group(let taker) = explanation.rule.taker {
            remark = provenance.proxies.first { numbers[$0.group.name] == taker }?.text
        }
        let origins = provenance.origins
        fileOption = origins?.fileOption ?? ""
        func rule(_ location: PatternLocation) -> Rule {
            let (key, file, item) = names.location(location)
            let read = file.map { Settings.Origins.Location.file($0, line: item) }
            return (key: key, location: read ?? origins?.find(key, item: item) ?? .standard)
        }
        exception = explanation.rule.exception.map { rule($0.location) }
        if let location = explanation.rule.location {
            self.rule = rule(location)
        } else if explanation.rule.taker == .group(.httpdns) {
            let section = Settings.Group.httpdnsName
            self.rule = (key: section, location: origins?.find(section: section) ?? .standard)
        } else if explanation.rule.taker == .group(.fallback), hasAccount {
            let key = settings.domains.intercept.isEmpty ? "domains.interceptFile" : "domains.intercept"
            self.rule = (key: key, location: origins?.find(key) ?? .standard)
        }
    }
}

extension ForwarderLoop {
    /// Explains the fate of a question, with the answers of the servers that it may go to. Callable from any thread.
    /// - Parameter done: Called once, on the loop; with nil if too many explanations are under way.
    func explain(_ question: Explained.Question, _ done: @escaping @Sendable (Explained?) -> Void) {
        loop.submit { [self] in
            let now = Tick(nanoseconds: Clock.now())
            let asked = look { forwarder, _ in
                forwarder.explain(question.name, question.type, at: now).parts.compactMap(\.sharedQuestion)
            }
            let (store, upstreams) = look { ($1.store.upstream, $1.upstreams) }
            guard let store, !asked.isEmpty else { return explain(question, StoreLooks(), since: now, done) }
            let inquiry = StoreInquiry(asked, in: store, at: now)
            let isTaken = upstreams.begin(inquiry, at: now) { [self] in
                let looks = StoreLooks(inquiry.found, wall: WallClock.unixSeconds())
                // The explanation gets a turn of its own, at whose end the servers are asked.
                loop.submit { [self] in explain(question, looks, since: now, done) }
            }
            if !isTaken { done(nil) }
        }
    }

    /// - Parameter began: When the store was asked; its time is taken off that of the servers.
    private func explain(
        _ question: Explained.Question, _ looks: StoreLooks, since began: Tick,
        _ done: @escaping @Sendable (Explained?) -> Void
    ) {
        let now = Tick(nanoseconds: Clock.now())
        guard var explained = explained(question, looks, at: now) else { return done(nil) }
        let targets = targets(explained.explanation, question)
        guard !targets.joined().isEmpty else { return done(explained) }
        let asked = targets.joined().compactMap(\.target)
        let upstreams = look { $1.upstreams }
        let inquiry = Inquiry(
            asked, upstreams.apart(Set(asked.map(\.group)), lookup: upstreams.lookup.onlooker),
            within: Explained.longest, at: began)
        let isTaken = upstreams.begin(inquiry, at: now) {
            inquiry.close()
            var results = inquiry.said[...]
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

    /// The explanation; nil before the first settings.
    fileprivate func explained(_ question: Explained.Question, _ looks: StoreLooks, at now: Tick) -> Explained? {
        look { forwarder, inEffect in
            guard let names = inEffect.names else { return nil }
            var explained = Explained(
                forwarder.explain(question.name, question.type, looks, at: now), inEffect.settings, inEffect.numbers,
                names, inEffect.provenance, at: now)
            explained.leftOut = inEffect.leftOut
            return explained
        }
    }

    /// A server that may be asked; if it may not, nil with the reason.
    private typealias Candidate = (target: Inquiry.Target?, whyNot: String)

    /// The candidates of each group of the route; for an alias, the candidates for its target.
    private func targets(_ explanation: Explanation, _ question: Explained.Question) -> [[Candidate]] {
        switch explanation.fate {
        case .refused, .made: return []
        case .cached, .stored, .asked, .failedLately, .noServer: break
        }
        let message = Ask.message(MessageQuestion(name: explanation.name, type: question.type))
        var count = 0
        return explanation.parts.map { part in
            let group = part.group
            return group.servers.map { server in
                if case .leftOut = part.standing { return (nil, "its group leaves this type out") }
                if group.carriesAddresses, !question.asksAccounts {
                    return (nil, "it bills for that; with --ask it is asked")
                }
                guard look({ $1.upstreams.lookup.hasLookedUp(server.server) }) else {
                    return (nil, "its address was not looked up yet")
                }
                guard count < Explained.mostServers else { return (nil, "there are too many") }
                count += 1
                let ask =
                    group.carriesAddresses
                    ? Ask.addresses(
                        [explanation.name], look { forwarder, _ in forwarder.policy.families(of: group.id) })
                    : message
                return (Inquiry.Target(server.server, of: group.id, timeout: group.timeout, ask), "")
            }
        }
    }
}

extension Daemon {
    /// The fate of a question by settings alone, in a daemon that has just started; no server is asked.
    /// - Parameters:
    ///   - environment: The variables that may contain `http_proxy` and the like.
    ///   - why: Why no running daemon was asked.
    /// - Returns: The text, or the JSON, to print.
    public static func explain(
        _ name: Name, _ type: RecordType, by settings: Settings, _ origins: Settings.Origins,
        environment: [String: String] = [:], because why: String, asJSON: Bool
    ) throws(StartFailure) -> String {
        let (settings, proxies) = settings.applyingProxy(in: environment)
        let forwarderLoop = try ForwarderLoop.alone(settings, Provenance(origins: origins, proxies: proxies))
        let question = (name: name, type: type, asksAccounts: false)
        guard var explained = forwarderLoop.explained(question, StoreLooks(), at: Tick(nanoseconds: Clock.now())) else {
            preconditionFailure("the loop has settings")
        }
        explained.whyAlone = why
        return explained.printed(asJSON: asJSON)
    }
}
