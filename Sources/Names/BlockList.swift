import Base
import DNSWire

/// The names for a group that answers by itself, from a file that may be a public list. Each line shows its own kind:
///
/// | line | meaning |
/// | --- | --- |
/// | `example.com`, `*.example.com` | the name and all names under it |
/// | `0.0.0.0 a.example b.example` | these names and none under them (hosts(5)); `::` and loopback addresses count |
/// | `\|\|a.example^` | the name and those under it; `\|\|*.a.example^`: only those under it; `\|a.example^`: only the name |
/// | `@@\|\|a.example^` | an exception: these names are not taken, whatever the other lines contain |
/// | `server=/a.example/…`, `local=/…/`, `address=/…/` | the names and all names under them: see ``DnsmasqLine`` |
/// | `# …`, `! …`, `[Adblock Plus 2.0]` | nothing: a comment |
///
/// The other rules of filter lists need facts that a DNS server does not have, such as the page or the requested path
/// (`\|\|a.example^$third-party`, `a.example##.ad`), or are no names (`/ad[0-9]/`, `\|\|ad*.example^`). They are
/// counted, and have no effect. So are all other lines: addresses and networks, which are no names, hosts lines with
/// other addresses, `.` and `""`, which would take all names, and lines of no known form.
public struct BlockList: Sendable {
    /// The names that the group takes.
    public var taken: DomainList { names.list }
    /// The exceptions.
    public var released: DomainList { exceptions.list }
    /// The number of lines with more than a comment.
    public private(set) var lines = 0
    /// The rules of filter lists that have no effect.
    public private(set) var rules = LeftOut()
    /// The other lines that are left out, whole or in part.
    public private(set) var others = LeftOut()

    /// Lines that are left out.
    public struct LeftOut: Sendable, Equatable {
        public private(set) var count = 0
        /// The number of the first such line, from 1; 0: there is none.
        public private(set) var firstLine = 0
        /// The start of the first such line, in printable ASCII.
        public private(set) var first = ""

        fileprivate mutating func add(_ text: Span<UInt8>, _ line: Range<Int>, _ number: Int) {
            count += 1
            if count == 1 { (firstLine, first) = (number, shown(text, line)) }
        }
    }

    private var names = Part()
    private var exceptions = Part()

    /// A list that knows the line of each pattern: a line may have no pattern, or several.
    private struct Part {
        var list = DomainList()
        /// The last line that the list counts.
        private var line = 0

        /// - Returns: False if the text is no name. Then nothing is appended.
        mutating func append(
            _ text: Span<UInt8>, _ name: Range<Int>, _ mark: DomainList.Mark, _ number: Int
        ) -> Bool {
            if number > line { list.skip(lines: number - line - 1) } else { list.stayOnLine() }
            let isName = list.append(name: text, name, mark)
            // Without a pattern, the line is still to come.
            line = isName ? number : number - 1
            return isName
        }
    }

    /// Reads a file, with the size limits of a ``DomainList``.
    public init(parsing text: Span<UInt8>) throws(DomainListError) {
        var lines = try ListLines(text)
        while let line = try lines.next(in: text) {
            read(text, line, lines.number)
            guard names.list.count + exceptions.list.count <= DomainList.maximumLines else {
                throw .tooManyNames(line: lines.number)
            }
        }
        names.list.giveBackMemory()
        exceptions.list.giveBackMemory()
    }

    private mutating func read(_ text: Span<UInt8>, _ whole: Range<Int>, _ number: Int) {
        let hash = Base.firstIndex(of: UInt8(ascii: "#"), in: text, whole) ?? whole.upperBound
        let line = trimmed(text, whole.lowerBound..<hash)
        guard let first = line.first, text[first] != UInt8(ascii: "!") else { return }
        if text[first] == UInt8(ascii: "["), line.last.map({ text[$0] }) == UInt8(ascii: "]") { return }
        lines += 1
        let isCosmetic = line.upperBound == hash && Self.isCosmetic(text, hash..<whole.upperBound)
        if isCosmetic || !readNames(text, line, whole, number) {
            if isCosmetic || Self.isRule(text, line) {
                rules.add(text, line, number)
            } else {
                others.add(text, line, number)
            }
        }
    }

    /// - Parameter whole: The line with its comment.
    /// - Returns: False if a part of the line is left out.
    private mutating func readNames(
        _ text: Span<UInt8>, _ line: Range<Int>, _ whole: Range<Int>, _ number: Int
    ) -> Bool {
        if text[line.lowerBound] == UInt8(ascii: "|") || text[line.lowerBound] == UInt8(ascii: "@") {
            return readRule(text, line, number)
        }
        if let dnsmasq = DnsmasqLine(text, whole) {
            return dnsmasq.allNames(text) { readName(text, $0, number) }
        }
        if let blank = line.first(where: { isWhiteSpace(text[$0]) }) { return readHosts(text, line, blank, number) }
        return readName(text, line, number)
    }

