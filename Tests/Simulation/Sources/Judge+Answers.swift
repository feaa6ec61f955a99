import Base

/// The questions of clients, and their answers.
extension Judge {
    func asks(_ query: DNSQuery, from client: Endpoint, hasStale: Bool, promise: Int?, foretold: UInt8?) {
        figures.asked += 1
        let plan = plans[plans.count - 1].plan
        for name in [query.name, plan.target(of: query.name)] {
            if let name { questionTimes[name, default: []].append(kernel.awake) }
        }
        questions[client, default: [:]][query.id] = Asked(
            query: query, at: kernel.now, slept: kernel.slept, era: era, plan: plan,
            index: plans.count - 1, hasStale: hasStale, promise: promise, foretold: foretold)
        watch(client, query.id)
    }

    /// Checks the answer after four seconds in which the machine was awake.
    private func watch(_ client: Endpoint, _ id: UInt16) {
        kernel.after(4_000_000_001) { [self] in
            guard let asked = questions[client]?[id], asked.era == era else { return }
            if asked.slept != kernel.slept { return }
            if asked.answers == 0 { fault("\(asked.text) no answer") }
        }
    }

    /// The queries of clients that wait in this era.
    func queries(ofEra era: Int) -> [DNSQuery] {
        let all = questions.values.flatMap { $0.values.lazy.filter { $0.era == era }.map(\.query) }
        return all.sorted { ($0.name, $0.type, $0.id) < ($1.name, $1.type, $1.id) }
    }

