import Base
import Names

@testable import DNSWire
@testable import Forwarding

extension Target {
    static let resolvconf = Target(name: "resolvconf") { text in
        let servers = ResolverList.parse(text.span)
        check(servers.count <= ResolverList.maximumServers, "\(servers.count) servers")
        check(Set(servers).count == servers.count, "a server twice")
        check(servers.allSatisfy { $0.port == 53 }, "another port")
        let again = Array(servers.map { "nameserver \($0.address)\($0.zone.map { "%\($0)" } ?? "")\n" }.joined().utf8)
        check(ResolverList.parse(again.span) == servers, "written down they are others")
        let listening = [Endpoint(.v4(127, 0, 0, 1), port: 53), Endpoint(IPAddress(v6: 0, 0), port: 53)]
        let own = [Endpoint(.v4(192, 0, 2, 1), port: 0), Endpoint(IPAddress("2001:db8::1")!, port: 0)]
        let (usable, loops) = ResolverList.withoutLoops(servers, listening: listening, own: own)
        check(usable.count + loops.count == servers.count, "a server is lost")
        check(Set(usable).isDisjoint(with: listening), "the daemon would ask itself")
    }

    /// What is answered from it, or that it says the same once it is written down.
    static let hosts = Target(name: "hosts") { text in
        let table = HostsTable(parsing: text.span)
        let names = table.allNames
        check(names.count <= 2 * HostsTable.maximumNames, "\(names.count) names")
        if choice(text, of: 2) == 0 {
            for name in names { checkHosted(name, table) }
        } else {
            checkWritten(names, table)
        }
    }

    /// A list of a group that answers by itself: each pattern is on a line of the file, and written as a rule it is the same.
    static let blocklist = Target(name: "blocklist") { text in
        let lines = text.count { $0 == UInt8(ascii: "\n") } + 1
        let list: BlockList
        do throws(DomainListError) {
            list = try BlockList(parsing: text.span)
        } catch {
            return check(1...lines ~= error.line, "line \(error.line) of \(lines)")
        }
        for leftOut in [list.rules, list.others] {
            check(leftOut.count <= list.lines && leftOut.firstLine <= lines, "\(leftOut.count) of \(lines) lines")
        }
        for part in [list.taken, list.released] {
            check(part.patterns.count == part.count, "\(part.count) patterns are \(part.patterns.count)")
            var (offset, last) = (0, 1)
            while let entry = part.entry(after: &offset) {
                let line = part.line(at: entry.offset)
                check(last...lines ~= line, "line \(line) behind \(last) of \(lines)")
                last = line
            }
        }
        let rules =
            list.taken.patterns.map { rule($0) } + list.released.patterns.map { "@@" + rule($0) }
        let again = try? BlockList(parsing: Array(rules.joined(separator: "\n").utf8).span)
        check(again?.taken.patterns == list.taken.patterns, "written down it takes others: \(rules)")
        check(again?.released.patterns == list.released.patterns, "written down it leaves others: \(rules)")
        let group = GroupID(2)
        guard let table = try? DomainRules([(list.taken, .listed(group)), (list.released, .released(group))]) else {
            fatalError("one list in conflict")
        }
        if list.released.count > 0 { return }
        for pattern in list.taken.patterns { checkFound(pattern, table) }
    }

    private static func rule(_ pattern: DomainPattern) -> String {
        switch pattern {
        case .subtree(let name): "||\(name)^"
        case .below(let name): "||*.\(name)^|"
        case .only(let name): "|\(name)^"
        case .singleLabels, .network: fatalError("a pattern that no list takes: \(pattern)")
        }
    }

    /// A file of patterns, and the table that is made of it.
    static let domains = Target(name: "domains") { text in
        let list: DomainList
        do throws(DomainListError) {
            list = try DomainList(parsing: text.span)
        } catch {
            let lines = text.count { $0 == UInt8(ascii: "\n") } + 1
            return check(1...lines ~= error.line, "line \(error.line) of \(lines)")
        }
        let patterns = list.patterns
        check(patterns.count == list.count, "\(list.count) patterns are \(patterns.count)")
        // All 32 labels of an address in ip6.arpa are more than its text.
        let networks = patterns.count { if case .network = $0 { true } else { false } }
        // So are the label that a letter beyond ASCII needs, and the mark of a further name on a line.
        let factor = text.contains { $0 >= 0x80 } ? 8 : text.contains(UInt8(ascii: "=")) ? 3 : 2
        check(
            list.octets.count <= factor * text.count + 2 + 75 * networks,
            "\(list.octets.count) octets of \(text.count)")
        let lines = patterns.map { $0 == .singleLabels ? "\"\"\n" : "\($0)\n" }.joined()
        let again = try? DomainList(parsing: Array(lines.utf8).span)
        check(again?.patterns == patterns, "written down they are others: \(lines)")
        guard let rules = try? DomainRules([(list, .group(GroupID(2)))]) else { fatalError("one list in conflict") }
        for pattern in patterns { checkFound(pattern, rules) }
    }
}

private func checkHosted(_ name: Name, _ table: HostsTable) {
    for type in [RecordType.a, .aaaa, .ptr, .https, .mx] {
        guard let answer = table.answer(NameKey(name), type) else { continue }
        let records = answer.records()
        check(records.count == answer.head.recordCount, "an answer that cannot be read")
        check(records.count <= HostsTable.maximumAddresses, "\(records.count) records")
        let message = [UInt8](repeating: 0, count: Header.length) + answer.body
        check((try? StoredAnswer.check(message.span, answer.head)) != nil, "no answer at all")
    }
}

private func checkWritten(_ names: [Name], _ table: HostsTable) {
    var lines = ""
    for name in names {
        for type in [RecordType.a, .aaaa] {
            for record in table.answer(NameKey(name), type)?.records() ?? [] {
                if record.type == type { lines += "\(record.data) \(record.name)\n" }
            }
        }
    }
    // What an escape puts into a name is a comment when it is written down.
    guard !lines.utf8.contains(UInt8(ascii: "#")) else { return }
    let again = HostsTable(parsing: Array(lines.utf8).span)
    for name in names {
        for type in [RecordType.a, .aaaa] {
            let (before, after) = (
                table.answer(NameKey(name), type), again.answer(NameKey(name), type)
            )
            check(before == after, "written down it says something else of \(name)")
        }
    }
}

/// The name that a pattern is made of goes to the group, unless it has a meaning of its own by a longer pattern.
private func checkFound(_ pattern: DomainPattern, _ rules: DomainRules) {
    let name: Name
    switch pattern {
    case .subtree(let top), .only(let top): name = top
    case .below(let top):
        guard let below = Name("a.\(top)") else { return }
        name = below
    case .singleLabels: name = Name("a")!
    case .network(let network): name = .reverse(of: network.address)
    }
    let found = rules.find(name)
    guard let reserved = found.reserved else {
        return check(found.group != nil, "\(name) is not found by \(pattern)")
    }
    check(!reserved.isPrivate || rules.pattern(found) != pattern, "\(name) is kept from \(pattern)")
}
