import Base
import Glibc

/// The rules that must always hold, checked by records of its own: each answer, its server and time, and each question.
nonisolated(unsafe) let judge = Judge()

final class Judge {
    private(set) var faults: [String] = []
    /// A digest of all events: the same for the same seed.
    private(set) var digest: UInt64 = 0
    var answered = 0
    var stale = 0
    /// The number of answers of which `explain` had said that no server is asked for them.
    var explained = 0
    private(set) var queries = 0
    var crossings = Crossings()
    /// The time of the last event of each kind, in the life of the daemon.
    private var happened: [Feature: UInt64] = [:]

    /// The moment at which all troubles will have been over for a while.
    private(set) var isCalmAt: UInt64 = 0
    /// The same for the troubles that are not this machine's alone.
    private var areServersCalmAt: UInt64 = 0
    /// The number of troubles so far.
    private(set) var troubles = 0
    /// The end of the time in which servers may be full, so that their excess questions go to the next server.
    private var isCrowdedUntil: UInt64 = 0
    /// When each name was asked of its first server, all being well.
    private var asksFirst: [String: UInt64] = [:]
    /// Since when each first server has been known to answer: it was asked for a name that it answers, all being well.
    private var answersSince: [String: UInt64] = [:]
    /// When each group was last asked for a name that is silent, which takes the room of others at a server with little room.
    private var heldUpAt: [String: UInt64] = [:]
    /// When each group was first asked after that for a name that it answers; until then it may count as down.
    private var isUpSince: [String: UInt64] = [:]
    /// Nanoseconds within which a server that is well answers.
    private static let answered: UInt64 = 1_000_000_000
    /// Since when each group has asked its other servers alone, all being well.
    private var asksOthersSince: [String: UInt64] = [:]
    /// Nanoseconds after which a server that was set aside is tried at the latest.
    private static let longestPause: UInt64 = 61_000_000_000

    struct Said {
        let host: Host
        let name: String
        let type: UInt16
        let at: UInt64
        let ttl: UInt32
        /// The query that it answers; nil: it answers any query.
        let query: DNSQuery?
        /// By the time that the machine was awake.
        var awake = kernel.awake
    }
    var said: [Said] = []
    /// What groups have said that there is not.
    struct Denied {
        /// Until when it may be repeated, and when it was said last, also by the time that the machine was awake; in nanoseconds.
        let until: UInt64
        let at: UInt64
        let awake: UInt64
        /// Whether it arrives at once.
        let arrives: Bool
        /// The last query that it answers; nil: it answers any query.
        let query: DNSQuery?
    }
    var denied: [String: Denied] = [:]
    /// The prefixes of translators that resolvers have shown, and whether it is sure that the daemon learned of them.
    private(set) var prefixes: [(prefix: NAT64Prefix, at: UInt64, isSure: Bool)] = []
    /// The times at which hosts were last asked.
    private var lately: [String: UInt64] = [:]
    /// When names were looked up, hosts were asked, and clients asked lately, by the time that the machine was awake.
    private var bills: [String: [UInt64]] = [:]
    private var attempts: [String: [UInt64]] = [:]
    var questionTimes: [String: [UInt64]] = [:]
    /// The times at which the operator had names explained.
    private var explanations: [String: [UInt64]] = [:]
    /// The names that the operator had flushed, with the times of the command and of its end; nil: all names.
    var forgotten: [(name: String?, askedAt: UInt64, doneAt: UInt64, era: Int)] = []
    var lastFlush: UInt64 = 0
    /// When a network or the routes of a family went or came back: what is right for clients may have changed meanwhile.
    var lastRouteChange: UInt64 = 0
    /// The plans; each takes effect at `by` at the latest.
    var plans: [(plan: Plan, from: UInt64, by: UInt64, slept: UInt64)] = []
    var questions: [Endpoint: [UInt16: Asked]] = [:]
    /// The times at which the clock was set back, and the nanoseconds.
    var setBack: [(at: UInt64, by: UInt64)] = []
    /// The number of times at which all entries were dropped, or earlier questions needed no answer.
    var era = 0

