import Base
import CKernel
import SimulatedDispatch
import TestSupport

@testable import Configuration
@testable import DNSCache
@testable import DNSWire
@testable import Daemon
@testable import Forwarding
@testable import Log

/// One machine with a daemon, from its start to its end.
final class Episode {
    private let script: Script
    private let hosts: [Host]
    private var plan: Plan
    private var daemon: Daemon?
    private var files = MachineFiles()
    /// Earlier files that may still be in effect, although the files have changed.
    private var readBefore: [(files: MachineFiles, until: UInt64)] = []
    private var ports: UInt16 = 1024
    /// By how many nanoseconds events come later than the script says: after a long sleep, what comes behind it keeps its
    /// distances, while in a short one some of it is missed until the machine wakes.
    private var late: UInt64 = 0

    private static let server = Endpoint(.v4(127, 0, 0, 1), port: 53)

    private init(_ script: Script) {
        self.script = script
        kernel.restart(seed: script.seed)
        kernel.network.chance = Chance(seed: script.seed ^ 0x5DEE_CE66_D1CE_4E5B)
        judge.begin()
        Operator.begin()
        hosts = Topology.hosts(secure: script.isSecure)
        for host in hosts { kernel.network.add(host) }
        kernel.files["/d/authority"] = certificates.trusted
        kernel.files["/proc/sys/kernel/random/boot_id"] = Array("0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0\n".utf8)
        plan = Plan(Draws(seed: script.seed), hosts: hosts, script, files)
        files.write(hosts)
    }

    /// - Parameter items: The items of the script that happen; nil: all items.
    /// - Returns: The faults.
    static func run(_ script: Script, items: [Script.Item]? = nil) -> [String] {
        let episode = Episode(script)
        episode.start(nil)
        for item in items ?? script.items {
            kernel.run(until: Script.start + item.at + episode.late)
            if isVerbose { print(Script.text(item)) }
            episode.perform(item)
            if !judge.faults.isEmpty { break }
        }
        if judge.faults.isEmpty { episode.checkQuiet() }
        episode.end()
        return judge.faults
    }

    // MARK: The daemon

    private func settings(_ text: String) -> Settings? {
        do throws(ConfigurationError) {
            return try Settings.load(
                file: "/d/httpdnsd.toml", contents: text, environment: [:],
                readFile: { FileReading(Topology.settingsFiles[$0]) }
            ).settings
        } catch {
            judge.fault("the settings are refused: \(error)")
            return nil
        }
    }

    /// - Parameter event: The end of the daemon before; nil: there was none.
    private func start(_ event: Feature?) {
        judge.begins(with: event)
        if isVerbose { print(plan.text) }
        readBefore = []
        judge.works(by: plan)
        judge.isTroubled(seconds: 0)
        // The descriptors of the former daemon belonged to another process.
        kernel.withoutDescriptors(until: 0)
        guard let settings = settings(plan.text) else { return }
        do throws(StartFailure) {
            let daemon = try Daemon(settings, log: Logger(.info) { log($0) })
            self.daemon = daemon
            try daemon.start()
        } catch {
            judge.fault("the daemon does not start: \(error)")
        }
        Scheduler.settle()
    }

    /// The daemon's own count contains each name that an account may bill.
    private func checkBill() {
        let groups = daemon?.forwarderLoop.look { forwarder, _ in forwarder.groupOverviews } ?? []
        for group in groups where group.carriesAddresses {
            let seen = judge.figures.billed[group.name] ?? 0
            if group.counters.names < UInt64(seen) {
                judge.fault("\(group.name) was sent \(seen) names, and the daemon counts \(group.counters.names)")
            }
        }
    }

    private func stop() {
        if !kernel.files.isFrozen { checkBill() }
        let stopped = Flag()
        daemon?.stop(because: "the episode") { stopped.isSet = true }
        let end = kernel.now + 10_000_000_000
        Scheduler.settle()
        while !stopped.isSet, kernel.now < end { kernel.run(until: kernel.now + 10_000_000) }
        if !stopped.isSet { judge.fault("the daemon does not stop") }
        Scheduler.settle()
        let isGone = { [weak daemon] in daemon == nil }
        daemon = nil
        if !isGone() { judge.fault("the daemon is still in memory after its end") }
    }

