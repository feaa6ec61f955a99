import Base
import DNSWire

/// Patterns from text: a single pattern, or a file with one pattern a line.
extension DomainList {
    /// The longest file that is read, in octets.
    public static var maximumOctets: Int { 64 << 20 }
    /// The most lines of a file that is read, with and without patterns.
    public static var maximumLines: Int { 2_000_000 }

    /// Reads a file: one pattern a line, with `""` for single labels, or a ``DnsmasqLine``. `#` begins a comment; lines
    /// may be blank, may end in CR LF, and may begin with a byte order mark.
    public init(parsing text: Span<UInt8>) throws(DomainListError) {
        self.init()
        var lines = try ListLines(text)
        var withoutPattern = 0
        while let line = try lines.next(in: text) {
            let comment = Base.firstIndex(of: UInt8(ascii: "#"), in: text, line) ?? line.upperBound
            let pattern = trimmed(text, line.lowerBound..<comment)
            guard !pattern.isEmpty else {
                withoutPattern += 1
                continue
            }
            skip(lines: withoutPattern)
            withoutPattern = 0
            guard append(line: text, pattern, line) else {
                throw .notAPattern(line: lines.number, shown(text, pattern))
            }
        }
        giveBackMemory()
    }

    /// Appends the patterns of a line; false: the line has other content.
    /// - Parameter whole: The line with its comment.
    private mutating func append(line text: Span<UInt8>, _ range: Range<Int>, _ whole: Range<Int>) -> Bool {
        if let dnsmasq = DnsmasqLine(text, whole) {
            let before = count
            return dnsmasq.allNames(text) { name in
                if count > before { stayOnLine() }
                return append(parsing: text, name)
            }
        }
        if append(parsing: text, range) { return true }
        guard isEqual(text, range, to: "\"\"") else { return false }
        append(.singleLabels)
        return true
    }

    /// Appends the pattern in a range of the text; false: the text is no pattern, and nothing is appended.
    mutating func append(parsing text: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard let first = range.first else { return false }
        let dot = UInt8(ascii: ".")
        if range.count == 1, text[first] == dot {
            append(.subtree(.root))
            return true
        }
        let isBelow = range.count > 2 && text[first] == UInt8(ascii: "*") && text[first + 1] == dot
        let name = isBelow ? first + 2..<range.upperBound : range
        if append(name: text, name, isBelow ? .below : .subtree) { return true }
        // An address without a prefix length is more likely a mistake than a network of one address.
        guard Base.firstIndex(of: UInt8(ascii: "/"), in: text, range) != nil,
            let network = Network(parsing: text.extracting(range))
        else { return false }
        append(.network(network))
        return true
    }

    /// Appends the wire form of a host name, which may be in Unicode; false: the text is no such name, and nothing is
    /// appended. A name whose last label is a number is refused, since it is an address or a part of an address.
    mutating func append(name text: Span<UInt8>, _ range: Range<Int>, _ mark: Mark) -> Bool {
        if append(ascii: text, range, mark) { return true }
        guard range.contains(where: { text[$0] >= 0x80 }), let ascii = UnicodeName.ascii(text, range) else {
            return false
        }
        return append(ascii: ascii.span, ascii.indices, mark)
    }

    private mutating func append(ascii text: Span<UInt8>, _ range: Range<Int>, _ mark: Mark) -> Bool {
        let dot = UInt8(ascii: ".")
        let hasFinalDot = range.last.map { text[$0] == dot } ?? false
        let end = hasFinalDot ? range.upperBound - 1 : range.upperBound
        // The text's dots become the lengths of the labels after them; one more length precedes all, and the root
        // follows.
        guard end - range.lowerBound + 2 <= Name.maximumLength else { return false }
        var (label, isNumber) = (range.lowerBound, true)
        for index in range.lowerBound..<end {
            let octet = text[index]
            if octet == dot {
                guard index > label, index &- label <= Name.maximumLabelLength else { return false }
                (label, isNumber) = (index &+ 1, true)
            } else if lowercased(octet) &- UInt8(ascii: "a") < 26 {
                // Most octets are letters: this saves 4 % of the time for a list of 110,000 names.
                isNumber = false
            } else {
                guard Name.isHostnameOctet(octet) else { return false }
                isNumber = isNumber && isDigit(octet)
            }
        }
        guard end > label, end - label <= Name.maximumLabelLength, !isNumber else { return false }
        add(mark, hostname: text, range.lowerBound..<end)
        return true
    }
}

/// The lines of a file of names, within the limits of such files.
struct ListLines {
    private var lines = TextLines()

    init(_ text: Span<UInt8>) throws(DomainListError) {
        guard text.count <= DomainList.maximumOctets else { throw .tooManyOctets }
    }

    var number: Int { lines.number }

    mutating func next(in text: Span<UInt8>) throws(DomainListError) -> Range<Int>? {
        let line = lines.next(in: text)
        guard number <= DomainList.maximumLines else { throw .tooManyLines }
        return line
    }
}

/// The start of a line's content, in printable ASCII, each other octet as `?`.
func shown(_ text: Span<UInt8>, _ range: Range<Int>) -> String {
    String(
        decoding: range.prefix(60).map { text[$0] }.map { (0x20..<0x7F).contains($0) ? $0 : UInt8(ascii: "?") },
        as: UTF8.self)
}

/// The first error in a file of names.
public enum DomainListError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The line is counted from 1; the text is the start of its content, in printable ASCII.
    case notAPattern(line: Int, String)
    /// There are more names than ``DomainList/maximumLines``, since a line of a hosts file may have several.
    case tooManyNames(line: Int)
    /// There are more lines than ``DomainList/maximumLines``.
    case tooManyLines
    /// There are more octets than ``DomainList/maximumOctets``.
    case tooManyOctets

    /// The line to show to the user; for a file that is too long, the first line beyond the limit.
    public var line: Int {
        switch self {
        case .notAPattern(let line, _), .tooManyNames(let line): line
        case .tooManyLines: DomainList.maximumLines + 1
        case .tooManyOctets: 1
        }
    }

    /// The error and its remedy, without the text of the line.
    public var description: String {
        switch self {
        case .notAPattern:
            "not a pattern; give a name of letters, digits, \"-\" and \"_\" such as example.com or *.example.com, a network "
                + "whose bits behind the prefix are 0 such as 10.0.0.0/8, . for every name, or \"\" for single labels"
        case .tooManyNames: "too many names; give \(DomainList.maximumLines) at most"
        case .tooManyLines: "too many lines; give \(DomainList.maximumLines) at most"
        case .tooManyOctets: "too long; give \(DomainList.maximumOctets) octets at most"
        }
    }
}
