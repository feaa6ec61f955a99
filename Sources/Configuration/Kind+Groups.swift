import Base
import DNSWire
import Names

extension Kind where Value == UpstreamServer {
    static var upstreamServer: Kind {
        .string(
            "ADDRESS, ADDRESS:PORT, \"tls://HOST\", \"https://HOST/PATH\" or another form of a server",
            read: ServerText.read, show: ServerText.text)
    }
}

extension Kind where Value == [UpstreamServer] {
    /// A group's servers, in order of preference.
    static var servers: Kind {
        let list = Kind.list(of: .upstreamServer, atMost: Settings.Group.maximumServers)
        return Kind(
            expected: list.expected,
            read: { given throws(Problem) in
                let servers = try list.read(given)
                if case .environment(let text) = given { try refuseSplitAddresses(environmentItems(text), servers) }
                return servers
            },
            show: list.show)
    }
}

/// Refuses a comma instead of the `+` between the addresses of an encrypted server. The environment splits lists at
/// commas, so the second address would become a plain server, asked without encryption.
private func refuseSplitAddresses(_ items: [Given], _ servers: [UpstreamServer]) throws(Problem) {
    for (index, item) in items.enumerated().dropFirst() {
        guard case .server(let server) = servers[index], server.kind == .plain,
            case .server(let before) = servers[index - 1], before.isEncrypted, !before.addresses.isEmpty,
            let text = items[index - 1].text, text.contains("#")
        else { continue }
        throw Problem(
            "\(item.shown) behind \(items[index - 1].shown) would be asked in the clear; give \"+\" between the addresses "
                + "of a server, or plain servers first")
    }
}

extension Kind where Value == GroupAnswer? {
    /// A group's own answer; never nil when given.
    static var groupAnswer: Kind {
        let words = GroupAnswer.withoutAddresses
        let expected =
            words.map { quoted($0.description) }.joined(separator: ", ") + ", an address or a list of addresses"
        let address = Kind<IPAddress>.text(expected, parse: { IPAddress($0) }, show: \.description)
        let list = Kind<[IPAddress]>.list(of: address, atLeastOne: true, atMost: GroupAnswer.maximumAddresses)
        return Kind(
            expected: expected,
            read: { given throws(Problem) in
                if let answer = words.first(where: { $0.description == given.text }) { return answer }
                if case .text(let text) = given {
                    guard let address = IPAddress(text) else {
                        let meant = Nearest.value(text, of: words.map(\.description)).map { quoted($0) }
                        throw Problem(given.shown, expected: expected, meant: meant)
                    }
                    return .addresses([address])
                }
                return .addresses(try list.read(given))
            },
            show: { answer in
                guard let answer else { return quoted("") }
                return answer.addresses.count > 1 ? list.show(answer.addresses) : quoted(answer.description)
            })
    }
}

extension Kind where Value == DomainPattern {
    /// A pattern of a group's names.
    static var pattern: Kind {
        let expected =
            "a pattern: \"example.com\", \"*.example.com\", \".\", a network such as \"10.0.0.0/8\", or \"\" for single labels"
        return Kind(
            expected: expected,
            read: { given throws(Problem) in
                switch given {
                // An empty list in the environment has no items, so the empty pattern is written `-` there.
                case .environment("-"): return .singleLabels
                case .environment(""): throw Problem(given.shown, expected: "\"-\" for single labels")
                default: break
                }
                guard let pattern = given.text.flatMap({ DomainPattern($0) }) else {
                    throw Problem(given.shown, expected: expected, meant: given.text.flatMap(meant).map { quoted($0) })
                }
                return pattern
            },
            show: { quoted($0.description) })
    }

    /// The pattern meant by another program's form.
    private static func meant(_ text: String) -> String? {
        if text == "*" { return DomainPattern.subtree(.root).description }
        return Network(around: text)?.description ?? Kind<Name>.nameBehindMark(text)
    }
}

extension Kind where Value == String {
    /// A group's name in `thenTry`. The group's existence is checked after everything is read.
    static var groupName: Kind {
        .text(
            "the name of a group, such as \"\(Settings.Group.fallbackName)\"",
            parse: { Settings.Group.isName($0) ? $0 : nil }, show: { $0 })
    }

    /// A network device, which may not exist yet.
    static var optionalDevice: Kind {
        .text(
            "the name of a network device, at most \(Zone.maximumLength) bytes, or \"\" for none",
            parse: { text in
                text.utf8.count <= Zone.maximumLength && ![".", ".."].contains(text)
                    && text.utf8.allSatisfy { (0x21..<0x7F).contains($0) && $0 != UInt8(ascii: "/") } ? text : nil
            }, show: { $0 })
    }
}

extension Settings.Group {
    /// Whether a text is valid as a group's name.
    static func isName(_ text: String) -> Bool {
        (1...maximumNameLength).contains(text.utf8.count)
            && text.utf8.allSatisfy { isDigit($0) || isLowerLetter(lowercased($0)) }
    }
}

extension Kind where Value == Set<Settings.Group.Reason> {
    /// The failures after which the next group is asked.
    static var reasons: Kind {
        let list = Kind<[Settings.Group.Reason]>.list(of: .choice, atLeastOne: true)
        return Kind(
            expected: list.expected,
            read: { given throws(Problem) in Set(try list.read(given)) },
            show: { set in list.show(Settings.Group.Reason.allCases.filter(set.contains)) })
    }
}