    private func end() {
        judge.forgets()
        stop()
        if kernel.openDescriptors > 0 { judge.fault("\(kernel.openDescriptors) descriptors are left open") }
        if !Scheduler.isEmpty { judge.fault("\(Scheduler.openSources) sources are left") }
        kernel.abandon()
    }

    private final class Flag: @unchecked Sendable { var isSet = false }

    // MARK: The script

    private func perform(_ item: Script.Item) {
        var chance = Chance(seed: item.seed)
        switch item.what {
        case .question, .pipeline, .blackHole, .outage, .youngResets, .silentZone, .goAway, .stutter, .fullDisk, .names,
            .hosted,
            .blocked, .control, .counters, .wrongReload:
            break
        case .noDescriptors(let seconds): judge.isTroubled(seconds: seconds, isShortage: true)
        case .trouble(_, _, let seconds), .sleep(let seconds), .moves(_, let seconds), .network(let seconds),
            .ipv6(let seconds), .ipv4(let seconds), .noResolvers(let seconds):
            judge.isTroubled(seconds: seconds)
        default: judge.isTroubled(seconds: 1)
        }
        if let event = Self.feature(of: item.what) { judge.happens(event) }
        let host = { (name: String) in self.hosts.first { $0.name == name }! }
        switch item.what {
        case .question(let client, let name, let type, let manner): ask(client, [name], type, manner, &chance)
        case .pipeline(let client, let names, let type):
            var manner = Script.Manner()
            manner.isStream = true
            ask(client, names, type, manner, &chance)
        case .flood(let client, let count):
            for number in 0..<count { ask(client, ["h\(number)n.\(Topology.publicZone)"], 1, .init(), &chance) }
        case .silentZone(let client, let zone, let perSecond, let seconds):
            askSilentZone(client, zone, perSecond, seconds, item.seed)
        case .blackHole(let client, let zone, let perSecond, let seconds):
            askPastBlackHole(client, zone, perSecond, seconds, item.seed)
        case .outage(let client, let zone, let trouble): askThroughOutage(client, zone, trouble, item.seed)
        case .crowd(let client, let zone, let count):
            for number in 0..<count { ask(client, ["h\(number)n\(item.seed % 10_000).\(zone)"], 1, .init(), &chance) }
        case .youngResets(let client, let zone): askWhileResetting(client, zone, item.seed)
        case .trouble(let name, let trouble, let seconds):
            for host in hosts where host.name == name || host.group == name {
                host.begin(trouble, until: kernel.now + UInt64(seconds) * 1_000_000_000)
            }
        case .goAway(let name):
            for host in hosts where host.name == name || host.group == name { host.isGoingAway = true }
        case .stutter(let name): host(name).isStuttering = true
        case .reset(let name): kernel.network.reset(host(name))
        case .forget(let name): kernel.network.forget(host(name))
        case .clock(let seconds): kernel.setClock(by: seconds)
        case .sleep(let seconds):
            kernel.network.forget(nil)
            kernel.sleep(UInt64(seconds) * 1_000_000_000)
            if seconds > 60 { late += UInt64(seconds) * 1_000_000_000 }
        case .network(gone: 0): kernel.network.change(isUp: true)
        case .network(let seconds):
            kernel.network.change(isUp: false)
            later(seconds) { _ in kernel.network.change(isUp: true) }
        case .ipv6(let seconds):
            kernel.network.changeIPv6(isUp: false)
            later(seconds) { _ in kernel.network.changeIPv6(isUp: true) }
        case .ipv4(let seconds):
            kernel.network.changeIPv4(isUp: false)
            later(seconds) { _ in kernel.network.changeIPv4(isUp: true) }
        case .fullDisk(let seconds): kernel.files.fullUntil = kernel.now + UInt64(seconds) * 1_000_000_000
        case .noDescriptors(let seconds):
            kernel.withoutDescriptors(until: kernel.now + UInt64(seconds) * 1_000_000_000)
        case .names(let zones): rewrite { $0.zones = zones }
        case .resolvers(let names): rewrite { $0.resolvers = names }
        case .noResolvers(let seconds):
            // The servers that the file has lost stay for up to ten seconds.
            rewrite(later: 10_000_000_000) { $0.resolvers = [] }
            later(seconds) { $0.rewrite { $0.resolvers = Topology.resolvers[0] } }
        case .hosted(let names):
            rewrite {
                $0.hosted = names
                $0.hostedNumber += 1
            }
        case .blocked(let names): rewrite { $0.blocked = names }
        case .moves(let name, let seconds): kernel.network.move(host(name), seconds: seconds)
        case .control(let request, let name): Operator.ask(request, name)
        case .counters: daemon?.logCounters()
        case .reload: reload(to: Plan(Draws(seed: item.seed), hosts: hosts, script, files))
        case .settings(let need, let zone):
            reload(to: Plan.drawn(for: need, of: zone, &chance, hosts: hosts, script, files))
        case .translator: kernel.network.changeTranslator()
        case .oneSetting(let section):
            let (other, key) = plan.drawing(oneOf: section, &chance, hosts: hosts, script)
            changeOneSetting(key, to: other)
        case .otherKey(let key):
            changeOneSetting(key, to: plan.drawing(another: key, &chance, hosts: hosts, script))
        case .wrongReload: reloadWrongly(Plan(Draws(seed: item.seed), hosts: hosts, script, files))
        case .crash(let part): crash(part)
        case .restart: restart()
        case .otherStart:
            judge.forgets()
            stop()
            plan = Plan(Draws(seed: item.seed), hosts: hosts, script, files)
            start(.started)
        }
        Scheduler.settle()
    }

