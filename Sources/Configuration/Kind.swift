import Base
import DNSWire

/// Reads, checks and shows one kind of value; the table of keys names a kind for each key.
struct Kind<Value: Sendable>: Sendable {
    /// A description of valid values, to follow "give".
    let expected: String
    let read: @Sendable (Given) throws(Problem) -> Value
    /// The value as TOML.
    let show: @Sendable (Value) -> String
}

extension Kind {
    /// A value written as a string.
    ///
    /// - Parameters:
    ///   - parse: Returns nil for an invalid text.
    ///   - meant: Returns a text to suggest instead, or nil for no suggestion.
    static func text(
        _ expected: String, parse: @escaping @Sendable (String) -> Value?,
        show: @escaping @Sendable (Value) -> String, meant: @escaping @Sendable (String) -> String? = { _ in nil }
    ) -> Kind {
        .string(
            expected,
            read: { text throws(Problem) in
                guard let value = parse(text) else {
                    throw Problem(Given.text(text).shown, expected: expected, meant: meant(text).map { quoted($0) })
                }
                return value
            },
            show: show)
    }

    /// A value written as a string. The error that `read` throws is the message.
    static func string(
        _ expected: String, read: @escaping @Sendable (String) throws(Problem) -> Value,
        show: @escaping @Sendable (Value) -> String
    ) -> Kind {
        Kind(
            expected: expected,
            read: { given throws(Problem) in
                guard let text = given.text else { throw Problem(given.shown, expected: expected) }
                return try read(text)
            },
            show: { quoted(show($0)) })
    }

    /// A value written as a string. An empty string means nil.
    static func optional<Wrapped>(
        _ expected: String, parse: @escaping @Sendable (String) -> Wrapped?,
        show: @escaping @Sendable (Wrapped) -> String
    ) -> Kind where Value == Wrapped? {
        .text(
            expected, parse: { $0.isEmpty ? .some(nil) : parse($0).map(Optional.some) }, show: { $0.map(show) ?? "" })
    }

    /// A list without repetitions. In the environment, commas separate the list's items.
    static func list<Element: Hashable>(
        of element: Kind<Element>, atLeastOne: Bool = false, atMost limit: Int = .max
    ) -> Kind where Value == [Element] {
        let expected = "a list\(atLeastOne ? " that is not empty" : ""), each item \(element.expected)"
        return Kind(
            expected: expected,
            read: { given throws(Problem) in
                let items: [Given]
                switch given {
                case .list(let list): items = list
                case .environment(let text): items = environmentItems(text)
                case .text, .integer, .boolean, .other: throw Problem(given.shown, expected: expected)
                }
                if atLeastOne && items.isEmpty { throw Problem(Given.list([]).shown, expected: expected) }
                guard items.count <= limit else { throw Problem("\(items.count) items; give at most \(limit)") }
                var values: [Element] = []
                var seen: Set<Element> = []
                for (index, item) in items.enumerated() {
                    do throws(Problem) {
                        let value = try element.read(item)
                        guard seen.insert(value).inserted else {
                            throw Problem("\(item.shown) is listed twice; give it once")
                        }
                        values.append(value)
                    } catch {
                        var problem = error
                        problem.item = index + 1
                        throw problem
                    }
                }
                return values
            },
            show: { "[" + $0.map(element.show).joined(separator: ", ") + "]" })
    }
}

/// The items between the commas; an empty text has no items.
func environmentItems(_ text: String) -> [Given] {
    func trimmed(_ text: Substring) -> String {
        let front = text.drop { $0 == " " }
        return String(front.prefix(front.count - front.reversed().prefix { $0 == " " }.count))
    }
    guard !trimmed(text[...]).isEmpty else { return [] }
    return text.split(separator: ",", omittingEmptySubsequences: false).map { .environment(trimmed($0)) }
}

