import Base
import Glibc

/// What must hold, always, by books of its own: who said what when, and who was asked what.
nonisolated(unsafe) let judge = Judge()

final class Judge {
    private(set) var faults: [String] = []
    /// Stands for all that has happened: the same for the same seed.
    private(set) var digest: UInt64 = 0
    private(set) var answered = 0
    private(set) var stale = 0
    private(set) var queries = 0

    /// When everything will have been well for a while.
    private var isCalmAt: UInt64 = 0

    private struct Said {
        let host: Host
        let name: String
        let type: UInt16
        let at: UInt64
        let ttl: UInt32
    }
    private var said: [Said] = []
    /// Until when what groups have said that there is not may be repeated, in nanoseconds.
    private var denied: [String: UInt64] = [:]
    /// What groups were asked, and when they were last.
    private var lately: [String: UInt64] = [:]
    /// When names were looked up, hosts were asked, and clients asked lately, by the time that the machine was awake.
    private var bills: [String: [UInt64]] = [:]
    private var attempts: [String: [UInt64]] = [:]
    private var questionTimes: [String: [UInt64]] = [:]
    /// Each takes effect at `by` at the latest.
    private var plans: [(plan: Plan, from: UInt64, by: UInt64)] = []
    private var questions: [Endpoint: [UInt16: Asked]] = [:]
    /// When the clock was set back, and by how many nanoseconds.
    private var setBack: [(at: UInt64, by: UInt64)] = []
    /// What was known before is forgotten, or no question of before has to be answered.
    private(set) var era = 0

    private struct Asked {
        let number: Int
        let query: DNSQuery
        let at: UInt64
        let slept: UInt64
        let era: Int
        let plan: Plan
        /// The place of the plan.
        let place: Int
        /// The cache has something past its time.
        let hasStale: Bool
        var answers = 0
    }

    /// What a query can be under way for, at the longest, in nanoseconds.
    private static let underWay: UInt64 = 10_000_000_000
    /// What an answer can be under way for: the longest time-out of a plan, and a second that is not whole.
    private static let slack: UInt64 = 3_000_000_000
    /// What it takes at the longest until a route that is gone, or a file that has changed, is taken note of.
    static let noting: UInt64 = 2_000_000_000
    static let forgedSerial: UInt32 = 0x1F00_0000

    func begin() {
        (faults, said, denied, bills, questions, plans, questionTimes) = ([], [], [:], [:], [:], [], [:])
        (lately, attempts, setBack) = ([:], [:], [])
        isCalmAt = 0
        digest = 14_695_981_039_346_656_037
        era = 0
    }

    func fault(_ text: String) {
        guard faults.count < 20 else { return }
        faults.append("\(Script.time(kernel.now - Script.start)) \(text)")
    }

    /// Nothing can be looked at any more, let alone be made shorter.
    func stuck(_ text: String) {
        print("seed \(seedUnderWay): \(Script.time(kernel.now - Script.start)) \(text)")
        exit(1)
    }

    /// Of the episode.
    var seedUnderWay: UInt64 = 0

    /// Something is the matter for so many seconds, and servers may be left alone for two minutes for it.
    func isTroubled(seconds: Int) { isCalmAt = max(isCalmAt, kernel.now + UInt64(seconds + 120) * 1_000_000_000) }

    private func note(_ values: UInt64...) {
        for value in values { digest = (digest ^ value) &* 1_099_511_628_211 }
    }

    // MARK: Whom the daemon asks

    /// - Parameter delay: Nanoseconds until it holds, at the longest.
    func works(by plan: Plan, within delay: UInt64 = 0) {
        plans.append((plan, kernel.now, kernel.now + delay))
    }

    /// The first plan by which a question may be answered.
    private func first(_ asked: Asked) -> Int {
        var place = asked.place
        while place > 0, asked.at < plans[place].by { place -= 1 }
        return place
    }

    /// Those who may be told of a name, by any plan that held a moment ago.
    private func mayBeTold(_ name: String) -> Set<String> {
        var groups: Set<String> = []
        for (index, entry) in plans.enumerated() {
            let end = index + 1 < plans.count ? plans[index + 1].by : .max
            if end == .max || end + Self.underWay + kernel.slept >= kernel.now {
                groups.formUnion(entry.plan.groups(for: name))
            }
        }
        return groups
    }

    func asked(_ host: Host, _ name: String, _ type: UInt16) {
        queries += 1
        note(kernel.now, UInt64(type), UInt64(name.utf8.count))
        kernel.network.tell("\(host.name) is asked for \(name) \(type)")
        let now = kernel.now
        lately["\(host.group) \(name) \(type)"] = now
        let what = "\(host.name) \(name) \(type)"
        let awake = kernel.awake
        attempts[what, default: []].append(awake)
        if attempts[what]!.count > 6 {
            attempts[what]!.removeAll { $0 + 10_000_000_000 < awake }
            let questions = questionTimes[name]?.count { $0 + 15_000_000_000 > awake } ?? 0
            if attempts[what]!.count > 3 + 3 * questions {
                fault("\(what) is asked \(attempts[what]!.count) times in ten seconds for \(questions) questions")
            }
        }
        if !mayBeTold(name).contains(host.group) { fault("\(host.name) is told of \(name)") }
    }