    struct Asked {
        var query: DNSQuery
        let at: UInt64
        let slept: UInt64
        let era: Int
        let plan: Plan
        /// The index of the plan.
        let index: Int
        /// Whether the cache has a stale entry.
        let hasStale: Bool
        /// The code is due within a second, whatever trouble one server has, as long as no further trouble begins: as
        /// long as ``troubles`` has this value. Nil: nothing is promised.
        let promise: Int?
        /// The predicted code of an answer without a server; nil: `explain` predicted none, or was not asked.
        let foretold: UInt8?
        var answers = 0

        /// The beginning of each message about it: name, type and moment, which are in the script, too.
        var text: String {
            "\(query.name) \(Script.name(ofType: query.type)), asked at \(Script.time(at - Script.start)):"
        }
    }

    /// The longest time for which a query can be under way, in nanoseconds.
    static let underWay: UInt64 = 10_000_000_000
    /// The longest time for which an answer can be under way: the longest time-out of a plan, and an incomplete second.
    static let slack: UInt64 = 3_000_000_000
    /// The longest time until the daemon knows of a lost route or a changed file.
    static let noting: UInt64 = 2_000_000_000
    static let forgedSerial: UInt32 = 0x1F00_0000

    func begin() {
        (faults, said, denied, bills, questions, plans, questionTimes) = ([], [], [:], [:], [:], [], [:])
        (lately, attempts, setBack, explanations, forgotten) = ([:], [:], [], [:], [])
        (bogusNames, prefixes) = ([], [])
        (isCalmAt, areServersCalmAt, isCrowdedUntil, lastFlush, lastRouteChange) = (0, 0, 0, 0, 0)
        (asksFirst, answersSince, asksOthersSince, heldUpAt, isUpSince) = ([:], [:], [:], [:], [:])
        digest = 14_695_981_039_346_656_037
        era = 0
    }

    func happens(_ feature: Feature) { (happened[feature], lastChange) = (kernel.now, kernel.awake) }
    /// The time of the last event that may decide about answers,
    /// by the clock that stops while the machine sleeps.
    private(set) var lastChange: UInt64 = 0

    /// Questions of clients, answers to them, and names that were sent to accounts, since the daemon started.
    var figures = Figures()
    struct Figures {
        let since = kernel.now
        var asked = 0
        var answered = 0
        var billed: [String: Int] = [:]
    }

    /// Nothing has happened yet in the life of a daemon.
    /// - Parameter feature: The kind of its start; nil: it starts with the machine.
    func begins(with feature: Feature?) {
        // A daemon that is stopped at once may not have reached the store.
        if recent().contains(where: \.hasStore) { forgotten.removeAll { $0.doneAt + Self.underWay > kernel.now } }
        (happened, figures, lastChange) = ([:], Figures(), kernel.awake)
        if let feature { happens(feature) }
    }

    /// The events within the last hour.
    var recentEvents: [Feature] { happened.filter { $0.value + 3_600_000_000_000 > kernel.now }.map(\.key) }

    func fault(_ text: String) {
        guard faults.count < 20 else { return }
        faults.append("\(Script.time(kernel.now - Script.start)) \(text)")
    }

    /// Ends the process, which cannot check anything more.
    func stuck(_ text: String) {
        print("\(Script.time(kernel.now - Script.start)) \(text)")
        exit(Self.stuckStatus)
    }
    static let stuckStatus: Int32 = 3

    /// A trouble lasts for so many seconds, and servers may be left alone for two minutes because of it.
    /// - Parameter isShortage: This machine lacks something, for which no server is left alone.
    func isTroubled(seconds: Int, isShortage: Bool = false) {
        troubles += 1
        lastChange = kernel.awake
        isCalmAt = max(isCalmAt, kernel.now + UInt64(seconds + 120) * 1_000_000_000)
        if !isShortage { areServersCalmAt = isCalmAt }
    }

