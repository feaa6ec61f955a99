public import Base
public import Configuration
public import DNSWire
import Forwarding
import Log
import Names
import Synchronization
import Transport
import Upstreams

/// Checks all that the daemon depends on step by step, with the daemon's own code, and reports in plain words.
public struct Probe {
    private let straight: StraightAsking
    private let settings: Settings
    /// The remarks that the daemon would log about these settings at its start.
    private var remarks: [String] = []
    private var steps: [Step] = []
    /// The only group to ask; if nil, ``first`` is asked, then the groups of its `thenTry`, the fallback and the store.
    private var only: UpstreamGroup?
    /// `[httpdns]`; without it, the group that takes the names without another group.
    private let first: Settings.Group
    private let asking: @Sendable (String) -> Void
    private let say: @Sendable (String) -> Void

    /// A server to ask, with its group.
    private struct Step {
        let group: UpstreamGroup
        let server: Server
        let name: Name
        /// Whether the group may be asked for the name, so that a refusal is a failure.
        let takesName: Bool
        /// The server by its name in the log.
        var who: String { "\(group.title) \(server)" }
    }

    /// - Parameters:
    ///   - chosen: The name of the group to ask. After `httpdns`, or the group with `.` if there is no such section, the
    ///     groups of its `thenTry` and `[fallback]` are asked, too.
    ///   - name: The name to ask for; nil for a name that the group probably has and may be asked for. A `[fallback]`
    ///     that is not in the `thenTry` of `httpdns` is asked for neither, but for ``Settings/commonName``.
    ///   - environment: The variables that may contain `http_proxy` and the like.
    ///   - asking: Called with each server before it is asked, with its number and the number of all servers.
    ///   - say: Called with one line after the other, perhaps on a queue of its own; failures have the words of the
    ///     daemon's log.
    public init(
        _ settings: Settings, group chosen: String = Settings.Group.httpdnsName, name: Name? = nil,
        environment: [String: String] = [:], asking: @escaping @Sendable (String) -> Void = { _ in },
        say: @escaping @Sendable (String) -> Void
    ) throws(StartFailure) {
        (self.settings, self.asking, self.say) = (settings, asking, say)
        straight = try StraightAsking(settings)
        let isUsual = chosen == Settings.Group.httpdnsName
        let fallback = Settings.Group.fallbackName
        let policy = straight.forwarderLoop.look { forwarder, _ in forwarder.policy }
        let takesAll = straight.groups.first { $0.id == policy.mainSteps.first?.group }?.name
        first = settings.httpdns ?? settings.groups.first { $0.name == takesAll } ?? settings.fallback.group
        let route = isUsual ? [first.name] + first.thenTry : [chosen]
        let beside = isUsual && !route.contains(fallback) ? [fallback] : []
        for groupName in route + beside {
            guard let group = straight.groups.first(where: { $0.name == groupName }) else { continue }
            let own = settings.upstreams.first { $0.name == groupName }?.domains.lazy.compactMap(\.nameToAsk).first
            let ofAccount = settings.nameToLookUp
            let usual = own ?? (policy.leads(ofAccount, .a, to: group.id) ? ofAccount : Settings.commonName)
            let asked = beside.contains(groupName) ? Settings.commonName : name ?? usual
            let takesName = policy.leads(asked, .a, to: group.id)
            steps += group.servers.map { Step(group: group, server: $0, name: asked, takesName: takesName) }
        }
        remarks += settings.applyingProxy(in: environment).found.filter { $0.group.name == chosen }.map(\.text)
        if !isUsual {
            guard let group = steps.first?.group else { throw settings.noServerToAsk(chosen) }
            only = group
            return
        }
        if settings.httpdns == nil { remarks.append(Report.noService(settings)) }
        guard settings.isFallbackNeeded else { return }
        remarks += straight.leftOut[Settings.Group.fallbackName, default: []].map(\.words)
        if !steps.contains(where: { $0.group.id == .fallback }) { remarks.append(Report.noFallback) }
    }

    /// Whether an account is asked, which knows only host names.
    public var asksAccount: Bool { steps.contains { $0.group.carriesAddresses } }

