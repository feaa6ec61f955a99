import Base
import Configuration
import DNSCache
import DNSWire
import Forwarding

/// What settings decide about answers, as numbers that are the same over restarts: under settings that give an answer another
/// number it would be asked for elsewhere, or believed otherwise.
///
/// It does not depend on what may be another at each start: the servers that were found, and the network.
struct AnswerContext: Sendable {
    private var policy: Policy
    /// By `GroupID.rawValue`.
    private let groups: [GroupDigest?]

    /// The prefix under which answers for AAAA are made; nil, as at a start: none are. Those of another one are not right.
    private let synthesis: NAT64Prefix?

    /// - Parameter hosts: the names that the daemon answers itself, beside those that it always does.
    init(
        _ settings: Settings, _ numbers: GroupNumbers, _ names: NameLists, hosts: HostsTable = HostsTable(),
        synthesis: NAT64Prefix? = nil
    ) {
        self.synthesis = synthesis
        let described = UpstreamGroups(settings, numbers, services: [:]) { _ in [] }
        policy = Policy(settings, numbers, described, names, hosts: hosts)
        policy.setFamilies(
            settings.accounts.reduce(into: [:]) { families, account in
                let type = account.addressType
                families[numbers[account.name]] = type == .auto ? .both : Families(type)
            })
        var groups: [GroupDigest?] = []
        let accounts = Set(settings.accounts.map(\.name))
        for (name, identity) in GroupIdentity.all(settings) {
            let index = numbers[name].rawValue
            while groups.count <= index { groups.append(nil) }
            groups[index] = GroupDigest(name, identity.trustFingerprint, isAccount: accounts.contains(name))
        }
        self.groups = groups
    }

    /// Gives up the memory of the hosts file's names, which matter only for answers of another time.
    mutating func forgetHosts() { policy.hosts = HostsTable() }

    /// The number of an answer that was got for an audience; 0: nobody would be asked.
    func number(_ name: Name, _ type: RecordType, _ audience: Audience) -> UInt64 {
        let standing = policy.standing(name, type, audience)
        var (steps, binding): ([Step], UInt64) = ([], 0)
        switch standing.route {
        case .answer: return 0
        case .ask(let asked): steps = asked
        case .serviceBinding(let all, let asked): (steps, binding) = (all, asked == nil ? 2 : 4)
        }
        var hash = FNV()
        hash.add((standing.refusesPrivate ? 1 : 0) + binding)
        for (index, step) in steps.enumerated() {
            if index > 0 { hash.add(UInt64(step.after.rawValue)) }
            guard let group = groups[step.group.rawValue] else { return 0 }
            // What an account has said does not depend on how others are asked.
            hash.add(audience.isOfAccounts && !group.isAccount ? group.name : group.words)
        }
        if let synthesis, type == .aaaa { hash.add("\(synthesis)") }
        return max(hash.value, 1)
    }

    /// Whether an answer may be given by these settings, by its number when it was stored.
    func isRight(_ name: Name, _ type: RecordType, _ audience: Audience, _ number: UInt64) -> Bool {
        number != 0 && number == self.number(name, type, audience)
    }

    private struct GroupDigest {
        let name, words: UInt64
        let isAccount: Bool

        init(_ name: String, _ words: String, isAccount: Bool) {
            self.isAccount = isAccount
            var hash = FNV()
            hash.add("\(name) \(isAccount)")
            self.name = hash.value
            hash.add(" \(words)")
            self.words = hash.value
        }
    }
}