    /// Whether silent names may hold up others of a group from a moment on, or have others asked instead.
    func mayHoldUp(_ group: Plan.Group, since moment: UInt64) -> Bool {
        guard let last = heldUpAt[group.name] else { return false }
        let isUp = isUpSince[group.name].map { $0 + Self.answered < moment } ?? false
        return group.concurrency < 64 && last + Self.underWay > moment || !isUp && !group.thenTry.isEmpty
    }

    /// For so many seconds there are more questions than servers have room for, and those under way then end later.
    func isCrowded(seconds: Int) {
        isCrowdedUntil = max(isCrowdedUntil, kernel.now + UInt64(seconds) * 1_000_000_000 + Self.underWay)
    }

    func note(_ values: UInt64...) {
        for value in values { digest = (digest ^ value) &* 1_099_511_628_211 }
    }

    // MARK: Whom the daemon asks

    /// - Parameter delay: Nanoseconds until it holds, at the longest. What the plan before has not yet taken over, as files that
    ///   could not be read, it has not taken over either.
    func works(by plan: Plan, within delay: UInt64 = 0) {
        plans.append((plan, kernel.now, max(kernel.now + delay, plans.last?.by ?? 0), kernel.slept))
        // A server that was asked just now may have lost the question to the new plan before it answered.
        answersSince = answersSince.filter { $0.value + Self.answered < kernel.now }
        asksOthersSince = [:]
    }

    /// The first plan by which a question may be answered.
    func first(_ asked: Asked) -> Int {
        var index = asked.index
        while index > 0, asked.at < plans[index].by { index -= 1 }
        return index
    }

    /// The plans that may have held at a moment.
    func plans(at moment: UInt64) -> [Plan] {
        plans.indices.filter {
            plans[$0].from <= moment && ($0 + 1 == plans.count || plans[$0 + 1].by + Self.underWay >= moment)
        }.map { plans[$0].plan }
    }

    /// The plans that have held since a moment.
    func plans(since moment: UInt64) -> [Plan] {
        plans.indices.filter { $0 + 1 == plans.count || plans[$0 + 1].by + Self.underWay >= moment }.map {
            plans[$0].plan
        }
    }

    /// The answer to a question for a type without records; nil: the question may go to servers.
    static func refusal(ofType type: UInt16) -> UInt8? {
        switch type {
        case 251, 252: 5
        case 41, 128...254: 1
        default: nil
        }
    }

    /// The plans that held a moment ago, in nanoseconds.
    private func recent(within time: (Plan) -> UInt64 = { _ in underWay }) -> [Plan] {
        plans.indices.filter { index in
            let end = index + 1 < plans.count ? plans[index + 1].by : .max
            return end == .max || end + time(plans[index].plan) + kernel.slept >= kernel.now
        }.map { plans[$0].plan }
    }

    /// Whether a host may be told of a name that arrives now. What its group may not learn any more is taken back if it has not
    /// been sent by then; what is under way to a server that the group has lost goes on.
    private func mayBeTold(_ host: Host, _ name: String) -> Bool {
        // What `explain` has begun to ask goes on after a reload.
        let explained = explanations[name]?.last { $0 + Self.underWay > kernel.awake }
        let begun = explained.map { kernel.now - (kernel.awake - $0) } ?? .max
        let sent = min(kernel.network.sentAt ?? kernel.now, begun)
        let mayLearn = plans.indices.contains { index in
            let next = index + 1 < plans.count ? plans[index + 1] : nil
            return plans[index].plan.groups(for: name).contains(host.group)
                && next.map { $0.by + kernel.slept - $0.slept >= sent } ?? true
        }
        return mayLearn && recent().contains { $0.maySay(name, to: host) }
    }

    /// Whether a server was asked since its last trouble, or had none.
    func wasAskedSince(_ host: Host) -> Bool { host.lastTrouble == 0 || host.lastTrouble < lately[host.name] ?? 0 }

