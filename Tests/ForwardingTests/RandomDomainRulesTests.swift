import Base
import DNSWire
import Names
import TestSupport
import Testing

@testable import Forwarding

/// The table compared with a search through all patterns, each of which is compared with the name by itself.
@Suite struct RandomDomainRulesTests {
    @Test func theRulesSayWhatAWalkOverAllPatternsSays() {
        var chance = Chance.announced("theRulesSayWhatAWalkOverAllPatternsSays")
        var (conflicts, taken, reserved) = (0, 0, 0)
        for _ in 0..<300 {
            var rules: [NaiveRule] = []
            var lists: [(DomainList, DomainRules.Owner)] = []
            // Lists come after the other rules, as in the daemon.
            let owners = (0..<1 + chance.below(7)).map { _ in owner(&chance) }
            let isListed = { (owner: DomainRules.Owner) in if case .listed = owner { true } else { false } }
            for owner in owners.filter({ !isListed($0) }) + owners.filter(isListed) {
                // Some patterns are of an earlier list, too.
                let patterns = (0..<chance.below(5)).map { _ in
                    rules.isEmpty || chance.below(8) > 0 ? pattern(&chance) : rules[chance.below(rules.count)].pattern
                }
                rules += patterns.map { NaiveRule($0, owner) }
                lists.append((DomainList(patterns), owner))
            }
            let isInConflict = rules.contains { rule in rules.contains { rule.isInConflict(with: $0) } }
            guard let built = try? DomainRules(lists) else {
                conflicts += 1
                #expect(isInConflict, "\(rules)")
                continue
            }
            #expect(!isInConflict, "\(rules)")
            for _ in 0..<20 {
                let name = name(&chance)
                let found = built.find(name)
                let expected = Naive.taker(of: name, rules)
                let got = found.reserved.map { "\($0)" } ?? found.group.map { "\($0.rawValue)" } ?? "nobody"
                #expect(got == expected, "\(name): \(rules)")
                taken += found.group == nil ? 0 : 1
                reserved += found.reserved == nil ? 0 : 1
            }
        }
        // Each kind of outcome has occurred.
        #expect(conflicts > 0 && taken > 100 && reserved > 100, "\(conflicts) \(taken) \(reserved)")
    }

    private func owner(_ chance: inout Chance) -> DomainRules.Owner {
        let group = GroupID(chance.below(5))
        guard group.rawValue > 1 else { return .group(group) }
        let owners: [DomainRules.Owner] = [
            .except(group), .group(group), .group(group), .listed(group), .released(group), .spared(group),
        ]
        return owners[chance.below(owners.count)]
    }

    private func name(_ chance: inout Chance) -> Name {
        switch chance.below(4) {
        case 0:
            let octets = [10, 172, 0, 1, 16, 20, 31, 32, 127, 128, 192, 255]
            let labels = (0..<chance.below(6)).map { _ in "\(octets[chance.below(octets.count)])" }
            return Name((labels + ["in-addr", "arpa"]).joined(separator: "."))!
        case 1:
            let labels = (0..<chance.below(7)).map { _ in ["0", "1", "8", "d", "e", "f", "11"][chance.below(7)] }
            return Name((labels + ["ip6", "arpa"]).joined(separator: "."))!
        default:
            let labels = ["a", "b", "ab", "\\000", "com", "local", "localhost", "test", "home", "arpa", "10"]
            let count = chance.below(5)
            return count == 0
                ? .root : Name((0..<count).map { _ in labels[chance.below(labels.count)] }.joined(separator: "."))!
        }
    }

    private func pattern(_ chance: inout Chance) -> DomainPattern {
        switch chance.below(9) {
        case 0: return .singleLabels
        case 8: return .only(name(&chance))
        case 1: return .below(name(&chance))
        case 2, 3:
            let bases = ["10.20.0.0", "172.16.0.0", "10.127.128.0", "0.0.0.0", "fd10::", "fe80::", "1111::", "::"]
            let address = IPAddress(bases[chance.below(bases.count)])!
            let length = chance.below(address.isIPv4 ? 26 : 30)
            var octets = address.octets
            for bit in length..<8 * octets.count { octets[bit / 8] &= ~(0x80 >> UInt8(bit % 8)) }
            return .network(Network(IPAddress(bytes: octets.span)!, prefixLength: length)!)
        default: return .subtree(name(&chance))
        }
    }
}

private struct NaiveRule: CustomStringConvertible {
    let pattern: DomainPattern
    let owner: DomainRules.Owner
    var description: String { "\(owner) \(pattern)" }

    init(_ pattern: DomainPattern, _ owner: DomainRules.Owner) { (self.pattern, self.owner) = (pattern, owner) }

    var group: GroupID? {
        switch owner {
        case .group(let group), .listed(let group): group
        case .except, .released, .spared: nil
        }
    }
    var isListed: Bool { if case .listed = owner { true } else { false } }
    var released: GroupID? { if case .released(let group) = owner { group } else { nil } }
    var spared: GroupID? { if case .spared(let group) = owner { group } else { nil } }
    var excepted: GroupID? { if case .except(let group) = owner { group } else { nil } }
    var rank: Double { Naive.length(pattern) }

