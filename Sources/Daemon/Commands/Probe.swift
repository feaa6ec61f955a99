public import Base
public import Configuration
public import DNSWire
import Forwarding
import Log
import Names
import Upstreams

/// Checks what the daemon depends on step by step, over the daemon's own code, and reports in plain words what works.
public final class Probe: @unchecked Sendable {
    // Unchecked: everything is used on the loop alone once it has started.
    private let straight: StraightAsking
    private let httpdns: Settings.Group?
    private let fallback: GroupTitle
    private let asking: @Sendable (String) -> Void
    private let say: @Sendable (String) -> Void
    /// What the daemon would log of these settings at its start.
    private var remarks: [String] = []
    private var steps: [Step]
    /// The store of the shared cache is still to be tried, after all servers.
    private var isStoreDue = false
    /// The only group to be asked; nil: HTTPDNS, and then the fallback.
    private var only: UpstreamGroup?
    private var current: Step?
    private var begun = 0
    /// Whether an address of the current server has taken a connection.
    private var isConnected = false
    /// The groups that have a server which answered.
    private var working: Set<GroupID> = []
    /// The first failure of each group, in the words of the log.
    private var failures: [GroupID: String] = [:]

    /// A server to be asked, with its group.
    private struct Step {
        let group: UpstreamGroup
        let server: Server
        let name: Name
    }

    /// - Parameters:
    ///   - chosen: the name of the group to be asked. After `httpdns`, and without such a section in its place, those of
    ///     `[fallback]` are asked, too.
    ///   - name: the name to ask for; nil: one that the group can be expected to know.
    ///   - environment: where `http_proxy` and the like are looked for.
    ///   - asking: called on the loop with each server before it is asked, and which of how many it is.
    ///   - say: called on the loop with one line after the other; failures have the words of the daemon's log.
    public init(
        _ settings: Settings, group chosen: String = Settings.Group.httpdnsName, name: Name? = nil,
        environment: [String: String] = [:], asking: @escaping @Sendable (String) -> Void = { _ in },
        say: @escaping @Sendable (String) -> Void
    ) throws(StartFailure) {
        (httpdns, fallback) = (settings.httpdns, settings.fallback.group.title)
        (self.asking, self.say) = (asking, say)
        straight = try StraightAsking(settings)
        let (servers, leftOut) = straight.local.fallback(of: settings)
        let any = settings.nameToLookUp
        steps = straight.groups.flatMap { group in
            let named = settings.upstreams.first { $0.name == group.name }
            let name = name ?? named?.domains.lazy.compactMap(\.nameToAsk).first ?? any
            return group.servers.map { Step(group: group, server: $0, name: name) }
        }
        steps.removeAll { step in
            step.group.name != chosen && (chosen != Settings.Group.httpdnsName || step.group.id != .fallback)
        }
        remarks += settings.applyingProxy(in: environment).found.filter { $0.account == chosen }.map(\.text)
        if chosen != Settings.Group.httpdnsName {
            guard let group = steps.first?.group else {
                throw settings.nobodyToAsk(chosen)
            }
            only = group
            return
        }
        isStoreDue = settings.sharedCache.server != nil
        if settings.httpdns == nil { remarks.append(Report.noService(settings)) }
        guard settings.isFallbackNeeded else { return }
        remarks += leftOut.map(\.words)
        if servers.isEmpty { remarks.append(Report.noFallback(settings)) }
    }

    /// Takes all steps, one after the other.
    /// - Parameter done: called once at the end; with nil if questions can be answered as configured, else with what
    ///   does not work, what becomes of clients' questions, and the first reason.
    public func run(_ done: @escaping @Sendable (String?) -> Void) {
        straight.next = { [unowned self] in begin() }
        straight.settled = { [unowned self] in settle($0) }
        straight.progressed = { [unowned self] in progressed($0) }
        straight.start(
            begin: { [self] in for remark in remarks { say(remark) } },
            conclude: { [self] in
                let trouble = conclude()
                return { done(trouble) }
            })
    }

    private func begin() -> Bool {
        if let reach = straight.reach, begun == 0 { say(reach) }
        guard !steps.isEmpty else { return tryStore() }
        let step = steps.removeFirst()
        begun += 1
        (current, isConnected) = (step, false)
        asking("\(who) (\(begun) of \(begun + steps.count))")
        straight.ask(
            step.group, step.server,
            step.group.carriesAddresses
                ? .addresses([step.name], .both) : .message(MessageQuestion(name: step.name, type: .a)))
        return true
    }

