import Base
import TestSupport

/// The events of an episode, in words.
struct Script {
    /// The start of episodes, on the machine's clock.
    static let start: UInt64 = 1_000_000_000_000

    /// The manner in which a client asks.
    struct Manner {
        var isStream = false
        /// The bit DO (RFC 4035 §3.2.1).
        var isDNSSECOK = false
        /// The bit CD.
        var isCheckingDisabled = false
        /// A cookie (RFC 7873).
        var hasCookie = false

        init() {}

        /// Most clients use none of these.
        init(_ chance: inout Chance) {
            isStream = chance.below(6) == 0
            isDNSSECOK = chance.below(8) == 0
            isCheckingDisabled = chance.below(16) == 0
            hasCookie = chance.below(8) == 0
        }

        var text: String {
            (isStream ? " over TCP" : "") + (isDNSSECOK ? " with DO" : "") + (isCheckingDisabled ? " with CD" : "")
                + (hasCookie ? " with a cookie" : "")
        }
    }

    enum What {
        case question(client: Int, name: String, type: UInt16, Manner)
        /// Several questions on one connection, without waiting for the answers.
        case pipeline(client: Int, names: [String], type: UInt16)
        case flood(client: Int, count: Int)
        /// For so many seconds a client asks this number of names a second whose servers are silent.
        case silentZone(client: Int, zone: String, perSecond: Int, seconds: Int)
        /// A client asks this number of new names of a zone each second; after a second the first server of its group
        /// is silent for so many seconds.
        case blackHole(client: Int, zone: String, perSecond: Int, seconds: Int)
        /// The same, but all servers of the group have this trouble, and another group is asked.
        case outage(client: Int, zone: String, Trouble)
        /// A client asks more names of a zone at once than its group has room for, and then the settings or files change.
        case crowd(client: Int, zone: String, count: Int)
        /// A client asks new names of a zone, and twice all connections to its servers are reset, young ones the second time.
        case youngResets(client: Int, zone: String)
        /// A trouble of one host, or of all hosts of a group.
        case trouble(host: String, Trouble, seconds: Int)
        case goAway(host: String)
        case stutter(host: String)
        case reset(host: String)
        case forget(host: String)
        case clock(seconds: Int)
        case sleep(seconds: Int)
        /// Addresses and routes change; for so many seconds there are none.
        case network(gone: Int)
        /// No route leads to IPv6 addresses.
        case ipv6(gone: Int)
        /// No route leads to IPv4 addresses, but for those under the prefix of the network's translator.
        case ipv4(gone: Int)
        /// The disk is full.
        case fullDisk(seconds: Int)
        /// No further descriptor is given out.
        case noDescriptors(seconds: Int)
        /// The file of names has other names.
        case names([String])
        /// `resolv.conf` lists other hosts.
        case resolvers([String])
        /// For so many seconds it lists no host.
        case noResolvers(seconds: Int)
        /// The hosts file has other names, with another address.
        case hosted([String])
        /// The list of a group that answers by itself has other names.
        case blocked([String])
        /// A host moves to another address; the old one is silent for so many seconds, and then refuses connections.
        case moves(host: String, seconds: Int)
        /// An operator uses the control socket.
        case control(String, name: String)
        /// The counts are logged, as after SIGUSR1.
        case counters
        case reload
        /// Other settings, which meet the need of a zone's names.
        case settings(Plan.Need, zone: String)
        /// One key of the settings has another value, or the group of this name comes or goes.
        case otherKey(String)
        /// The network is another one, whose translator has another prefix.
        case translator
        /// One key of the settings has another value, or a group comes or goes. The key is one of this section, if it has any.
        case oneSetting(of: String)
        /// The settings are wrong, and refused.
        case wrongReload
        case crash(part: Int)
        case restart
        /// A restart with other settings.
        case otherStart

        /// The names that a change is about; none: it may be about any.
        var names: [String] {
            switch self {
            case .hosted: Topology.hostsFiles.joined().sorted()
            case .blocked: Topology.blockFiles.joined().filter { !$0.hasPrefix("@") }.sorted()
            case .control(_, let name): [name]
            case .oneSetting(of: "nat64"): ["v0.\(Topology.publicZone)"]
            case .oneSetting(let section): Topology.zones[section].map { ["h0.\($0)", "v1.\($0)", "x2.\($0)"] } ?? []
            default: []
            }
        }
    }