extension Kind where Value: FixedWidthInteger {
    static func number(_ range: ClosedRange<Value>, of unit: String? = nil) -> Kind {
        let expected = "a whole number\(unit.map { " of " + $0 } ?? "") from \(range.lowerBound) to \(range.upperBound)"
        return Kind(
            expected: expected,
            read: { given throws(Problem) in
                let value: Value? =
                    switch given {
                    case .integer(let value): Value(exactly: value)
                    case .environment(let text): Value(text)
                    case .text, .boolean, .list, .other: nil
                    }
                guard let value, range.contains(value) else {
                    let meant = given.text.flatMap { Value($0) }.flatMap { range.contains($0) ? String($0) : nil }
                    throw Problem(given.shown, expected: expected, meant: meant)
                }
                return value
            },
            show: { String($0) })
    }
}

extension Kind where Value == Bool {
    static var boolean: Kind {
        let expected = "true or false"
        return Kind(
            expected: expected,
            read: { given throws(Problem) in
                switch given {
                case .boolean(let value): return value
                case .environment("true"), .environment("1"): return true
                case .environment("false"), .environment("0"): return false
                case .text, .integer, .list, .other, .environment:
                    let meant = given.text.flatMap { Nearest.value($0, of: ["true", "false"]) }
                    throw Problem(given.shown, expected: expected, meant: meant)
                }
            },
            show: { String($0) })
    }
}

extension Kind where Value: CaseIterable & RawRepresentable<String> {
    static var choice: Kind {
        .text(
            "one of " + Value.allCases.map { quoted($0.rawValue) }.joined(separator: ", "),
            parse: Value.init(rawValue:), show: \.rawValue,
            meant: { Nearest.value($0, of: Value.allCases.map(\.rawValue)) })
    }
}

extension Kind {
    /// This kind for a key near secrets: an operator may have written a secret as its value by mistake. So a message
    /// repeats the value only if it can suggest the right value.
    var besideSecrets: Kind {
        Kind(
            expected: expected,
            read: { given throws(Problem) in
                do throws(Problem) {
                    return try read(given)
                } catch {
                    guard given.text != nil, !error.isSuggestive else { throw error }
                    throw Problem("what it says", expected: expected)
                }
            },
            show: show)
    }
}

extension Kind where Value == Endpoint {
    /// The address of a listener, `ADDRESS:PORT`. A link-local address has its zone. Port 0 is valid, too.
    static var listener: Kind {
        let expected = "ADDRESS:PORT, such as \"127.0.0.1:53\" or \"[::1]:53\""
        return .string(
            expected,
            read: { text throws(Problem) in
                guard let endpoint = Endpoint(text, allowsZone: true)?.unmapped else {
                    throw Problem(Given.text(text).shown, expected: expected)
                }
                guard !endpoint.address.isIPv6LinkLocal || endpoint.zone != nil else {
                    throw Problem(
                        Given.text(text).shown,
                        expected: "the link of this address, such as \"[\(endpoint.address)%eth0]:\(endpoint.port)\"")
                }
                return endpoint
            },
            show: \.description)
    }

    /// A server, `ADDRESS` or `ADDRESS:PORT`. A text with port 0 is invalid. A text without a port gives port 0.
    static func server(example: String) -> Kind {
        .text(
            "ADDRESS or ADDRESS:PORT, such as \(quoted(example))",
            parse: { text in
                if let endpoint = Endpoint(text), endpoint.port == 0 { return nil }
                return Endpoint(text, defaultPort: 0)
            },
            show: { $0.port == 0 ? $0.address.description : $0.description })
    }
}

extension Kind where Value == Endpoint? {
    /// The address of a listener without a zone, so none that is link-local.
    static var optionalListener: Kind {
        .optional(
            "ADDRESS:PORT, such as \"127.0.0.1:9153\" or \"[::1]:9153\", or \"\" for none",
            parse: { Endpoint($0).flatMap { $0.address.isIPv6LinkLocal ? nil : $0.unmapped } }, show: \.description)
    }
}

extension Kind where Value == Network {
    static var network: Kind {
        .text(
            "an address or a range whose bits behind the prefix are 0, such as \"192.168.0.0/16\"",
            parse: { Network($0) }, show: \.description, meant: { Network(around: $0)?.description })
    }
}

extension Kind where Value == IPAddress? {
    static var optionalAddress: Kind {
        .optional("an IPv4 or IPv6 address, or \"\" for none", parse: { IPAddress($0) }, show: \.description)
    }
}