    func asked(_ host: Host, _ name: String, _ type: UInt16) {
        queries += 1
        if Self.refusal(ofType: type) != nil || type == 255 {
            fault("\(host.name) is asked for \(name) \(Script.name(ofType: type)), which is no type of records")
        }
        note(kernel.now, UInt64(type), UInt64(name.utf8.count))
        kernel.network.tell("\(host.name) is asked for \(name) \(Script.name(ofType: type))")
        let now = kernel.now
        lately[host.name] = now
        let what = "\(host.name) \(name) \(type)"
        let awake = kernel.awake
        attempts[what, default: []].append(awake)
        if attempts[what]!.count > 6 {
            attempts[what]!.removeAll { $0 + 10_000_000_000 < awake }
            // The servers' own names are looked up when connections need them.
            let questions =
                Topology.serverNames.contains(name) || name == Topology.prefixName
                ? 6
                : [questionTimes, explanations].reduce(0) { sum, times in
                    sum + (times[name]?.count { $0 + 15_000_000_000 > awake } ?? 0)
                }
            // While another group answers instead of a failed group, the daemon asks the failed one again by itself: at
            // most twice in ten seconds.
            let looks = isCalmAt < kernel.now && !Truth(name, type).isSilent ? 1 : 2
            if attempts[what]!.count > 3 + 3 * (questions + looks) {
                let kind = Script.name(ofType: type)
                fault(
                    "\(host.name) is asked for \(name) \(kind) \(attempts[what]!.count) times in ten seconds for \(questions) questions"
                )
            }
        }
        let recent = recent()
        // A lookup of the daemon's own that began before a reload goes on as the settings after it say.
        let mayBeTold =
            switch name {
            case _ where Topology.serverNames.contains(name):
                recent.contains { $0.hasServer(called: name) } && recent.contains { $0.looksServersUp(at: host) }
            case Topology.prefixName:
                recent.contains { $0.seeksPrefix } && recent.contains { $0.files.resolvers.contains(host.name) }
            default: self.mayBeTold(host, name)
            }
        // The lost queries of a connection move to the next one of the same server, which may have had them already.
        let isRepeated = attempts[what]!.dropLast().last.map { $0 + Self.underWay > awake } ?? false
        if !mayBeTold, !isRepeated { fault("\(host.name) is told of \(name)") }
        if recent.allSatisfy({ $0.hosted(name, type) != nil }) {
            fault("\(host.name) is asked for \(name) \(Script.name(ofType: type)), which stands in the hosts file")
        }
        if recent.allSatisfy({ $0.blocked(name, type) != nil }) {
            fault("\(host.name) is asked for \(name) \(Script.name(ofType: type)), which a group answers by itself")
        }
        if !Topology.serverNames.contains(name), recent.allSatisfy({ $0.leavesOut(name, type, at: host) }) {
            fault("\(host.name) is asked for \(name) \(Script.name(ofType: type)), a type that its group leaves out")
        }
        if recent.allSatisfy({ $0.target(of: name) != nil }) { fault("\(host.name) is asked for \(name), an alias") }
        let isExplained = explanations[name]?.contains { $0 + Self.underWay > awake } ?? false
        checkOrder(host, name, type, isExplained: isExplained)
        if Truth(name, type).isSilent {
            (answersSince[host.name], heldUpAt[host.group], isUpSince[host.group]) = (nil, now, nil)
        } else if isUpSince[host.group] == nil {
            isUpSince[host.group] = now
        }
        // A group whose names were silent counts as down until it was asked for a name that it answers.
        let isKnownToAnswer = recent.allSatisfy { plan in
            guard let first = plan.group(of: name)?.hosts.first, let since = answersSince[first.name] else {
                return false
            }
            return since > areServersCalmAt && since + Self.answered < now
        }
        if areServersCalmAt + Self.underWay < now, !isExplained, isKnownToAnswer,
            recent.allSatisfy({ $0.isAfterAnother(host, for: name, type) })
        {
            fault(
                "\(host.name) is asked for \(name) \(Script.name(ofType: type)), although the group before it has an answer"
            )
        }
    }