    struct Item {
        /// Nanoseconds since the beginning.
        let at: UInt64
        let what: What
        let seed: UInt64
    }

    let seed: UInt64
    /// The protocol of the account.
    let provider: Provider
    /// Whether the account is asked over https.
    let isSecure: Bool
    let hasFile: Bool
    /// Whether there is a store for a fleet.
    let hasStore: Bool
    var items: [Item] = []
    /// Nanoseconds.
    private(set) var length: UInt64 = 0

    init(seed: UInt64) {
        var chance = Chance(seed: seed)
        (self.seed, isSecure, hasFile) = (seed, chance.below(2) == 0, chance.below(4) == 0)
        hasStore = chance.below(2) == 0
        let others = Provider.allCases.filter { $0 != .tencent }
        provider = isSecure && chance.below(2) == 0 ? others[chance.below(others.count)] : .tencent
        let hosts = Topology.hosts(secure: isSecure).map(\.name)
        var at: UInt64 = 0
        let names = Self.names(&chance)
        for _ in 0..<4 + chance.below(6) {
            burst(&chance, hosts, names, at: at)
            at += UInt64([0, 30, 60, 120, 600, 6000][chance.below(6)] + chance.below(300)) * 1_000_000_000
        }
        for kind in Array(0..<13).shuffled(using: &chance).prefix(8 + chance.below(4)) {
            at += 150_000_000_000
            meeting(&chance, kind, at: at)
            at += 400_000_000_000
        }
        length = at
        items = items.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
    }

    private mutating func add(_ chance: inout Chance, at moment: UInt64, _ what: What) {
        items.append(Item(at: moment, what: what, seed: chance.next()))
    }

    private static func names(_ chance: inout Chance) -> [String] {
        let zones =
            [
                Topology.publicZone, Topology.publicZone, "far.net", Topology.secondZone, Topology.secondZone,
                Topology.privateZone, Topology.blockedZone, Topology.aliasZone,
            ]
            + Topology.zones.values.sorted()
        let listed = Set((Topology.hostsFiles + Topology.blockFiles).joined()).filter { !$0.hasPrefix("@") }.sorted()
        return (0..<4 + chance.below(12)).map { _ in
            chance.below(4) == 0
                ? listed[chance.below(listed.count)]
                : "\(["h", "h", "h", "v", "v", "x", "x", "l", "g", "f", "a"][chance.below(11)])\(chance.below(3)).\(zones[chance.below(zones.count)])"
        }
    }