    /// The feature on which later answers may depend.
    private static func feature(of what: Script.What) -> Feature? {
        switch what {
        case .flood: .flooded
        case .trouble: .serverInTrouble
        case .clock: .clockSet
        case .sleep: .slept
        case .network, .translator: .networkChanged
        case .ipv6: .noIPv6
        case .ipv4: .noIPv4
        case .fullDisk: .fullDisk
        case .noDescriptors: .noDescriptors
        case .names: .namesChanged
        case .resolvers: .resolversChanged
        case .noResolvers: .noResolvers
        case .hosted: .hostsChanged
        case .blocked: .listChanged
        case .moves: .serverMoved
        case .control(let request, _): request.hasPrefix("POST /flush") ? .flushed : nil
        case .reload, .settings, .otherKey, .oneSetting: .reloaded
        default: nil
        }
    }

    /// The time until changed files are known. A file that could not be read or watched is tried again in ten seconds.
    private var noting: UInt64 {
        let pause: UInt64 = 14_000_000_000
        return Judge.noting + (kernel.lackedDescriptors(within: pause) ? pause : 0)
    }

    /// Does work that ends a trouble after these seconds.
    private func later(_ seconds: Int, _ work: @escaping (Episode) -> Void) {
        kernel.after(UInt64(seconds) * 1_000_000_000) { [self] in
            judge.isTroubled(seconds: 1)
            work(self)
        }
    }

    private func rewrite(later: UInt64 = 0, _ change: (inout MachineFiles) -> Void) {
        let noting = noting + later
        readBefore = readBefore.filter { $0.until > kernel.now } + [(files, kernel.now + noting)]
        change(&files)
        files.write(hosts)
        plan = plan.reading(files)
        judge.works(by: plan, within: noting)
    }