    /// While all servers are well a name goes to the first one of its group before it goes to another one, whatever else that is
    /// asked for: a server that is silent about some names is not at fault. What was the matter with it before is over once it
    /// was asked for a name that it answers, and it is asked soon.
    private func checkOrder(_ host: Host, _ name: String, _ type: UInt16, isExplained: Bool) {
        guard areServersCalmAt < kernel.now, !Truth(name, type).isSilent, !Topology.serverNames.contains(name),
            let group = plans.last?.plan.group(of: name), group.name == host.group, let first = group.hosts.first
        else { return }
        let what = "\(name) \(type)"
        if host === first {
            asksFirst[what] = kernel.now
            asksOthersSince[group.name] = nil
            // The daemon learns nothing from answers to the operator.
            if !isExplained, answersSince[first.name] ?? 0 <= areServersCalmAt { answersSince[first.name] = kernel.now }
            return
        }
        // A question may wait for a connection to it.
        func afterwards(_ check: @escaping () -> Void) {
            let (now, era, count) = (kernel.now, era, plans.count)
            kernel.after(2_000_000_000) { [self] in
                if era == self.era, count == plans.count, areServersCalmAt < now { check() }
            }
        }
        guard !kernel.lackedDescriptors(within: 0), isCrowdedUntil < kernel.now, group.concurrency >= 64
        else { return }
        let now = kernel.now
        if asksOthersSince[group.name, default: now] + Self.longestPause < now {
            afterwards { [self] in
                if asksOthersSince[group.name] != nil {
                    fault("\(host.name) is asked for \(name), and \(first.name), which was left alone, is not tried")
                }
            }
        } else if !isExplained {
            asksOthersSince[group.name] = asksOthersSince[group.name] ?? now
        }
        if let since = answersSince[first.name], since > areServersCalmAt, since + Self.answered < now {
            afterwards { [self] in
                let isAsked = asksFirst[what].map { $0 + Self.underWay > now } ?? false
                if !isAsked { fault("\(host.name) is asked for \(name) and \(first.name), which answers, is not") }
            }
        }
    }

    /// A server has let it be known that it has not looked at a question: it is asked again at once, unless everybody has an
    /// answer meanwhile, as from the store. What is sent for a silent name may be its repetition, and the first one still waits.
    func leaves(_ host: Host) {
        func isAwaited() -> Bool {
            questions.values.contains { ofClient in
                ofClient.values.contains {
                    $0.answers == 0 && $0.era == self.era && !Truth($0.query.name, $0.query.type).isSilent
                }
            }
        }
        guard host.isWell, isCalmAt < kernel.now, isAwaited() else { return }
        let (now, era, count) = (kernel.now, era, plans.count)
        kernel.after(200_000_000) { [self] in
            guard era == self.era, count == plans.count, isCalmAt < now, host.isWell else { return }
            let isAsked = lately[host.name].map { $0 > now } ?? false
            if !isAsked, isAwaited() { fault("\(host.name) is not asked again what it has left to another connection") }
        }
    }

    /// The names that any of these hosts was asked for, by the time that the machine was awake.
    func names(askedOf hosts: [Host], since moment: UInt64) -> Set<Substring> {
        let names = Set(hosts.map(\.name))
        return Set(
            attempts.lazy.filter { $0.value.last! >= moment }.map { $0.key.split(separator: " ") }
                .filter { names.contains(String($0[0])) }.map { $0[1] })
    }

    /// Counts a name that must be paid for.
    func billed(_ host: Host, _ name: String) {
        let now = kernel.awake
        // Until then, names of the former daemon come.
        if kernel.now > figures.since + Self.underWay { figures.billed[host.group, default: 0] += 1 }
        // Another account may be asked as well.
        let bill = "\(host.group) \(name)"
        // A question that is under way when its name is flushed is asked again.
        let isCalm = isCalmAt < kernel.now && lastFlush + Self.noting < kernel.now
        if isCalm, let last = bills[bill]?.last, now - last < 2 * Host.leastDelay {
            fault("\(name) is looked up a second time while it is under way")
        }
        bills[bill, default: []].append(now)
        let window: UInt64 = 10_000_000_000
        bills[bill]!.removeAll { $0 + window < now }
        questionTimes[name]?.removeAll { $0 + 2 * window < now }
        let questions = questionTimes[name]?.count ?? 0
        // When all is well a question leads to one lookup at most, be it for a client or so that the next finds it fresh; and one is
        // made to see whether an account answers again, as after a question for a silent zone. A group behind the account is
        // probed twice with a name for which it is silent.
        let isServer = Topology.serverNames.contains(name)
        let looks = [1, 28].contains { Truth(name, $0).isSilent } ? 2 : 1
        // A reload, like another network, begins the lookup of a server's name again.
        let repeated = 6 * ((isServer ? 4 : 2) + questions)
        let most = isCalmAt + 2 * window < kernel.now ? max(questions, isServer ? 2 : 0) + looks : repeated
        if bills[bill]!.count > most {
            fault("\(name) is looked up \(bills[bill]!.count) times in ten seconds for \(questions) questions")
        }
    }