    /// Some minutes in which clients ask for few names, most of them again, with troubles.
    private mutating func burst(_ chance: inout Chance, _ hosts: [String], _ all: [String], at start: UInt64) {
        let names = (0..<1 + chance.below(6)).map { _ in all[chance.below(all.count)] }
        let seconds = [1, 10, 100, 400][chance.below(4)]
        func moment(_ chance: inout Chance) -> UInt64 { start + UInt64(chance.below(seconds * 1000)) * 1_000_000 }
        // Most troubles are those of the servers that are asked.
        let groups = names.map { name in
            Topology.zones.keys.sorted().first { name.hasSuffix("." + Topology.zones[$0]!) } ?? "httpdns"
        }
        let asked = groups + groups + ["fallback"]
        let near = asked + hosts.filter { host in asked.contains { host.hasPrefix($0 == "httpdns" ? "account" : $0) } }
        for _ in 0..<chance.below(9) {
            let what: What =
                switch chance.below(42) {
                case 0: .reset(host: hosts[chance.below(hosts.count)])
                case 1: .forget(host: hosts[chance.below(hosts.count)])
                case 2: .clock(seconds: [-86_400, -3600, -5, 5, 3600, 86_400 * 400][chance.below(6)])
                case 3: .sleep(seconds: [5, 600, 40_000][chance.below(3)])
                case 4: .network(gone: 0)
                case 5: .network(gone: 1 + chance.below(60))
                case 6, 7, 8: .reload
                case 9: .crash(part: chance.below(101))
                case 10: .restart
                case 11, 12: .goAway(host: near[chance.below(near.count)])
                case 13: .stutter(host: "account-\(1 + chance.below(5))")
                case 14: .flood(client: chance.below(5), count: 50 + chance.below(3000))
                case 15:
                    chance.below(2) == 0
                        ? .ipv6(gone: 1 + chance.below(60)) : .ipv4(gone: [5, 60, 900][chance.below(3)])
                case 16: .fullDisk(seconds: [2, 30, 4000][chance.below(3)])
                case 17: .noDescriptors(seconds: 1 + chance.below(3))
                case 18, 19: .names(Topology.namesFiles[chance.below(Topology.namesFiles.count)])
                case 20: .resolvers(Topology.resolvers[chance.below(Topology.resolvers.count)])
                case 21: .noResolvers(seconds: 1 + chance.below(60))
                case 22, 23: .hosted(Topology.hostsFiles[chance.below(Topology.hostsFiles.count)])
                case 40, 41: .blocked(Topology.blockFiles[chance.below(Topology.blockFiles.count)])
                case 24, 25: .moves(host: ["office-3", "shop-3"][chance.below(2)], seconds: chance.below(20))
                case 26..<37:
                    .trouble(
                        host: near[chance.below(near.count)], Trouble.allCases[chance.below(Trouble.allCases.count)],
                        seconds: [2, 30, 300][chance.below(3)])
                default:
                    .trouble(
                        host: hosts[chance.below(hosts.count)], Trouble.allCases[chance.below(Trouble.allCases.count)],
                        seconds: [2, 30, 300][chance.below(3)])
                }
            let at = chance.below(2) == 0 ? start : moment(&chance)
            add(&chance, at: at, what)
            // Whoever is in trouble is asked for a name that it may not have been asked for.
            if case .trouble(let host, _, _) = what, chance.below(2) == 0 {
                let zone = Topology.zones[String(host.prefix { $0 != "-" })] ?? Topology.publicZone
                let question = What.question(
                    client: chance.below(5), name: "h\(3 + chance.below(60)).\(zone)", type: 1, Manner())
                add(&chance, at: at + UInt64(chance.below(1500)) * 1_000_000, question)
            }
        }
        // Older answers, and answers made of others, are given then.
        if chance.below(4) == 0 {
            let trouble: Trouble = [.silent, .refuses, .mute, .fails][chance.below(4)]
            // Some entries have ended by then, and are asked for again.
            for name in names {
                for moment in [start - min(start, 40_000_000_000), start + 20_000_000_000] {
                    add(
                        &chance, at: moment,
                        .question(
                            client: chance.below(5), name: name, type: [1, 28, 16][chance.below(3)], Manner(&chance)))
                }
            }
            for group in Set(asked).sorted() {
                add(&chance, at: start, .trouble(host: group, trouble, seconds: [30, 300][chance.below(2)]))
                // Its servers are not all in the same trouble.
                let others = hosts.filter { $0.hasPrefix(group) }
                guard chance.below(2) == 0, !others.isEmpty else { continue }
                let host = others[chance.below(others.count)]
                add(&chance, at: start, .trouble(host: host, .fails, seconds: 300))
            }
        } else if chance.below(4) == 0 {
            add(&chance, at: start, .ipv4(gone: [60, 900][chance.below(2)]))
            let zones = all.map { $0.drop { $0 != "." }.dropFirst() }
            for second in 5..<20 {
                let name = "v\(chance.below(3)).\(zones[chance.below(zones.count)])"
                let moment = start + UInt64(second) * 1_000_000_000
                add(&chance, at: moment, .question(client: chance.below(5), name: name, type: 28, Manner(&chance)))
            }
            if chance.below(2) == 0 {
                // The network's translator is another one, or there is none.
                let (at, zone) = (start + 25_000_000_000, zones[chance.below(zones.count)])
                for second in [15, 24, 28, 40] as [UInt64] {
                    let moment = start + second * 1_000_000_000
                    add(&chance, at: moment, .question(client: 0, name: "v0.\(zone)", type: 28, Manner()))
                }
                add(&chance, at: at, .oneSetting(of: "nat64"))
            }
        }
        // A setting that decides about cached answers changes, most times one of the groups that are asked.
        let sections = asked + ["nat64", "cache", "private", "blocked", "alias", "second"]
        for _ in 0..<3 {
            let change: What =
                switch chance.below(12) {
                case 0: .restart
                case 9: .otherStart
                case 1: .reload
                case 8, 10, 11: .oneSetting(of: sections[chance.below(sections.count)])
                case 2: .control("POST /flush?name=NAME", name: names[chance.below(names.count)])
                case 3: .control("POST /flush?under=.", name: names[0])
                case 4: .network(gone: chance.below(2))
                case 5: .blocked(Topology.blockFiles[chance.below(Topology.blockFiles.count)])
                case 6: .hosted(Topology.hostsFiles[chance.below(Topology.hostsFiles.count)])
                case 7: .names(Topology.namesFiles[chance.below(Topology.namesFiles.count)])
                default: .resolvers(Topology.resolvers[chance.below(Topology.resolvers.count)])
                }
            let at = moment(&chance)
            add(&chance, at: at, change)
            let isOne = if case .oneSetting = change { true } else { false }
            ask(&chance, isOne ? 8 : chance.below(4), around: at, about: change.names.isEmpty ? names : change.names)
            if case .oneSetting(let section) = change, asked.contains(section), chance.below(3) == 0 {
                let trouble: Trouble = [.silent, .slow, .fails][chance.below(3)]
                add(
                    &chance, at: at - min(at, 1_500_000_000),
                    .trouble(host: section, trouble, seconds: [2, 10][chance.below(2)]))
            }
        }
        if chance.below(3) == 0 { silentZone(&chance, at: moment(&chance)) }
        if chance.below(6) == 0 {
            // A start before the network has named its resolvers.
            let at = moment(&chance)
            add(&chance, at: at, .noResolvers(seconds: 10 + chance.below(40)))
            add(&chance, at: at + 4_000_000_000, .restart)
            let name = "h\(chance.below(3)).\(Topology.privateZone)"
            add(&chance, at: at + 6_000_000_000, .question(client: chance.below(5), name: name, type: 1, Manner()))
        }
        if chance.below(4) == 0 { add(&chance, at: moment(&chance), .wrongReload) }
        // This is late enough for the daemon to have forgotten the troubles.
        let calm = start + UInt64(seconds + 500) * 1_000_000_000
        if chance.below(2) == 0 { load(&chance, at: calm) }
        if chance.below(2) == 0 { shortage(&chance, at: calm + 300_000_000_000) }
        for _ in 0..<max(0, chance.below(12) - 6) {
            let type = Self.questionTypes[chance.below(Self.questionTypes.count)]
            let name = names[chance.below(names.count)]
            add(
                &chance, at: moment(&chance),
                .question(client: chance.below(5), name: name, type: type, Manner(&chance)))
        }
        for _ in 0..<chance.below(4) {
            let request = Operator.requests[chance.below(Operator.requests.count)]
            let what: What =
                chance.below(8) == 0 ? .counters : .control(request, name: names[chance.below(names.count)])
            add(&chance, at: moment(&chance), what)
        }
        for _ in 0..<3 + chance.below(120) {
            let client = chance.below(5)
            let type: UInt16 = [1, 1, 1, 28, 28, 16, 65][chance.below(7)]
            let what: What =
                chance.below(16) == 0
                ? .pipeline(
                    client: client, names: (0..<2 + chance.below(8)).map { _ in names[chance.below(names.count)] },
                    type: type)
                : .question(client: client, name: names[chance.below(names.count)], type: type, Manner(&chance))
            let at = moment(&chance)
            add(&chance, at: at, what)
            // Most programs want the addresses of both families.
            if case .question(_, let name, 1, let manner) = what, chance.below(2) == 0 {
                add(&chance, at: at, .question(client: client, name: name, type: 28, manner))
            }
        }
    }