    /// Answers on which the setting has no effect stay in the cache.
    private func changeOneSetting(_ key: String, to other: Plan) {
        guard other.text != plan.text else { return }
        // Files that have changed are read by this reload at the latest.
        let areFilesKnown = kernel.hasDescriptors && readBefore.allSatisfy { $0.until <= kernel.now }
        let known = judge.queries(ofEra: judge.era).filter {
            // New ways of asking a group end the substitutes for its answers.
            areFilesKnown && isFresh($0, from: 2, isKept: true) && other.answers($0.name, as: plan, in: key)
        }
        reload(to: other)
        Scheduler.settle()
        for query in known where !isFresh(query, from: 0) {
            judge.fault("\(query.name) \(Script.name(ofType: query.type)) is forgotten because of another \(key)")
        }
    }

    /// Refused settings change nothing, whatever other settings they contain.
    private func reloadWrongly(_ other: Plan) {
        let zones = Set(Topology.namesFiles.joined()).sorted().map { "\"*.\($0)\"" }.joined(separator: ", ")
        let twins = ["domainsFile = \"\(Topology.namesFile)\"", "domains = [\(zones)]"]
        let text = twins.enumerated().reduce(other.text) { text, twin in
            text + "[upstreams.twin\(twin.offset)]\nservers = [\"192.0.2.1\"]\n\(twin.element)\n"
        }
        if isVerbose { print(text) }
        guard let settings = settings(text) else { return }
        let known = judge.queries(ofEra: judge.era).filter { isFresh($0, from: 2) }
        do throws(StartFailure) {
            try daemon?.reload(settings)
            judge.fault("two groups take the same name")
        } catch {}
        Scheduler.settle()
        for query in known where !isFresh(query, from: 0) {
            judge.fault(
                "\(query.name) \(Script.name(ofType: query.type)) is forgotten because of settings that are refused")
        }
    }

    private func reload(to other: Plan) {
        let before = plan
        plan = other
        if isVerbose { print(plan.text) }
        guard let settings = settings(plan.text) else { return }
        // Until then both settings are in effect, and so are earlier files that were not read again.
        let delay = kernel.hasDescriptors ? 0 : noting
        for earlier in readBefore where earlier.until > kernel.now {
            judge.works(by: plan.reading(earlier.files), within: max(delay, earlier.until - kernel.now))
        }
        if !kernel.hasDescriptors {
            // A list that cannot be opened counts as empty, with its exceptions, and is read again.
            var unread = files
            unread.blocked = []
            judge.works(by: plan.reading(unread), within: delay)
        }
        judge.works(by: plan, within: delay)
        do throws(StartFailure) {
            try daemon?.reload(settings)
        } catch {
            if kernel.hasDescriptors { judge.fault("the settings cannot be taken over: \(error)") }
            plan = before
            judge.works(by: plan)
        }
    }

    /// With a cache file, an answer that is fresh stays so, since nothing else has changed.
    private func restart() {
        // Without its resolvers, the network is not known to be the same.
        let hasAll =
            script.hasFile && !kernel.files.isFull && kernel.hasDescriptors && kernel.network.isUp
            && !files.resolvers.isEmpty
            && max(judge.lastRouteChange, judge.lastFlush) + Judge.underWay < kernel.now
        let areFilesKnown = readBefore.allSatisfy { $0.until <= kernel.now }
        // AAAA records may be made under a prefix that the new daemon has yet to find.
        let known = judge.queries(ofEra: judge.era).filter {
            hasAll && areFilesKnown && $0.type != 28 && isFresh($0, from: 30, isKept: true)
        }
        judge.forgets()
        stop()
        start(.started)
        for query in known where !isFresh(query, from: 0) {
            judge.fault(
                "\(query.name) \(Script.name(ofType: query.type)) is forgotten by a restart\(query.manner.text)")
        }
    }

    private func crash(_ part: Int) {
        let before = kernel.files["/d/cache"]
        kernel.files.isFrozen = true
        kernel.network.clients = [:]
        judge.forgets()
        kernel.network.change(isUp: true)
        stop()
        kernel.files.isFrozen = false
        if let before { kernel.files["/d/cache"] = Array(before.prefix(before.count * part / 100)) }
        start(.killed)
    }