    /// For an alias, its target is explained.
    func explains(_ name: String) {
        for name in Set(plans.compactMap { $0.plan.target(of: name) } + [name]) {
            explanations[name, default: []].append(kernel.awake)
        }
    }

    func forgot(_ name: String?, askedAt: UInt64) { forgotten.append((name, askedAt, kernel.now, era)) }

    func clockIsSet(by seconds: Int) {
        if seconds < 0 { setBack.append((kernel.now, UInt64(-seconds) * 1_000_000_000)) }
    }

    // MARK: What servers say

    /// Makes a record of its own for each answer.
    func says(_ host: Host, _ name: String, _ type: UInt16, _ ttl: UInt32, to query: DNSQuery? = nil) -> UInt32 {
        if Self.isBogus(UInt32(said.count), type) { bogusNames.insert(name) }
        said.append(Said(host: host, name: name, type: type, at: kernel.now, ttl: ttl, query: query))
        return UInt32(said.count - 1)
    }

    func denies(_ host: Host, _ name: String, _ type: UInt16, _ ttl: UInt32, to query: DNSQuery? = nil) {
        let what = "\(host.group) \(name) \(type)"
        let until = kernel.now + UInt64(ttl) * 1_000_000_000 + Self.slack
        denied[what] = Denied(
            until: max(denied[what]?.until ?? 0, until), at: kernel.now, awake: kernel.awake,
            arrives: host.isWell, query: query)
    }

    func tells(_ prefix: NAT64Prefix, by host: Host) {
        prefixes.append((prefix, kernel.now, host.isWell && lastRouteChange + Self.underWay < kernel.now))
    }

    /// Addresses that some groups take for those of a search page, and whether a record has one.
    static let bogus = "40.0.0.0/5"
    static func isBogus(_ serial: UInt32, _ type: UInt16) -> Bool { type == 1 && serial % 16 == 1 }
    private static let firstBogus: UInt32 = 0x2800_0000
    /// The names that got such an address.
    var bogusNames: Set<String> = []

    static func address(_ serial: UInt32, _ type: UInt16) -> IPAddress {
        type == 1 ? IPAddress(v4: ipv4(serial)) : IPAddress(v6: 0x2A00_0001_0002_0003, UInt64(serial))
    }

    private static func ipv4(_ serial: UInt32) -> UInt32 { (isBogus(serial, 1) ? firstBogus : 0x2000_0000) + serial }

    static func data(_ serial: UInt32, _ type: UInt16, padding: Int) -> [UInt8] {
        var data: [UInt8] = []
        switch type {
        case 1: data.append(ipv4(serial), octets: 4)
        case 28:
            data.append(0x2A00_0001_0002_0003 as UInt64, octets: 8)
            data.append(UInt64(serial), octets: 8)
        default:
            let text = Array("s\(serial) ".utf8) + [UInt8](repeating: 45, count: padding)
            data = [UInt8(text.count)] + text
        }
        return data
    }

    static func serial(_ data: ArraySlice<UInt8>, _ type: UInt16) -> UInt32? {
        switch type {
        case 1 where data.count == 4:
            let address = data.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            return address &- (address >> 27 == firstBogus >> 27 ? firstBogus : 0x2000_0000)
        case 28 where data.count == 16: return data.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        case 16:
            let text = String(decoding: data.dropFirst(2), as: UTF8.self)
            return UInt32(text.prefix { $0 != " " })
        default: return nil
        }
    }
}