    /// The same questions before a change, where the answers are cached or under way, and behind it.
    private mutating func ask(_ chance: inout Chance, _ count: Int, around moment: UInt64, about names: [String]) {
        for _ in 0..<count {
            let (name, type) = (names[chance.below(names.count)], [1, 1, 28, 16][chance.below(4)] as UInt16)
            let (client, manner) = (chance.below(5), Manner(&chance))
            let before = UInt64([5, 40, 1200, 20_000][chance.below(4)]) * 1_000_000
            for at in [moment - min(moment, before), moment + 3_000_000_000, moment + 12_000_000_000] {
                add(&chance, at: at, .question(client: client, name: name, type: type, manner))
            }
        }
    }

    /// Types of questions, of which there are no records.
    private static let questionTypes: [UInt16] = [41, 128, 200, 248, 249, 250, 251, 252, 253, 254, 255]

    /// More than a few questions of one group, while something happens to its servers.
    private mutating func load(_ chance: inout Chance, at moment: UInt64) {
        let zones = Topology.zones.values.sorted()
        let (client, zone) = (5 + chance.below(2), zones[chance.below(zones.count)])
        let what: What =
            switch chance.below(4) {
            case 0: .youngResets(client: client, zone: zone)
            case 1: .outage(client: client, zone: zone, [.silent, .mute, .refuses][chance.below(3)])
            case 2: .crowd(client: client, zone: zone, count: 20 + chance.below(200))
            default:
                .blackHole(
                    client: client, zone: zone, perSecond: [50, 200][chance.below(2)], seconds: 2 + chance.below(8))
            }
        add(&chance, at: moment, what)
        guard case .crowd = what else { return }
        let change: What =
            switch chance.below(3) {
            case 0: .reload
            case 1: .oneSetting(of: String(Topology.zones.first { $0.value == zone }!.key))
            default: .names(Topology.namesFiles[chance.below(Topology.namesFiles.count)])
            }
        add(&chance, at: moment + UInt64(20 + chance.below(400)) * 1_000_000, change)
    }