    // MARK: Clients

    private func ask(
        _ client: Int, _ names: [String], _ type: UInt16, _ manner: Script.Manner, _ chance: inout Chance,
        promise: Int? = nil
    ) {
        // Such a client could not be accepted; its waiting time depends on the shortage.
        if manner.isStream, !kernel.hasDescriptors { return }
        ports = ports == .max ? 1024 : ports + 1
        let from = Endpoint(.v4(10, 5, 0, UInt8(client + 1)), port: ports)
        var (first, queries) = (UInt16(truncatingIfNeeded: chance.next()), [[UInt8]]())
        for name in names {
            guard let query = DNSQuery(name, type, id: first, manner, &chance) else { return }
            first &+= 1
            judge.asks(
                query, from: from, hasStale: hasStale(name, type, manner), promise: promise,
                foretold: foretold(name, type, manner, &chance))
            queries.append(query.bytes)
        }
        if manner.isStream {
            StreamClient(from).ask(queries, &chance)
        } else {
            kernel.network.clients[from] = { judge.answered($0, to: from) }
            for query in queries { kernel.network.ask(query, from: from, to: Self.server) }
        }
    }

    /// The code that `explain` gives for a question, if no server would be asked and no trouble lasts.
    private func foretold(_ name: String, _ type: UInt16, _ manner: Script.Manner, _ chance: inout Chance) -> UInt8? {
        guard let daemon, judge.lastChange + noting + Judge.underWay < kernel.awake, chance.below(4) == 0,
            !manner.isStream, !manner.isDNSSECOK,
            !manner.isCheckingDisabled, type != 255, let asked = Name(name)
        else { return nil }
        let explanation = daemon.forwarderLoop.look { forwarder, _ in
            forwarder.explain(asked, RecordType(rawValue: type), at: Tick(nanoseconds: kernel.now))
        }
        switch explanation.fate {
        case .made(let answer): return UInt8(answer.head.responseCode.rawValue & 15)
        case .cached where explanation.held?.isFresh ?? false:
            return explanation.held.map { UInt8($0.answer.head.responseCode.rawValue & 15) }
        default: return nil
        }
    }

    /// Only a group of the operator is asked: an account would have no record of many names below one domain. The group
    /// has room for some names: with less room, each silent name delays others for as long as an attempt takes.
    private func askSilentZone(_ client: Int, _ zone: String, _ perSecond: Int, _ seconds: Int, _ seed: UInt64) {
        guard let group = plan.group(of: "z.\(zone)"), group.concurrency >= 64 else { return }
        if perSecond > 5 { judge.isCrowded(seconds: seconds) }
        let era = judge.era
        for number in 0..<perSecond * seconds {
            kernel.after(UInt64(number) * 1_000_000_000 / UInt64(perSecond)) { [self] in
                guard judge.era == era else { return }
                var chance = Chance(seed: seed &+ UInt64(number))
                ask(client, ["z\(number).\(zone)"], 1, .init(), &chance)
            }
        }
    }

    /// Asks this number of new names of a zone each second.
    /// - Parameter isPromised: Whether each of them must be answered in time.
    private func askNew(
        _ client: Int, _ zone: String, _ perSecond: Int, _ seconds: Int, _ seed: UInt64, isPromised: Bool
    ) {
        let (era, troubles) = (judge.era, judge.troubles)
        for number in 0..<perSecond * seconds {
            kernel.after(UInt64(number) * 1_000_000_000 / UInt64(perSecond)) { [self] in
                guard judge.era == era else { return }
                var chance = Chance(seed: seed &+ UInt64(number))
                let name = "h\(seed % 10_000)n\(number).\(zone)"
                ask(client, [name], 1, .init(), &chance, promise: isPromised ? troubles : nil)
            }
        }
    }

    /// The group of a zone, if it has room for more questions and had no trouble.
    private func calmGroup(_ zone: String) -> Plan.Group? {
        guard judge.isCalmAt < kernel.now, let group = plan.group(of: "h.\(zone)"), group.concurrency >= 64,
            group.hosts.allSatisfy(\.isWell)
        else { return nil }
        return group
    }