    /// A server has said that it has not looked at a question: it is asked again at once, here or elsewhere.
    func leaves(_ host: Host, _ name: String, _ type: UInt16) {
        guard host.isWell, isCalmAt < kernel.now else { return }
        let (now, era, count) = (kernel.now, era, plans.count)
        kernel.after(200_000_000) { [self] in
            guard era == self.era, count == plans.count, isCalmAt < now, host.isWell else { return }
            let isAsked = lately["\(host.group) \(name) \(type)"].map { $0 > now } ?? false
            if !isAsked { fault("\(name), which \(host.name) has left to another connection, is not asked again") }
        }
    }

    /// A name that has to be paid for.
    func billed(_ host: Host, _ name: String) {
        let now = kernel.awake
        bills[name, default: []].append(now)
        let window: UInt64 = 10_000_000_000
        bills[name]!.removeAll { $0 + window < now }
        questionTimes[name]?.removeAll { $0 + 2 * window < now }
        let questions = questionTimes[name]?.count ?? 0
        // When all is well a question leads to one lookup at most, be it for a client or so that the next finds it fresh.
        let most = isCalmAt + 2 * window < kernel.now ? questions : 6 * (2 + questions)
        if bills[name]!.count > most {
            fault("\(name) is looked up \(bills[name]!.count) times in ten seconds for \(questions) questions")
        }
    }

    func clockIsSet(by seconds: Int) {
        if seconds < 0 { setBack.append((kernel.now, UInt64(-seconds) * 1_000_000_000)) }
    }

    // MARK: What servers say

    /// A record of its own for each time that anything is said.
    func says(_ host: Host, _ name: String, _ type: UInt16, _ ttl: UInt32) -> UInt32 {
        said.append(Said(host: host, name: name, type: type, at: kernel.now, ttl: ttl))
        return UInt32(said.count - 1)
    }

    func denies(_ host: Host, _ name: String, _ type: UInt16, _ ttl: UInt32) {
        let what = "\(host.group) \(name) \(type)"
        denied[what] = max(denied[what] ?? 0, kernel.now + UInt64(ttl) * 1_000_000_000 + Self.slack)
    }

    static func address(_ serial: UInt32, _ type: UInt16) -> IPAddress {
        type == 1 ? IPAddress(v4: 0x2000_0000 + serial) : IPAddress(v6: 0x2A00_0001_0002_0003, UInt64(serial))
    }

    static func data(_ serial: UInt32, _ type: UInt16, padding: Int) -> [UInt8] {
        var data: [UInt8] = []
        switch type {
        case 1: data.append(0x2000_0000 + serial, octets: 4)
        case 28:
            data.append(0x2A00_0001_0002_0003 as UInt64, octets: 8)
            data.append(UInt64(serial), octets: 8)
        default:
            let text = Array("s\(serial) ".utf8) + [UInt8](repeating: 45, count: padding)
            data = [UInt8(text.count)] + text
        }
        return data
    }