    /// A zone of a group whose servers are silent, and others who ask for names of the same group that are new.
    private mutating func silentZone(_ chance: inout Chance, at moment: UInt64) {
        let zones = Topology.zones.values.sorted()
        let zone = zones[chance.below(zones.count)]
        let seconds = 2 + chance.below(5)
        let perSecond = [2, 5, 40, 100][chance.below(4)]
        add(
            &chance, at: moment,
            .silentZone(client: 5 + chance.below(2), zone: zone, perSecond: perSecond, seconds: seconds))
        for _ in 0..<2 + chance.below(12) {
            let name = "h\(100 + chance.below(1000)).\(zone)"
            let at = moment + UInt64(chance.below(seconds * 1000 + 3000)) * 1_000_000
            add(&chance, at: at, .question(client: chance.below(5), name: name, type: 1, Manner()))
        }
    }

    /// Questions for new names of few groups, before and after this machine has no descriptors left, and meanwhile.
    private mutating func shortage(_ chance: inout Chance, at moment: UInt64) {
        let seconds = 1 + chance.below(3)
        add(&chance, at: moment, .noDescriptors(seconds: seconds))
        let zones = (Topology.zones.values.sorted() + [Topology.publicZone]).shuffled(using: &chance).prefix(2)
        for second in [-100, -80, 0, 1, 1, 2, 2, 3, 3, 20] + (0..<chance.below(8)).map({ $0 / 2 }) {
            let name = "h\(2000 + chance.below(1000)).\(zones[chance.below(2)])"
            let at = Int(moment) + (second * 1000 + chance.below(1000)) * 1_000_000
            add(
                &chance, at: UInt64(max(0, at)),
                .question(client: chance.below(5), name: name, type: [1, 28][chance.below(2)], Manner()))
        }
    }

    // MARK: What seldom meets by chance

    /// Settings, troubles and questions that together show what each of them does not.
    private mutating func meeting(_ chance: inout Chance, _ kind: Int, at moment: UInt64) {
        let group = ["office", "shop", "lab"][chance.below(3)]
        let zone = Topology.zones[group]!
        switch kind {
        case 0: loseGroup(&chance, group, zone, at: moment)
        case 1: changeWhileConnecting(&chance, group, zone, at: moment)
        case 2: changeTranslator(&chance, zone, at: moment)
        case 3: lackDescriptors(&chance, zone, at: moment)
        case 4: repeatAbsence(&chance, zone, at: moment)
        case 5: changeNextGroup(&chance, group, zone, at: moment)
        case 6: changeSearchPage(&chance, group, zone, at: moment)
        case 7: tryInVain(&chance, group, zone, at: moment)
        case 8: outage(&chance, zone, at: moment)
        case 9: refuse(&chance, group, zone, at: moment)
        case 10: outliveServers(&chance, group, zone, at: moment)
        case 11: startWithoutResolvers(&chance, zone, at: moment)
        default: askAccountsAlone(&chance, at: moment)
        }
    }

    private mutating func ask(
        _ chance: inout Chance, _ letter: String, _ zone: String, _ types: [UInt16] = [1], at moment: UInt64,
        below count: Int = 3
    ) {
        add(
            &chance, at: moment,
            .question(
                client: chance.below(5), name: "\(letter)\(chance.below(count)).\(zone)",
                type: types[chance.below(types.count)], Manner()))
    }