    /// If one of several servers becomes silent, no answer is lost or late by a second.
    private func askPastBlackHole(_ client: Int, _ zone: String, _ perSecond: Int, _ seconds: Int, _ seed: UInt64) {
        // Until it was asked again, a server that had trouble has others asked before it.
        guard let group = calmGroup(zone), group.hosts.count > 1,
            group.hosts.dropFirst().allSatisfy(judge.wasAskedSince)
        else { return }
        judge.isTroubled(seconds: seconds + 1)
        askNew(client, zone, perSecond, seconds, seed, isPromised: true)
        // A client with few questions.
        askNew(0, zone, 2, seconds, seed &+ 1, isPromised: true)
        kernel.after(1_000_000_000) {
            group.hosts[0].begin(.silent, until: kernel.now + UInt64(seconds) * 1_000_000_000)
        }
    }

    /// While a group is down, one question a second at most finds out whether it is back; the others go on at once.
    private func askThroughOutage(_ client: Int, _ zone: String, _ trouble: Trouble, _ seed: UInt64) {
        guard let group = calmGroup(zone), !group.thenTry.isEmpty, !plan.hasBudget, !plan.mayLeaveOut("h.\(zone)", 1)
        else { return }
        judge.isTroubled(seconds: 18)
        let (troubles, count, era) = (judge.troubles, judge.plans.count, judge.era)
        askNew(client, zone, 20, 18, seed, isPromised: false)
        kernel.after(1_000_000_000) {
            for host in group.hosts {
                host.begin(trouble, until: kernel.now + 17_000_000_000)
                if trouble == .refuses { kernel.network.reset(host) }
            }
        }
        // By then the first questions have failed at each server, and so have all that had begun until then.
        let known = kernel.awake + 10_000_000_000
        kernel.after(17_000_000_000) {
            guard troubles == judge.troubles, count == judge.plans.count, era == judge.era else { return }
            let asked = judge.names(askedOf: group.hosts, since: known)
            if asked.count > 9 {
                judge.fault("\(group.name), which is down, is asked for \(asked.count) names in seven seconds")
            }
        }
    }

    /// Connections that were reset show nothing about the lifetime of others.
    private func askWhileResetting(_ client: Int, _ zone: String, _ seed: UInt64) {
        guard let group = calmGroup(zone) else { return }
        judge.isTroubled(seconds: 3)
        let (troubles, count, era) = (judge.troubles, judge.plans.count, judge.era)
        askNew(client, zone, 20, 10, seed, isPromised: false)
        for moment in [1000, 1400] as [UInt64] {
            kernel.after(moment * 1_000_000) { for host in group.hosts { kernel.network.reset(host) } }
        }
        kernel.after(4_000_000_000) {
            let before = group.hosts.map(\.accepted)
            kernel.after(6_000_000_000) {
                guard troubles == judge.troubles, count == judge.plans.count, era == judge.era else { return }
                for (host, before) in zip(group.hosts, before) where host.accepted - before > 6 {
                    judge.fault("\(host.name) is connected to \(host.accepted - before) times for some 120 questions")
                }
            }
        }
    }

    /// Whether the cache has an entry that is fresh now, and for so many seconds more.
    /// - Parameter isKept: It is also in the cache file.
    private func isFresh(_ query: DNSQuery, from seconds: Int, isKept: Bool = false) -> Bool {
        guard let daemon, let name = Name(query.name) else { return false }
        let manner = query.manner
        let found = daemon.cache.find(
            name, type: RecordType(rawValue: query.type),
            for: .those(dnssecOK: manner.isDNSSECOK, checkingDisabled: manner.isCheckingDisabled),
            at: Tick(nanoseconds: kernel.now + UInt64(seconds) * 1_000_000_000).seconds)
        return found.map { $0.isFresh && !(isKept && $0.isStandIn) } ?? false
    }