    /// Reads `x` or `*.x`. Lists with `*.x` mean x as well, since they have no other line for x.
    private mutating func readName(_ text: Span<UInt8>, _ name: Range<Int>, _ number: Int) -> Bool {
        names.append(text, isEqual(text, name.prefix(2), to: "*.") ? name.dropFirst(2) : name, .subtree, number)
    }

    /// - Returns: False if the line is no supported rule.
    private mutating func readRule(_ text: Span<UInt8>, _ line: Range<Int>, _ number: Int) -> Bool {
        var rest = line
        func starts(with prefix: StaticString) -> Bool {
            isEqual(text, rest.prefix(prefix.utf8CodeUnitCount), to: prefix)
        }
        let isException = starts(with: "@@")
        if isException { rest = rest.dropFirst(2) }
        // This word is no condition: it only decides between rules.
        let important: StaticString = "$important"
        if isEqual(text, rest.suffix(important.utf8CodeUnitCount), to: important) {
            rest = rest.dropLast(important.utf8CodeUnitCount)
        }
        if rest.last.map({ text[$0] }) == UInt8(ascii: "|") { rest = rest.dropLast() }
        guard rest.last.map({ text[$0] }) == UInt8(ascii: "^") else { return false }
        rest = rest.dropLast()
        let mark: DomainList.Mark
        if starts(with: "||*.") {
            (mark, rest) = (.below, rest.dropFirst(4))
        } else if starts(with: "||") {
            (mark, rest) = (.subtree, rest.dropFirst(2))
        } else if starts(with: "|") {
            (mark, rest) = (.only, rest.dropFirst())
        } else {
            return false
        }
        return isException
            ? exceptions.append(text, rest, mark, number) : names.append(text, rest, mark, number)
    }

    /// - Parameter blank: The first blank, which is in the line.
    /// - Returns: False if the line is not of a hosts file, or if a part of the line is left out.
    private mutating func readHosts(
        _ text: Span<UInt8>, _ line: Range<Int>, _ blank: Int, _ number: Int
    ) -> Bool {
        let end = Base.firstIndex(of: UInt8(ascii: "%"), in: text, line.lowerBound..<blank) ?? blank
        guard let address = IPAddress(parsing: text.extracting(line.lowerBound..<end)) else { return false }
        var rest = blank..<line.upperBound
        var isTaken = true
        while let name = takeWord(text, &rest) {
            if Self.namesOfThisMachine.contains(where: { isEqual(text, name, to: $0) }) { continue }
            if address.isNoHost, names.append(text, name, .only, number) { continue }
            // Many lists contain `0.0.0.0 0.0.0.0`.
            isTaken = isTaken && IPAddress(parsing: text.extracting(name))?.isNoHost ?? false
        }
        return isTaken
    }

    /// The names of this machine and its links in hosts files. Many lists begin with these names, which must not be
    /// blocked.
    private static let namesOfThisMachine: [StaticString] = [
        "localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6",
        "localhost6.localdomain6", "local", "broadcasthost", "ip6-localhost", "ip6-loopback", "ip6-localnet",
        "ip6-mcastprefix", "ip6-allnodes", "ip6-allrouters", "ip6-allhosts",
    ]

    /// Whether the rest of a line makes it a rule about the contents of pages: `##.ad`, `#@#`, `#?#`, `#$#`, `#%#` and
    /// the like.
    private static func isCosmetic(_ text: Span<UInt8>, _ rest: Range<Int>) -> Bool {
        rest.dropFirst().prefix(4).first { !"@?$%".utf8.contains(text[$0]) }.map { text[$0] == UInt8(ascii: "#") }
            ?? false
    }

    /// Whether a line has the syntax of a filter list's rule.
    private static func isRule(_ text: Span<UInt8>, _ line: Range<Int>) -> Bool {
        if isEqual(text, line.prefix(1), to: "/") || isEqual(text, line.prefix(2), to: "@@") { return true }
        return [UInt8(ascii: "^"), UInt8(ascii: "|"), UInt8(ascii: "$")].contains {
            Base.firstIndex(of: $0, in: text, line) != nil
        }
    }
}

extension IPAddress {
    /// Whether a list gives this address to a name to make it unreachable.
    var isNoHost: Bool { isLoopback || isUnspecified }
}