extension Kind where Value == [UInt8] {
    /// The SHA-256 digest of a public key.
    static var pin: Kind {
        let prefix = "sha256/"
        return .text(
            "\"\(prefix)BASE64\", where BASE64 is the SHA-256 digest of a public key, 32 bytes in 44 characters",
            parse: { text in
                guard text.hasPrefix(prefix) else { return nil }
                let digest = Base64.standard.decode(text.utf8.dropFirst(prefix.utf8.count))
                return digest?.count == 32 ? digest : nil
            },
            show: { prefix + Base64.standard.encode($0) })
    }
}

extension Kind where Value == Settings.Account.ReportURL? {
    static var optionalURL: Kind {
        let expected =
            "a URL such as \"https://reports.example.com/httpdns\" without user and fragment, or \"\" for none"
        return .string(
            expected,
            read: { text throws(Problem) in
                if text.isEmpty { return nil }
                if let url = Settings.Account.ReportURL(text) { return url }
                // The text before an "@" may be a password. An "@" with a combining character counts, too.
                let isSecret = text.utf8.contains(UInt8(ascii: "@"))
                throw Problem(isSecret ? "what it says" : Given.text(text).shown, expected: expected)
            },
            show: { $0?.description ?? "" })
    }
}

extension Kind where Value == String {
    /// A short text that the daemon does not interpret.
    static var label: Kind {
        .text(
            "at most 128 printable ASCII characters",
            parse: { text in
                text.utf8.count <= 128 && text.utf8.allSatisfy { (0x20..<0x7F).contains($0) } ? text : nil
            },
            show: { $0 })
    }

    static var path: Kind { .text("the path of a file", parse: { $0.isEmpty ? nil : $0 }, show: { $0 }) }

    static var optionalPath: Kind {
        .text("the path of a file, or \"\" for none", parse: { $0 }, show: { $0 })
    }

    static var optionalSocketPath: Kind {
        let most = Settings.Control.maximumSocketLength
        return .text(
            "the path of a socket, at most \(most) bytes, or \"\" for none",
            parse: { $0.utf8.count <= most ? $0 : nil }, show: { $0 })
    }

    /// A name or an address as in a certificate; it also goes into an HTTP header.
    static var optionalServerName: Kind {
        .text(
            "a host name such as \"dns.example.com\", or \"\" for the address that is dialled",
            parse: { text in
                if text.isEmpty || IPAddress(text) != nil { return text }
                return Name(text).flatMap { $0.isHostname ? $0.description : nil }
            },
            show: { $0 })
    }
}

extension Kind where Value == NamedFile {
    /// A file that is read with the configuration.
    static var optionalFile: Kind {
        .text(Kind<String>.optionalPath.expected, parse: { NamedFile(path: $0) }, show: \.path)
    }
}

extension Kind where Value == [String] {
    /// Files that are read one after another.
    static var paths: Kind {
        let list = Kind<[String]>.list(of: .path)
        let expected = "the path of a file, a list of them, or \"\" for none"
        return Kind(
            expected: expected,
            read: { given throws(Problem) in
                switch given {
                case .text(let text): return text.isEmpty ? [] : [text]
                case .list, .environment: return try list.read(given)
                case .integer, .boolean, .other: throw Problem(given.shown, expected: expected)
                }
            },
            show: { $0.count > 1 ? list.show($0) : quoted($0.first ?? "") })
    }
}

extension Kind where Value == Secret {
    /// A secret, masked when settings are shown and never part of a message. The masked text is a valid value.
    ///
    /// - Parameter showsLength: Whether the masked text is as long as the secret, for a key whose length is public.
    static func secret(_ expected: String, showsLength: Bool) -> Kind {
        Kind(
            expected: expected,
            read: { given throws(Problem) in
                guard let text = given.text else { throw Problem("what is not a string", expected: expected) }
                return Secret(Array(text.utf8))
            },
            show: { secret in
                let mask = showsLength ? String(repeating: "*", count: secret.bytes.count) : "masked"
                return quoted(secret.bytes.isEmpty ? "" : mask)
            })
    }
}