    /// From now on, earlier questions need no answer, or their answers may differ.
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
        let who = asked.text
        guard asked.answers == 1 else { return fault("\(who) answered \(asked.answers) times") }
        answered += 1
        // The answer of the former daemon may come when the next one has begun.
        if asked.at > figures.since { figures.answered += 1 }
        kernel.network.tell("\(who) is answered, \(reply[3] & 15)")
        let took = kernel.now - asked.at
        if asked.slept == kernel.slept {
            if took > 4_000_000_000 { fault("\(who) answered after \(took / 1_000_000) ms") }
            let isStaleThere =
                asked.hasStale && asked.era == era && asked.index == plans.count - 1
                && max(lastFlush, lastRouteChange) < asked.at
            if isStaleThere, took > 1_800_000_000 {
                fault("\(who) answered after \(took / 1_000_000) ms although something stale is there")
            }
        }
        guard let message = Reading(reply, of: asked.query) else { return fault("\(who) cannot read its answer") }
        note(message, asked)
        let targets = Set(plans[first(asked)...].map { $0.plan.target(of: asked.query.name) })
        if targets.count == 1, let target = targets.first! {
            checkAlias(message, asked, target, who)
        } else if targets == [nil] {
            check(message, asked, who)
        }
    }

    /// An alias comes before the records of its target, where there could be any.
    private func checkAlias(_ message: Reading, _ asked: Asked, _ target: String, _ who: String) {
        if Self.refusal(ofType: asked.query.type) != nil || asked.query.type == 255 { return }
        guard [1, 28, 65].contains(asked.query.type) else {
            if message.code != 0 || !message.records.isEmpty {
                fault("\(who) something else than no record beside an alias")
            }
            return
        }
        var (message, asked) = (message, asked)
        if message.records.first?.type == 5 {
            message.records.removeFirst()
        } else if message.code == 0 || message.code == 3, !message.isTruncated {
            fault("\(who) RCODE \(message.code) without the alias")
        }
        asked.query.name = target
        check(message, asked, who)
    }

    /// Records the features on which the answer may depend.
    private func note(_ message: Reading, _ asked: Asked) {
        let (query, manner) = (asked.query, asked.query.manner)
        var all = asked.plan.features(for: query.name, query.type).union(recentEvents)
        let isStale = message.errors.contains(3) || message.errors.contains(19)
        let record = message.records.first { $0.type != 5 }
        let inside = record.flatMap { $0.type == 28 ? Self.translated($0.data) : nil }
        let serial =
            inside.map { Self.serial($0.address.octets[...], 1) } ?? record.flatMap { Self.serial($0.data, $0.type) }
        let isCached = serial.map { $0 < said.count && said[Int($0)].at < asked.at } ?? false
        let marks: [(Feature, Bool)] = [
            (.stream, manner.isStream), (.validates, manner.isDNSSECOK), (.checksNothing, manner.isCheckingDisabled),
            (.hasCookie, manner.hasCookie), (.cached, isCached && !isStale), (.stale, isStale), (.made, inside != nil),
            (.denied, !isStale && (message.code == 3 || message.code == 0 && record == nil)),
            (.failed, message.code == 2),
        ]
        for (mark, isOn) in marks where isOn { all.insert(mark) }
        crossings.met(all)
    }

    /// By how many nanoseconds what a store has may seem younger than it is: it is as old as the clock says, and a daemon cannot
    /// know that the clock was set back before it started.
    private func younger(since moment: UInt64) -> UInt64 {
        plans.contains { $0.plan.hasStore } ? setBack.reduce(0) { $0 + ($1.at > moment ? $1.by : 0) } : 0
    }

    /// An answer, and the facts that decide what it may contain.
    private struct Answer {
        let message: Reading
        let asked: Asked
        let truth: Truth
        /// All settings in effect since the question.
        let plans: [Plan]
        let groups: Set<String>
        let isStale: Bool
        /// The beginning of each message about it.
        let who: String

        /// The nanoseconds after its time in which it may still be given.
        var longer: UInt64 { isStale ? UInt64(plans.map(\.staleSeconds).max()!) * 1_000_000_000 + 4_000_000_000 : 0 }
        /// An entry that was valid at the time of the question may be given when the machine wakes again.
        var sleptSince: UInt64 { kernel.slept - asked.slept }
    }

    private func check(_ message: Reading, _ asked: Asked, _ who: String) {
        let plans = plans[first(asked)...].map(\.plan)
        let answer = Answer(
            message: message, asked: asked, truth: Truth(asked.query.name, asked.query.type), plans: plans,
            groups: plans.reduce(into: []) { $0.formUnion($1.groups(for: asked.query.name)) },
            isStale: message.errors.contains(3) || message.errors.contains(19), who: who)
        if answer.isStale { stale += 1 }
        // RFC 8914 §4.4, §4.20.
        if answer.isStale, message.errors.contains(19) != (message.code == 3) {
            fault("\(who) stale, with another's code")
        }
        checkHead(answer)
        if let code = Self.refusal(ofType: asked.query.type) {
            if message.code != code { fault("\(who) RCODE \(message.code) where \(code) is right") }
            return
        }
        let hasBlocked = plans.contains { $0.blocked(asked.query.name, 255) != nil }
        let isWithoutServer = plans.contains { $0.hasNone(asked.query.name) }
        // RFC 8482 §4.2.
        if asked.query.type == 255 {
            if message.records.map(\.type) == [13] { return }
            if !hasBlocked, !isWithoutServer { return fault("\(who) something else than HINFO") }
        }
        let mayBeBogus = bogusNames.contains(asked.query.name) && plans.contains { $0.hasBogus(asked.query.name) }
        // A name that the hosts file or an account has exists.
        let isElsewhere =
            plans.contains { $0.hosted(asked.query.name, 1) != nil }
            || said.contains { $0.name == asked.query.name && Topology.accounts.contains($0.host.group) }
        if mayBeBogus, message.records.isEmpty, message.code == 3 || message.code == 0 && isElsewhere { return }
        // A name for which a group gives the address of a search page waits for the next group.
        if !mayBeBogus { checkPromise(answer) }
        if let code = asked.foretold, asked.slept == kernel.slept {
            explained += 1
            if message.code != code { fault("\(who) RCODE \(message.code), where explain says \(code)") }
            if kernel.now - asked.at > 10_000_000 { fault("\(who) asked of a server, where explain says that none is") }
        }
        if !mayBeBogus { checkCalm(answer) }
        if message.code == 5, answer.groups.count == 1, let host = wellHost(of: answer.groups.first!, asked) {
            fault("\(who) REFUSED, though \(host.name) is well")
        }
        if message.code == 5, answer.groups.count == 1,
            let host = plans.flatMap({ $0.hosts(of: answer.groups.first!) }).first(where: {
                !$0.mayHaveRefused && !$0.mayBePaused
            })
        {
            fault("\(who) REFUSED, though \(host.name) has not refused")
        }
        let hosted = plans.map { $0.hosted(asked.query.name, asked.query.type) }
        if hosted.contains(where: { $0 != nil }) {
            let all = message.records.map { Array($0.data) }
            if message.code == 0, hosted.contains(where: { $0.map { ($0.isEmpty ? [] : [$0]) == all } ?? false }) {
                return
            }
            if !hosted.contains(nil) { return fault("\(who) another answer than the hosts file's") }
        }
        // A name in the hosts file exists, whatever the type.
        let exists = plans.contains { $0.hosted(asked.query.name, 1) != nil }
        let blocked = plans.map { $0.blocked(asked.query.name, asked.query.type) }
        if blocked.contains(where: { $0 != nil }) {
            let all = message.records.map { Array($0.data) }
            let isSaid = blocked.contains { said in
                said.map { ($0.code == message.code || exists && message.code == 0) && $0.data == all } ?? false
            }
            if isSaid { return }
            if !blocked.contains(where: { $0 == nil }) { return fault("\(who) another answer than the list's") }
        }
        if plans.allSatisfy({ $0.hasNoPrivateNames && $0.isPrivate(asked.query.name) }) {
            if message.code != 3, !exists || message.code != 0 {
                fault("\(who) RCODE \(message.code) for a private name without a server")
            }
            return
        }
        let isLeftOut = plans.allSatisfy {
            $0.group(of: asked.query.name) != nil && $0.leavesOut(asked.query.name, asked.query.type)
        }
        if isLeftOut, message.code != 0 || !message.records.isEmpty {
            fault("\(who) records of a type that is left out")
        }
        if message.code == 3, answer.truth.exists, !isWithoutServer || awaitsServers(of: asked.query.name) {
            return fault("\(who) NXDOMAIN, which nobody says")
        }
        checkDenial(answer)
        checkFailure(answer)
        for record in message.records { check(record, answer) }
    }

    /// Whether the network has named no server for a private name since the daemon started.
    private func awaitsServers(of name: String) -> Bool {
        plans.indices.filter { $0 + 1 == plans.count || plans[$0 + 1].by >= figures.since }.allSatisfy {
            plans[$0].plan.hasNone(name) && !plans[$0].plan.hasNoPrivateNames
        }
    }

    /// A server of a group that all settings of a question have, and that would have answered it.
    private func wellHost(of group: String, _ asked: Asked) -> Host? {
        let patience: UInt64 = 20_000_000_000
        guard kernel.network.hadNoIPv4 + patience < asked.at, kernel.network.hadNoIPv6 + patience < asked.at,
            asked.index == plans.count - 1, !kernel.lackedDescriptors(within: patience)
        else { return nil }
        return asked.plan.hosts(of: group).first { $0.isWell }
    }

    /// Checks the promise while only one server has trouble.
    private func checkPromise(_ answer: Answer) {
        let (asked, who) = (answer.asked, answer.who)
        guard let promise = asked.promise, promise == troubles, asked.era == era, asked.index == plans.count - 1 else {
            return
        }
        let took = (kernel.now - asked.at) / 1_000_000
        if answer.message.code != 0 {
            fault("\(who) RCODE \(answer.message.code) after \(took) ms, though another server is well")
        }
        if took > 1000 { fault("\(who) answered after \(took) ms, though another server is well") }
    }

    /// Checks an answer while there is no trouble.
    private func checkCalm(_ answer: Answer) {
        let (asked, who) = (answer.asked, answer.who)
        let isHeldUp = asked.plan.groups.contains {
            answer.groups.contains($0.name) && mayHoldUp($0, since: asked.at)
        }
        guard asked.at > isCalmAt, !answer.truth.isSilent, !isHeldUp,
            !asked.plan.isHTTPOnly && !asked.plan.asksAccountsAlone(asked.query.name)
                || asked.plan.accountAnswers(asked.query.name, answer.truth)
        else { return }
        if answer.message.code != 0, answer.message.code != 3 {
            fault("\(who) RCODE \(answer.message.code), though all is well")
        }
        if answer.isStale, answer.groups.count == 1 { fault("\(who) stale, though all is well") }
        if kernel.now - asked.at > 1_500_000_000 { fault("\(who) answered late, though all is well") }
    }

    private func checkHead(_ answer: Answer) {
        let (message, query, who) = (answer.message, answer.asked.query, answer.who)
        let manner = query.manner
        if message.isDNSSECOK != manner.isDNSSECOK { fault("\(who) the bit DO is another") }
        if message.isCheckingDisabled != manner.isCheckingDisabled { fault("\(who) the bit CD is another") }
        if message.isAuthentic { fault("\(who) the bit AD, which nobody says") }
        if manner.hasCookie != (message.cookie.count == 24) || !message.cookie.starts(with: query.cookie) {
            fault("\(who) a cookie of \(message.cookie.count) octets")
        }
    }

    private func checkDenial(_ answer: Answer) {
        let (message, query) = (answer.message, answer.asked.query)
        let isDenial = message.code == 3 || message.code == 0 && !message.isTruncated && message.records.isEmpty
        // For other types of a name that an account answers for, the daemon itself denies the record.
        guard isDenial, answer.truth.isAddress else { return }
        let hasIPv6 = answer.asked.at > kernel.network.hadNoIPv6 + Self.noting
        let hasIPv4 = answer.asked.at > kernel.network.hadNoIPv4 + Self.noting
        guard
            !answer.plans.contains(where: {
                $0.denies(query.name, query.type, hasIPv4: hasIPv4, hasIPv6: hasIPv6)
            })
        else { return }
        let all = answer.groups.compactMap { denied["\($0) \(query.name) \(query.type)"] }
        // An account's word that one family is absent is kept for as long as the addresses of the other one.
        let hasOther = Truth(query.name, query.type == 1 ? 28 : 1).count > 0
        let isAccounts = !answer.groups.isDisjoint(with: Topology.accounts)
        let stretched =
            hasOther && isAccounts ? UInt64(longestMinTTL(answer, since: 0)) * 1_000_000_000 + Self.slack : 0
        guard let until = all.map({ max($0.until, $0.at + stretched) }).max() else {
            return fault("\(answer.who) no record, which nobody says")
        }
        if all.contains(where: { isHeldInSleep($0.awake, at: $0.at) }) { return }
        if until + answer.longer + younger(since: 0) + answer.sleptSince < kernel.now {
            fault("\(answer.who) no record, which nobody says any more")
        }
        let isUnknown = [1, 28].allSatisfy { Truth(query.name, $0).count == 0 }
        if isUnknown, answer.plans.allSatisfy({ $0.asksUnprovenAlone(query.name) }) {
            fault("\(answer.who) no record, which the account does not prove")
        }
    }

    /// A question of which the servers of its only group have said in time that there is no record does not fail, whatever
    /// else is looked up for it.
    private func checkFailure(_ answer: Answer) {
        let (asked, query) = (answer.asked, answer.asked.query)
        let (pause, travel) = (4_000_000_000 as UInt64, 100_000_000 as UInt64)
        guard answer.message.code == 2, answer.groups.count == 1, let group = answer.groups.first,
            !Topology.accounts.contains(group), let said = denied["\(group) \(query.name) \(query.type)"],
            said.arrives, asked.at < said.at, said.at + travel < kernel.now,
            said.query?.manner.isDNSSECOK == query.manner.isDNSSECOK,
            said.query?.manner.isCheckingDisabled == query.manner.isCheckingDisabled,
            asked.era == era, asked.slept == kernel.slept, lastChange + pause < asked.at - kernel.slept
        else { return }
        fault("\(answer.who) RCODE 2, though \(group) has said that there is none")
    }

    /// By all settings from a moment on.
    private func longestMinTTL(_ answer: Answer, since moment: UInt64) -> UInt32 {
        (answer.plans + plans(since: moment)).map(\.minTTL).max()!
    }

    /// The machine may have slept between two answers: the second one may have content from before the sleep.
    private func isHeldInSleep(_ awake: UInt64, at moment: UInt64) -> Bool {
        awake + 4_000_000_000 >= kernel.awake && kernel.awake - awake < kernel.now - moment
    }

    private func check(_ record: Reading.Record, _ answer: Answer) {
        let (query, who) = (answer.asked.query, answer.who)
        let inside = record.type == 28 ? Self.translated(record.data) : nil
        let (type, data) = inside.map { (1, $0.address.octets[...]) } ?? (record.type, record.data)
        guard record.type == query.type, let serial = Self.serial(data, type), serial < said.count else {
            return fault("\(who) a record that nobody has said")
        }
        if let inside { checkTranslated(answer, inside.prefix) }
        let told = said[Int(serial)]
        if told.name != query.name || told.type != type {
            fault("\(who) what \(told.host.name) said of \(told.name) \(Script.name(ofType: told.type))")
        }
        if !answer.groups.contains(told.host.group) {
            fault("\(who) what \(told.host.name) said, which is not to be asked")
        }
        if Self.isBogus(serial, told.type), answer.plans.allSatisfy({ $0.isBogus(told.host, told.name) }) {
            fault("\(who) the address of a search page")
        }
        if told.host.group == "fallback" {
            let plans = plans(at: told.at)
            // An answer that other settings have taken from the store is theirs.
            let between = self.plans(since: told.at)
            let isOfSame = answer.plans.contains { plan in
                (plans + between).contains { other in
                    plan.isOfSameNetwork(as: other, for: told.name)
                        && plans.contains { other.isOfSameNetwork(as: $0, for: told.name) }
                }
            }
            // While no route leads out, what the last network said stays, whatever resolv.conf lists.
            let isCutOff = !kernel.network.isUp || lastRouteChange + Self.noting > kernel.now
            if !isOfSame, !isCutOff {
                fault("\(who) what \(told.host.name) said in another network")
            }
        }
        if let asked = told.query, !asked.suits(query) {
            fault("\(who) what \(told.host.name) said to a query with other bits DO and CD")
        }
        let isForgotten = forgotten.contains { flush in
            (flush.name ?? told.name) == told.name && told.at + Self.underWay < flush.askedAt
                && flush.doneAt < answer.asked.at && flush.era == answer.asked.era
                // Without a store in the settings, what the store has of earlier ones is not reached.
                && (plans.last { $0.from <= flush.askedAt }?.plan.hasStore ?? false
                    || !plans.contains { $0.plan.hasStore && $0.from < flush.askedAt })
                // What the store has of other settings has other keys, of which the daemon knows nothing any more.
                && (flush.name == nil
                    || !plans.contains { $0.plan.hasStore && $0.from > told.at && $0.from < flush.askedAt })
        }
        if isForgotten { fault("\(who) what \(told.host.name) said before it was to be forgotten") }
        let age = kernel.now - told.at
        let standsIn = standsIn(told)
        if standsIn, answer.isStale { fault("\(who) stale what \(told.host.name) said in another's place") }
        let longest = max(told.ttl, longestMinTTL(answer, since: told.at))
        let ttl = standsIn ? min(longest, Self.standInTTL) : longest
        let life =
            UInt64(ttl) * 1_000_000_000 + Self.slack + younger(since: told.at) + answer.sleptSince
        if answer.isStale {
            if record.ttl > 30 { fault("\(who) stale, with the TTL \(record.ttl)") }
            if age > life + answer.longer, answer.asked.era == era {
                fault("\(who) what \(told.host.name) said \(age / 1_000_000_000) s ago, stale")
            }
        } else if age > life, !isHeldInSleep(told.awake, at: told.at) {
            fault("\(who) what \(told.host.name) said \(age / 1_000_000_000) s ago for \(ttl) s")
        } else if !isHeldInSleep(told.awake, at: told.at), UInt64(record.ttl) * 1_000_000_000 + age > life {
            fault("\(who) the TTL \(record.ttl), of \(ttl) s said \(age / 1_000_000_000) s ago")
        }
    }

    /// The IPv4 address in one under a translator's prefix; nil: it is under none.
    private static func translated(_ data: ArraySlice<UInt8>) -> (address: IPAddress, prefix: NAT64Prefix)? {
        guard let address = IPAddress(bytes: Array(data).span) else { return nil }
        return Network.prefixes.lazy.compactMap { prefix in prefix.ipv4(in: address).map { ($0, prefix) } }.first
    }

    /// Whether a prefix is the settings', or the last one that the network has shown to a daemon that looks for it.
    private func isKnown(_ prefix: NAT64Prefix, _ answer: Answer) -> Bool {
        if answer.plans.contains(where: { $0.fixedPrefix == prefix }) { return true }
        guard answer.plans.contains(where: \.seeksPrefix) else { return false }
        let last = prefixes.last { $0.isSure && $0.at + Self.underWay < answer.asked.at }?.at ?? 0
        return prefixes.contains { $0.prefix == prefix && $0.at >= last }
    }

    /// Checks an address under a translator's prefix.
    private func checkTranslated(_ answer: Answer, _ prefix: NAT64Prefix) {
        let (manner, who) = (answer.asked.query.manner, answer.who)
        if !isKnown(prefix, answer) { fault("\(who) an address under \(prefix), which is not the translator's prefix") }
        if manner.isDNSSECOK, manner.isCheckingDisabled { fault("\(who) an address that the client makes by itself") }
        // What was made up while servers failed, or there was no IPv4, is kept for an hour at the longest.
        guard !answer.isStale, answer.asked.at > isCalmAt + 3_600_000_000_000 else { return }
        if answer.truth.count > 0 { fault("\(who) an address under the prefix, although there are others") }
        if answer.asked.at > kernel.network.hadNoIPv4 + Self.noting + Self.underWay {
            fault("\(who) an address under the prefix, although there is IPv4")
        }
    }

    /// The longest time in seconds for which an answer of another group is kept while an earlier group fails.
    private static let standInTTL: UInt32 = 60

    /// Whether the answer was given instead of that of a failed group.
    private func standsIn(_ told: Said) -> Bool {
        let isAddress = told.type == 1 || told.type == 28
        // Validating clients get the answer of a group with signatures, whether the account answers or not.
        // A server that knows no EDNS is asked without the bit DO.
        if told.host.group == "shop", let query = told.query, query.manner.isDNSSECOK || !query.hasEDNS,
            !query.manner.isCheckingDisabled
        {
            return false
        }
        // For a name without a record of an account, other groups answer.
        let isDenied = Topology.accounts.contains { denied["\($0) \(told.name) \(told.type)"] != nil }
        return plans(since: told.at).allSatisfy { plan in
            plan.standsIn(told.host.group, for: told.name)
                && (plan.group(of: told.name) != nil || isAddress && !isDenied)
        }
    }
}