    /// Names whose servers are silent wait, and then the settings have others asked, who are silent, too.
    private mutating func loseGroup(_ chance: inout Chance, _ group: String, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.patience, zone: zone))
        let change = moment + 20_000_000_000
        for _ in 0..<16 {
            let before = UInt64(100 + chance.below(3500)) * 1_000_000
            ask(&chance, "z", zone, [1, 1, 28, 16], at: change - before, below: 1000)
        }
        add(&chance, at: change, .otherKey(chance.below(3) > 0 ? group : "\(group).thenTry"))
    }

    /// Names wait for a connection to a server, or for its answer, which may not learn them any more by other settings.
    private mutating func changeWhileConnecting(
        _ chance: inout Chance, _ group: String, _ zone: String, at moment: UInt64
    ) {
        let isAccounts = chance.below(3) > 0
        add(&chance, at: moment, .settings(isAccounts ? .account : .patience, zone: zone))
        // Each time no connection is open any more.
        for second in [150, 220, 290] as [UInt64] {
            let change = moment + second * 1_000_000_000
            let trouble: Trouble? = [nil, .slow, .silent][chance.below(3)]
            if let trouble {
                for host in [group, "httpdns"] {
                    add(&chance, at: change - 1_700_000_000, .trouble(host: host, trouble, seconds: 2))
                }
            }
            for _ in 0..<6 {
                let before = UInt64(1 + chance.below(trouble == nil ? 60 : 1600)) * 1_000_000
                ask(&chance, "h", zone, [1, 1, 28], at: change - before, below: 1000)
            }
            add(&chance, at: change, .otherKey(group))
        }
    }

    /// Addresses are made under a prefix, and then it is another one. Of some names the IPv4 addresses are not known in time.
    private mutating func changeTranslator(_ chance: inout Chance, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.madeAddresses, zone: zone))
        let begin = moment + 10_000_000_000
        add(&chance, at: begin, .ipv4(gone: 80))
        for second in [5, 12, 18, 24, 28, 33, 38, 43, 48, 53, 58, 63] as [UInt64] {
            for _ in 0..<2 { ask(&chance, "v", zone, [28], at: begin + second * 1_000_000_000, below: 2) }
            ask(&chance, "v", Topology.publicZone, [28], at: begin + second * 1_000_000_000)
        }
        // So many that some of them wait for room at the servers.
        let crowd = begin + UInt64(4 + chance.below(20)) * 1_000_000_000
        for _ in 0..<6 + chance.below(12) { ask(&chance, "a", zone, [28], at: crowd, below: 1000) }
        let changes: [What] = [.otherKey("nat64.prefix"), .otherKey("nat64.prefix"), .translator]
        for (index, change) in changes.shuffled(using: &chance).enumerated() {
            add(&chance, at: begin + UInt64(30 + 10 * index) * 1_000_000_000, change)
        }
    }

    /// This machine has no descriptors for new connections to a group that is well, while one to the account is open.
    private mutating func lackDescriptors(_ chance: inout Chance, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.accountBehind, zone: zone))
        // The reload counts as a trouble until then. Each time no connection to the group is open any more.
        for second in [140, 145] as [UInt64] { ask(&chance, "h", zone, at: moment + second * 1_000_000_000) }
        for second in [185, 255, 325] as [UInt64] {
            let begin = moment + second * 1_000_000_000
            for before in [1, 1, 2, 2, 4] as [UInt64] {
                ask(&chance, "h", Topology.publicZone, at: begin - before * 1_000_000_000, below: 1000)
            }
            let seconds = 1 + chance.below(3)
            add(&chance, at: begin, .noDescriptors(seconds: seconds))
            for _ in 0..<6 {
                let after = UInt64(chance.below(seconds * 1000)) * 1_000_000
                ask(&chance, "h", zone, [1, 28], at: begin + after, below: 1000)
            }
        }
    }

    /// The same names without records, while records are kept for longer than their time.
    private mutating func repeatAbsence(_ chance: inout Chance, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.longerRecords, zone: zone))
        for number in 0..<12 {
            let at = moment + UInt64(5 + 9 * number + chance.below(9)) * 1_000_000_000
            for (letter, type) in [("x", 1), ("x", 28), ("v", 28)] as [(String, UInt16)] {
                ask(&chance, letter, zone, [type], at: at)
            }
        }
    }

    /// A group fails, the next one answers instead, and then it is another group that would.
    private mutating func changeNextGroup(_ chance: inout Chance, _ group: String, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.nextAccount, zone: zone))
        let begin = moment + 10_000_000_000
        add(&chance, at: begin, .trouble(host: group, [.refuses, .fails][chance.below(2)], seconds: 130))
        for round in 0..<12 as Range<UInt64> {
            let change = begin + (5 + 10 * round) * 1_000_000_000
            for _ in 0..<4 { ask(&chance, "h", zone, [1, 28], at: change - 4_000_000_000) }
            add(&chance, at: change, .otherKey("\(group).thenTry"))
        }
    }

    /// Addresses that are cached become those of a search page.
    private mutating func changeSearchPage(_ chance: inout Chance, _ group: String, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.alone, zone: zone))
        for round in 1...6 as ClosedRange<UInt64> {
            let begin = moment + 20 * round * 1_000_000_000
            for number in 0..<16 {
                add(&chance, at: begin, .question(client: number % 5, name: "h\(number).\(zone)", type: 1, Manner()))
            }
            add(&chance, at: begin + 4_000_000_000, .otherKey("\(group).bogusAddresses"))
        }
    }

    /// Servers that were silent are tried with a name of which nobody says anything, while one of the group was well.
    private mutating func tryInVain(_ chance: inout Chance, _ group: String, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.severalServers, zone: zone))
        let begin = moment + 10_000_000_000
        let well = 1 + chance.below(3)
        for number in 1...3 where number != well {
            add(&chance, at: begin, .trouble(host: "\(group)-\(number)", .silent, seconds: 8))
        }
        // The trouble counts for two minutes more, and a server may be left alone for one.
        for second in 0..<300 as Range<UInt64> {
            let isVain = (7..<24).contains(second)
            ask(&chance, isVain ? "z" : "h", zone, at: begin + second * 1_000_000_000, below: 100_000)
        }
    }

    /// One server of a group refuses names of which the servers say nothing.
    private mutating func refuse(_ chance: inout Chance, _ group: String, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.severalServers, zone: zone))
        for round in 1...6 as ClosedRange<UInt64> {
            let begin = moment + 40 * round * 1_000_000_000
            add(&chance, at: begin, .trouble(host: "\(group)-\(1 + chance.below(3))", .fails, seconds: 20))
            for second in 0..<20 as Range<UInt64> {
                ask(&chance, ["a", "z"][chance.below(2)], zone, at: begin + second * 1_000_000_000, below: 100_000)
            }
        }
    }

    /// Answers are over, and the servers are away.
    private mutating func outliveServers(_ chance: inout Chance, _ group: String, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.staleAnswers, zone: zone))
        let begin = moment + 10_000_000_000
        for second in [0, 60] as [UInt64] {
            for letter in ["h", "x", "v"] {
                for number in 0..<3 {
                    for type in [1, 28, 16] as [UInt16] {
                        let at = begin + (second + UInt64(chance.below(30))) * 1_000_000_000
                        add(
                            &chance, at: at,
                            .question(client: number, name: "\(letter)\(number).\(zone)", type: type, Manner()))
                    }
                }
            }
        }
        let trouble: Trouble = [.silent, .mute, .fails, .refuses][chance.below(4)]
        add(&chance, at: begin + 50_000_000_000, .trouble(host: group, trouble, seconds: 60))
    }

    /// The daemon starts before the network has named its resolvers.
    private mutating func startWithoutResolvers(_ chance: inout Chance, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.networksResolvers, zone: zone))
        for round in 1...3 as ClosedRange<UInt64> {
            let begin = moment + 60 * round * 1_000_000_000
            add(&chance, at: begin, .noResolvers(seconds: 30))
            add(&chance, at: begin + 20_000_000_000, .restart)
            for second in 21..<29 as Range<UInt64> {
                ask(&chance, "h", Topology.privateZone, [1, 28], at: begin + second * 1_000_000_000, below: 1000)
            }
        }
    }

    /// Names that do not exist, where accounts alone can say so.
    private mutating func askAccountsAlone(_ chance: inout Chance, at moment: UInt64) {
        let zone = Topology.publicZone
        add(&chance, at: moment, .settings(.accountsAlone, zone: zone))
        for second in 5..<25 as Range<UInt64> {
            ask(&chance, ["x", "x", "h", "v"][chance.below(4)], zone, [1, 28], at: moment + second * 1_000_000_000)
        }
    }

    /// All servers of a group are away, and another group is asked.
    private mutating func outage(_ chance: inout Chance, _ zone: String, at moment: UInt64) {
        add(&chance, at: moment, .settings(.nextGroup, zone: zone))
        for second in [150, 200, 250] as [UInt64] {
            let trouble: Trouble = [.silent, .mute, .refuses][chance.below(3)]
            add(&chance, at: moment + second * 1_000_000_000, .outage(client: 5 + chance.below(2), zone: zone, trouble))
        }
    }

    static func time(_ nanoseconds: UInt64) -> String {
        let milliseconds = nanoseconds / 1_000_000
        let rest = String(milliseconds % 1000 + 1000).dropFirst()
        return "\(milliseconds / 1000).\(rest)s"
    }

    static func name(ofType type: UInt16) -> String {
        [1: "A", 28: "AAAA", 16: "TXT", 65: "HTTPS"][type] ?? "TYPE\(type)"
    }

    /// The text of an item in a scenario file.
    static func text(_ item: Item) -> String {
        let text =
            switch item.what {
            case .question(let client, let name, let type, let manner):
                "client \(client) asks \(name) \(Self.name(ofType: type))\(manner.text)"
            case .pipeline(let client, let names, let type):
                "client \(client) asks \(names.joined(separator: ", ")) \(Self.name(ofType: type)) on one connection"
            case .flood(let client, let count): "client \(client) asks \(count) names at once"
            case .silentZone(let client, let zone, let perSecond, let seconds):
                "client \(client) asks \(perSecond) names of \(zone) a second for \(seconds)s whose servers are silent"
            case .blackHole(let client, let zone, let perSecond, let seconds):
                "client \(client) asks \(perSecond) names of \(zone) a second, its first server is silent from 1s on for \(seconds)s"
            case .outage(let client, let zone, let trouble):
                "client \(client) asks 20 names of \(zone) a second, each of its servers \(trouble.rawValue) from 1s on for 17s"
            case .crowd(let client, let zone, let count): "client \(client) asks \(count) names of \(zone) at once"
            case .youngResets(let client, let zone):
                "client \(client) asks 20 names of \(zone) a second, its servers reset their connections after 1s and 1.4s"
            case .trouble(let host, let trouble, let seconds): "\(host) \(trouble.rawValue) for \(seconds)s"
            case .goAway(let host): "\(host) leaves the next request to another connection"
            case .stutter(let host): "\(host) says its next answer twice"
            case .reset(let host): "\(host) resets its connections"
            case .forget(let host): "\(host) forgets its connections"
            case .clock(let seconds): "the clock is set \(abs(seconds))s \(seconds < 0 ? "back" : "forward")"
            case .sleep(let seconds): "the machine sleeps \(seconds)s"
            case .network(let seconds): seconds == 0 ? "network changes" : "network is gone for \(seconds)s"
            case .ipv6(let seconds): "IPv6 has no route for \(seconds)s"
            case .ipv4(let seconds): "IPv4 has no route for \(seconds)s"
            case .fullDisk(let seconds): "the disk is full for \(seconds)s"
            case .noDescriptors(let seconds): "there are no descriptors for \(seconds)s"
            case .names(let zones): "the file of names has \(zones.joined(separator: ", "))"
            case .resolvers(let names): "resolv.conf lists \(names.joined(separator: ", "))"
            case .noResolvers(let seconds): "resolv.conf lists nobody for \(seconds)s"
            case .hosted(let names): "the hosts file has \(names.isEmpty ? "nothing" : names.joined(separator: ", "))"
            case .blocked(let names): "the list has \(names.joined(separator: ", "))"
            case .moves(let host, let seconds): "\(host) has another address, the old one is silent for \(seconds)s"
            case .control(let request, let name): "the operator asks \(request.replacing("NAME", with: name))"
            case .counters: "the operator wants the counts in the log"
            case .wrongReload: "settings that are refused (\(item.seed % 10_000))"
            case .oneSetting(let section): "one other setting, of \(section) (\(item.seed % 10_000))"
            case .reload: "other settings (\(item.seed % 10_000))"
            case .settings(let need, let zone):
                "other settings, for \(zone) \(need.rawValue) (\(item.seed % 10_000))"
            case .otherKey(let key): "another \(key) in the settings (\(item.seed % 10_000))"
            case .translator: "another network, whose translator has another prefix"
            case .crash(let part): "the daemon is killed, \(part)% of its file are left"
            case .restart: "the daemon is stopped, and started"
            case .otherStart: "the daemon is stopped, and started with other settings (\(item.seed % 10_000))"
            }
        return "\(time(item.at)) \(text)"
    }
}