    /// Takes all steps, one after the other; called only once in this value's life.
    /// - Returns: nil if questions can be answered as configured; else the failing parts, the effect on clients'
    ///   questions, and the first reason.
    public func run() throws(StartFailure) -> String? {
        defer { straight.close() }
        for line in remarks + [straight.start()].compactMap(\.self) { say(line) }
        var working: Set<String> = []
        /// The first failure of each group.
        var failures: [String: String] = [:]
        for (index, step) in steps.enumerated() {
            asking("\(step.who) (\(index + 1) of \(steps.count))")
            let (line, isAnswer) = ask(step)
            say(line)
            if isAnswer {
                working.insert(step.group.name)
            } else if failures[step.group.name] == nil {
                failures[step.group.name] = line
            }
        }
        if only == nil, settings.sharedCache.server != nil { try tryStore() }
        guard let trouble = conclude(working) else { return nil }
        let reason = failures[only?.name ?? first.name]
        return reason.map { "\(trouble); \($0)" } ?? trouble
    }

    private func tryStore() throws(StartFailure) {
        asking("the shared cache")
        let began = Clock.now()
        let trouble = try straight.tryStore(settings.sharedCache)
        say(
            trouble.map { Report.withoutStore($0) }
                ?? "shared cache: takes and gives answers, after \(Self.elapsed(since: began)) ms")
    }

    /// In milliseconds.
    private static func elapsed(since began: UInt64) -> UInt64 { (Clock.now() - began) / 1_000_000 }

    /// - Returns: The server's answer, or its failure in the words of the log.
    private func ask(_ step: Step) -> (line: String, isAnswer: Bool) {
        let (began, who) = (Clock.now(), step.who)
        let isConnected = Mutex(false)
        let question: Ask =
            step.group.carriesAddresses
            ? .addresses([step.name], .both) : .message(MessageQuestion(name: step.name, type: .a))
        let (outcome, took) = straight.ask(step.group, step.server, question) { [say] progress in
            let elapsed = Self.elapsed(since: began)
            switch progress {
            case .connected(let endpoint, let silent):
                isConnected.withLock { $0 = true }
                for other in silent { say("\(who): connect: no answer yet from \(other)") }
                say("\(who): connected to \(endpoint) after \(elapsed) ms")
            case .secured(let version): say("\(who): \(version), certificate accepted after \(elapsed) ms")
            }
        }
        switch outcome {
        case .failed(var failure):
            // A firewall that drops packets differs from a server that takes connections and is silent.
            if failure.kind == .timedOut, step.server.kind != .plain {
                let addresses = step.server.endpoints.map { " \($0)" }.joined(separator: ",")
                failure.detail =
                    isConnected.withLock(\.self)
                    ? "connected, but \(failure.detail)"
                    : "connect: \(failure.detail)" + (addresses.isEmpty ? "" : " from\(addresses)")
            }
            return (Report.fails(who, failure), false)
        case .addresses(let results, _):
            return ("\(who) answers after \(took) ms: \(results.first?.words ?? "nothing about") \(step.name)", true)
        case .answer(let answer):
            let words = answer.head.responseCode == .noError ? "" : ": \(answer.head.responseCode) for \(step.name)"
            return ("\(who) answers after \(took) ms\(words)", answer.refusal == nil || !step.takesName)
        }
    }

    /// Reports the working parts.
    /// - Returns: The failing parts; nil if the group works.
    private func conclude(_ working: Set<String>) -> String? {
        if only == nil, !settings.isFallbackNeeded { say("httpOnly: \(settings.fallback.group.title) is never asked") }
        let (name, noun) = only.map { ($0.name, $0.title) } ?? (first.name, first.title)
        if working.contains(name) {
            say("\(noun) works")
            return nil
        }
        if only != nil { return "\(noun) does not work" }
        let next = first.thenTryOn.contains(.failure) ? first.thenTry : []
        let substitutes = next.compactMap { name in
            steps.first { $0.group.name == name && working.contains(name) }?.group.title
        }
        return substitutes.first.map { "\(noun) does not work, so \($0) would answer its names" }
            ?? "\(noun) does not work, so clients would get SERVFAIL, or what is cached"
    }
}

extension DomainPattern {
    /// A name that a group with this pattern probably has.
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
    func noServerToAsk(_ name: String) -> StartFailure {
        let group = groups.first { $0.name == name }
        let words =
            group?.answer.map {
                "it answers \"\($0)\" itself and asks no server; httpdnsd explain NAME says which names get that"
            } ?? "it has no server that could be asked"
        return .setting(key: group?.section ?? name, words)
    }

    /// A name that has addresses, as far as the settings show: the first of `domains.intercept`, else `example.com`.
    public var nameToLookUp: Name { domains.intercept.first ?? Self.commonName }

    /// A name that has addresses and betrays nothing.
    static let commonName: Name = Name("example.com") ?? .root
}