    func isInConflict(with other: NaiveRule) -> Bool {
        guard Naive.alike(pattern) == Naive.alike(other.pattern), !isListed, !other.isListed else { return false }
        if let excepted { return other.group == excepted }
        guard let group, let another = other.group else { return false }
        return group != another && group.rawValue > 1 && another.rawValue > 1
    }
}

private enum Naive {
    static func taker(of name: Name, _ rules: [NaiveRule]) -> String {
        let reservedHere = reserved.filter { holds($0.pattern, name) }.max { length($0.pattern) < length($1.pattern) }
        if let reservedHere, !["privateName", "singleLabel"].contains(reservedHere.reason) {
            return reservedHere.reason
        }
        let holding = rules.filter { holds($0.pattern, name) }
        let candidates = holding.filter { rule in
            guard let group = rule.group, !holding.contains(where: { $0.released == group }),
                !holding.contains(where: { $0.excepted == group && (rule.isListed || $0.rank > rule.rank) }),
                !rule.isListed || !holding.contains(where: { $0.spared == group })
            else { return false }
            guard let reservedHere else { return true }
            return rule.rank >= length(reservedHere.pattern)
        }
        func order(_ rule: NaiveRule) -> (Double, Int, Int) {
            (rule.rank, min(rule.group!.rawValue, 2), rule.isListed ? 0 : 1)
        }
        // Of several patterns the first counts.
        if let best = candidates.max(by: { order($0) < order($1) }) { return "\(best.group!.rawValue)" }
        return reservedHere?.reason ?? "nobody"
    }

    /// The length by the labels that it fixes; the bits of networks count as parts of a label.
    static func length(_ pattern: DomainPattern) -> Double {
        switch pattern {
        case .subtree(let name), .only(let name): Double(name.labelCount)
        case .below(let name): Double(name.labelCount) + 0.02
        case .singleLabels: 0.01
        case .network(let network): 2 + Double(network.prefixLength) / (network.address.isIPv4 ? 8 : 4)
        }
    }

    static func holds(_ pattern: DomainPattern, _ name: Name) -> Bool {
        switch pattern {
        case .subtree(let top): name.isWithin(top)
        case .only(let only): name == only
        case .below(let top): name.isWithin(top) && name != top
        case .singleLabels: name.labelCount == 1
        case .network(let network): bits(name).map { $0.starts(with: bits(network)) } ?? false
        }
    }

    /// The bits that a reverse name fixes; nil for other names.
    private static func bits(_ name: Name) -> [Character]? {
        var labels = name.description.split(separator: ".").reversed().map(String.init)[...]
        guard labels.popFirst() == "arpa", let tree = labels.popFirst(), tree == "in-addr" || tree == "ip6" else {
            return nil
        }
        var bits: [Character] = tree == "ip6" ? ["6"] : ["4"]
        let (radix, width) = tree == "ip6" ? (16, 4) : (10, 8)
        for label in labels {
            guard let value = Int(label, radix: radix), value < 1 << width, String(value, radix: radix) == label else {
                break
            }
            let digits = String(value, radix: 2)
            bits += String(repeating: "0", count: width - digits.count) + digits
        }
        return bits
    }

    private static func bits(_ network: Network) -> [Character] {
        let all = network.address.octets.map { octet in
            let digits = String(octet, radix: 2)
            return String(repeating: "0", count: 8 - digits.count) + digits
        }
        return (network.address.isIPv4 ? ["4"] : ["6"]) + Array(all.joined().prefix(network.prefixLength))
    }

    /// A network that ends between two labels' bits is a name.
    static func canonical(_ pattern: DomainPattern) -> DomainPattern {
        guard case .network(let network) = pattern else { return pattern }
        let perLabel = network.address.isIPv4 ? 8 : 4
        guard network.prefixLength % perLabel == 0 else { return pattern }
        let labels = Name.reverse(of: network.address).description.split(separator: ".")
        return .subtree(Name(labels.suffix(network.prefixLength / perLabel + 2).joined(separator: "."))!)
    }

    /// "only x" is the same pattern as "x" where it takes the name.
    static func alike(_ pattern: DomainPattern) -> DomainPattern {
        if case .only(let name) = pattern { .subtree(name) } else { canonical(pattern) }
    }

    /// The names that RFCs reserve, written down a second time.
    private static let reserved: [(reason: String, pattern: DomainPattern)] =
        [
            ("localhost", "localhost"), ("nonexistent", "invalid onion alt use-application-dns.net"),
            ("noData", "resolver.arpa"),
            (
                "privateName",
                """
                local lan internal test home.arpa ipv4only.arpa 0.0.0.0/8 10.0.0.0/8 127.0.0.0/8 169.254.0.0/16 192.168.0.0/16 192.0.2.0/24 \
                198.51.100.0/24 203.0.113.0/24 255.255.255.255/32 172.16.0.0/12 100.64.0.0/10 ::/128 ::1/128 fc00::/7 fe80::/10 \
                2001:db8::/32
                """
            ),
        ].flatMap { reason, all in all.split(separator: " ").map { (reason, DomainPattern($0)!) } }
        + [("singleLabel", .singleLabels)]
}