    /// Whether the cache has a stale entry that can still be given after clients have waited for a fresh answer.
    private func hasStale(_ name: String, _ type: UInt16, _ manner: Script.Manner) -> Bool {
        // Service bindings are not given stale: without the group that has them there are none.
        let mayBeBound = type == 65 && !plan.groups(for: name).isDisjoint(with: Topology.accounts)
        guard let daemon, !mayBeBound, let name = Name(name) else { return false }
        let found = [0, 2_000_000_000 as UInt64].map { later in
            daemon.cache.find(
                name, type: RecordType(rawValue: type),
                for: .those(dnssecOK: manner.isDNSSECOK, checkingDisabled: manner.isCheckingDisabled),
                at: Tick(nanoseconds: kernel.now + later).seconds)
        }
        return found.allSatisfy { $0.map { !$0.isFresh } ?? false }
    }

    /// Asks over TCP, perhaps octet by octet, and perhaps announces at once that it will ask nothing more.
    private final class StreamClient: FarEnd {
        private let endpoint: Endpoint
        private weak var link: Link?
        private var buffer: [UInt8] = []
        private var awaited = 0

        init(_ endpoint: Endpoint) { self.endpoint = endpoint }

        func ask(_ queries: [[UInt8]], _ chance: inout Chance) {
            link = kernel.network.connect(self, from: endpoint, to: Episode.server)
            awaited = queries.count
            var frames: [UInt8] = []
            for query in queries {
                frames.append(query.count, octets: 2)
                frames += query
            }
            let piece = 1 + chance.below(2 * frames.count)
            while !frames.isEmpty {
                link?.sendToNear(Array(frames.prefix(piece)))
                frames.removeFirst(min(piece, frames.count))
            }
            if chance.below(4) == 0 { link?.endByFar() }
        }

        func received(_ bytes: [UInt8]) {
            buffer += bytes
            while buffer.count >= 2, case let length = Int(buffer[0]) << 8 | Int(buffer[1]), buffer.count >= 2 + length
            {
                judge.answered(Array(buffer[2..<2 + length]), to: endpoint)
                buffer.removeFirst(2 + length)
                awaited -= 1
                if awaited == 0 { link?.endByFar() }
            }
        }

        func ended() {}
    }

    // MARK: Silence

    /// Once nothing happens any more, only the objects of the start are left.
    private func checkQuiet() {
        for host in hosts { host.heal() }
        judge.isTroubled(seconds: 0)
        kernel.network.change(isUp: true)
        kernel.run(until: max(kernel.now, Script.start + script.length) + 1200 * 1_000_000_000)
        guard judge.faults.isEmpty, let loop = daemon?.forwarderLoop else { return }
        let left =
            loop.look({ forwarder, _ in forwarder.underWay }) + [
                (
                    "connections",
                    kernel.all(StreamPort.self).count { $0.link.map { $0.host?.group != "store" } ?? false }
                ),
                ("ports", kernel.all(DatagramPort.self).count { !$0.listens }),
            ]
        let toStore = kernel.all(StreamPort.self).count { $0.link?.host?.group == "store" }
        if toStore != (plan.hasStore ? 1 : 0) { judge.fault("\(toStore) connections to the store when all is well") }
        for (what, count) in left where count > 0 {
            judge.fault("\(count) \(what) are left when all is quiet")
        }
        let before = kernel.moments
        kernel.run(until: kernel.now + 3600 * 1_000_000_000)
        let moments = kernel.moments - before
        // Each minute is a step in the history. The file is written each second in which its answers have changed; each ten
        // seconds the store is asked what is valid.
        if moments > 130 + (script.hasFile ? 3700 : 0) + (plan.hasStore ? 3 * 370 : 0) {
            judge.fault("woken \(moments) times in an hour in which nothing happens")
        }
    }
}

/// A line of the log, which is dropped.
private func log(_ line: LogText) {
    if isVerbose { print("\(Script.time(kernel.now - Script.start))     \(line.level) \(line.text)") }
}