    /// - Returns: whether there is a store that was not tried yet.
    private func tryStore() -> Bool {
        guard isStoreDue else { return false }
        (isStoreDue, current) = (false, nil)
        asking("the shared cache")
        straight.askStore { [unowned self] why in
            say(
                why.map { Report.withoutStore($0) }
                    ?? "shared cache: takes and gives answers, after \(straight.elapsed) ms")
        }
        return true
    }

    private func progressed(_ progress: StreamUpstream.Progress) {
        switch progress {
        case .connected(let endpoint, let silent):
            isConnected = true
            for other in silent { say("\(who): connect: no answer yet from \(other)") }
            say("\(who): connected to \(endpoint) after \(straight.elapsed) ms")
        case .secured(let version): say("\(who): \(version), certificate accepted after \(straight.elapsed) ms")
        }
    }

    private func settle(_ outcome: Outcome) {
        guard let step = current else { return }
        switch outcome {
        case .failed(let failure):
            var failure = failure
            // A firewall that drops packets is told apart from a server that takes connections and is silent.
            if failure.kind == .timedOut, step.server.kind != .plain {
                let addresses = step.server.endpoints.map { " \($0)" }.joined(separator: ",")
                failure.detail =
                    isConnected
                    ? "connected, but \(failure.detail)"
                    : "connect: \(failure.detail)" + (addresses.isEmpty ? "" : " from\(addresses)")
            }
            let line = Report.fails(who, failure)
            if failures[step.group.id] == nil { failures[step.group.id] = line }
            say(line)
        case .addresses(let results, _):
            working.insert(step.group.id)
            say("\(who) answers after \(straight.elapsed) ms: \(results.first?.words ?? "nothing about") \(step.name)")
        case .answer(let answer):
            working.insert(step.group.id)
            let words = answer.head.responseCode == .noError ? "" : ": \(answer.head.responseCode) for \(step.name)"
            say("\(who) answers after \(straight.elapsed) ms\(words)")
        }
    }

    /// The server that is asked now, by its name in the log.
    private var who: String {
        current.map { "\($0.group.title.text) \($0.server)" } ?? "nobody"
    }

    /// - Returns: what does not work; nil if the group does, or without a service the fallback.
    private func conclude() -> String? {
        if let only {
            let title = only.title.noun
            guard working.contains(only.id) else {
                return failures[only.id].map { "\(title) does not work; \($0)" } ?? "\(title) does not work"
            }
            say("\(title) works")
            return nil
        }
        if httpdns?.httpOnly ?? false { say("httpOnly: \(fallback.noun) is never asked") }
        if httpdns != nil, working.contains(.httpdns) {
            say("HTTPDNS works")
            return nil
        }
        if httpdns == nil, working.contains(.fallback) {
            say("\(fallback.noun) works")
            return nil
        }
        let trouble =
            working.contains(.fallback)
            ? "HTTPDNS does not work, so \(fallback.noun) would answer its names"
            : "\(httpdns == nil ? fallback.noun : "HTTPDNS") does not work, so clients would get SERVFAIL, or what is cached"
        let first = failures[httpdns == nil ? .fallback : .httpdns]
        return first.map { "\(trouble); \($0)" } ?? trouble
    }
}

extension DomainPattern {
    /// A name that a group with this pattern can be expected to know.
    fileprivate var nameToAsk: Name? {
        if case .subtree(let name) = self, name != .root { name } else { nil }
    }
}

extension NameAddresses {
    fileprivate var words: String {
        func count(_ family: FamilyAddresses) -> Int {
            if case .addresses(let addresses, _) = family { addresses.count } else { 0 }
        }
        switch count(ipv4) + count(ipv6) {
        case 0: return "no record (is its domain registered with the account?) of"
        case 1: return "1 address of"
        case let found: return "\(found) addresses of"
        }
    }
}

extension Settings {
    /// Why a group has no server that a command could ask.
    func nobodyToAsk(_ name: String) -> StartFailure {
        let group = groups.first { $0.name == name }
        let words =
            group?.answer.map {
                "it answers \"\($0)\" itself and asks no server; httpdnsd explain NAME says which names get that"
            } ?? "it has no server that could be asked"
        return .setting(key: group?.section ?? name, words)
    }

    /// A name that has addresses, as far as the settings say: the first of `domains.intercept`, else `example.com`.
    public var nameToLookUp: Name { domains.intercept.first ?? Name("example.com") ?? .root }
}