    private static func serial(_ data: ArraySlice<UInt8>, _ type: UInt16) -> UInt32? {
        switch type {
        case 1 where data.count == 4: return data.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } &- 0x2000_0000
        case 28 where data.count == 16: return data.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        case 16:
            let text = String(decoding: data.dropFirst(2), as: UTF8.self)
            return UInt32(text.prefix { $0 != " " })
        default: return nil
        }
    }

    // MARK: What clients ask, and get

    func asks(_ number: Int, _ query: DNSQuery, from client: Endpoint, hasStale: Bool) {
        let plan = plans[plans.count - 1].plan
        questionTimes[query.name, default: []].append(kernel.awake)
        questions[client, default: [:]][query.id] = Asked(
            number: number, query: query, at: kernel.now, slept: kernel.slept, era: era, plan: plan,
            place: plans.count - 1, hasStale: hasStale)
        watch(client, query.id)
    }

    /// After four seconds in which the machine was awake.
    private func watch(_ client: Endpoint, _ id: UInt16) {
        kernel.after(4_000_000_001) { [self] in
            guard let asked = questions[client]?[id], asked.era == era else { return }
            if asked.slept != kernel.slept { return }
            if asked.answers == 0 { fault("client \(asked.number) gets no answer about \(asked.query.name)") }
        }
    }

    /// Nothing that was asked before has to be answered any more, or the answers may be others.
    func forgets() {
        era += 1
    }

    func answered(_ reply: [UInt8], to client: Endpoint) {
        note(kernel.now, UInt64(reply.count), reply.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) })
        guard reply.count >= 12 else { return fault("\(client) is sent \(reply.count) octets") }
        let id = UInt16(reply[0]) << 8 | UInt16(reply[1])
        guard var asked = questions[client]?[id] else { return fault("\(client) is sent what it has not asked") }
        asked.answers += 1
        questions[client]![id] = asked
        let who = "client \(asked.number), \(asked.query.name) \(asked.query.type):"
        guard asked.answers == 1 else { return fault("\(who) answered \(asked.answers) times") }
        answered += 1
        kernel.network.tell("\(who) is answered, \(reply[3] & 15)")
        let took = kernel.now - asked.at
        if asked.slept == kernel.slept {
            if took > 4_000_000_000 { fault("\(who) answered after \(took / 1_000_000) ms") }
            if asked.hasStale, asked.era == era, asked.place == plans.count - 1, took > 1_800_000_000 {
                fault("\(who) answered after \(took / 1_000_000) ms although something stale is there")
            }
        }
        guard let message = Reading(reply, of: asked.query) else { return fault("\(who) cannot read its answer") }
        check(message, asked, who)
    }

    /// By how many nanoseconds what a store has may seem younger than it is: it is as old as the clock says, and a daemon cannot
    /// know that the clock was set back before it started.
    private func younger(since moment: UInt64) -> UInt64 {
        plans.contains { $0.plan.hasStore } ? setBack.reduce(0) { $0 + ($1.at > moment ? $1.by : 0) } : 0
    }

    private func check(_ message: Reading, _ asked: Asked, _ who: String) {
        let truth = Truth(asked.query.name, asked.query.type)
        // Under any settings since the question.
        let plans = plans[first(asked)...]
        let groups = plans.reduce(into: Set()) { $0.formUnion($1.plan.groups(for: asked.query.name)) }
        let isStale = message.errors.contains(3)
        let staleSeconds = plans.map(\.plan.staleSeconds).max()!
        if asked.at > isCalmAt, !asked.plan.isHTTPOnly || asked.plan.accountAnswers(asked.query.name, truth) {
            if message.code != 0, message.code != 3 { fault("\(who) RCODE \(message.code), though all is well") }
            if isStale, groups.count == 1 { fault("\(who) stale, though all is well") }
            if kernel.now - asked.at > 3_000_000_000 { fault("\(who) answered late, though all is well") }
        }
        if isStale { stale += 1 }
        let manner = asked.query.manner
        if message.isDNSSECOK != manner.isDNSSECOK { fault("\(who) the bit DO is another") }
        if message.isCheckingDisabled != manner.isCheckingDisabled { fault("\(who) the bit CD is another") }
        if message.isAuthentic { fault("\(who) the bit AD, which nobody says") }
        if manner.hasCookie != (message.cookie.count == 24) || !message.cookie.starts(with: asked.query.cookie) {
            fault("\(who) a cookie of \(message.cookie.count) octets")
        }
        if message.code == 3, truth.exists { return fault("\(who) NXDOMAIN, which nobody says") }
        // Of other types of a name that an account answers for, the daemon says so by itself.
        if truth.isAddress, message.code == 3 || message.code == 0 && !message.isTruncated && message.records.isEmpty {
            let hasIPv6 = asked.at > kernel.network.hadNoIPv6 + Self.noting
            let until = groups.compactMap { denied["\($0) \(asked.query.name) \(asked.query.type)"] }.max()
            if !plans.contains(where: { $0.plan.denies(asked.query.name, asked.query.type, hasIPv6: hasIPv6) }) {
                let longer = (isStale ? UInt64(staleSeconds) * 1_000_000_000 + 4_000_000_000 : 0) + younger(since: 0)
                if until.map({ $0 + longer + kernel.slept - asked.slept < kernel.now }) ?? true {
                    fault("\(who) no record, which nobody says\(until == nil ? "" : " any more")")
                }
            }
        }
        for record in message.records {
            guard record.type == asked.query.type, let serial = Self.serial(record.data, record.type),
                serial < said.count,
                case let told = said[Int(serial)]
            else {
                fault("\(who) a record that nobody has said")
                continue
            }
            if told.name != asked.query.name || told.type != record.type {
                fault("\(who) what \(told.host.name) said of \(told.name) \(told.type)")
            }
            if !groups.contains(told.host.group) {
                fault("\(who) what \(told.host.name) said, which is not to be asked")
            }
            let age = kernel.now - told.at
            let life = UInt64(told.ttl) * 1_000_000_000 + Self.slack + younger(since: told.at)
            if isStale {
                if record.ttl > 30 { fault("\(who) stale, with the TTL \(record.ttl)") }
                // What was there when it was asked for may be given when the machine wakes again.
                let most = life + UInt64(staleSeconds) * 1_000_000_000 + 4_000_000_000 + kernel.slept - asked.slept
                if age > most, asked.era == era {
                    fault("\(who) what \(told.host.name) said \(age / 1_000_000_000) s ago, stale")
                }
            } else if age > life {
                fault("\(who) what \(told.host.name) said \(age / 1_000_000_000) s ago for \(told.ttl) s")
            } else if UInt64(record.ttl) * 1_000_000_000 + age > life {
                fault("\(who) the TTL \(record.ttl), of \(told.ttl) s said \(age / 1_000_000_000) s ago")
            }
        }
    }
}
