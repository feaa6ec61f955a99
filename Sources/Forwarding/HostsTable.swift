import Base
public import DNSWire

/// The names of a hosts(5) file, from which questions are answered before any group is asked.
public struct HostsTable: Sendable, Equatable {
    private var addresses: [NameKey: [IPAddress]] = [:]
    private var names: [NameKey: [Name]] = [:]
    /// How often the file gives an address to a name for which there was no room any more.
    public private(set) var leftOut = 0

    /// Further names are left out. Block lists have some hundred thousand.
    public static let maximumNames = 2_000_000
    /// The longest file, in octets: room for that many names in lines of twice the usual length.
    public static let maximumOctets = 128 << 20
    /// The most addresses of one name, and the most names of one address. Only block lists have more, and reading such
    /// a file must not take quadratic time.
    static let maximumAddresses = 64

    /// A table without names.
    public init() {}

    /// Reads a hosts file: each line an address and its names; `#` begins a comment. Lines of another form are ignored,
    /// as the C library does.
    /// - Parameter maximumNames: how many names there is room for.
    public init(parsing text: Span<UInt8>, maximumNames: Int = Self.maximumNames) {
        // Block lists give all their names one address: those share its memory.
        var alone: [IPAddress] = []
        TextLines.forEach(of: text) { line in
            guard let first = line.first, let address = IPAddress(first) else { return true }
            if alone.first != address { alone = [address] }
            var canonical: Name?
            for word in line.dropFirst() {
                guard let name = Name(word) else { continue }
                let key = NameKey(name)
                if addresses[key]?.appendIfNew(address) == nil {
                    guard addresses.count < maximumNames else {
                        leftOut += 1
                        continue
                    }
                    addresses[key] = alone
                }
                canonical = canonical ?? name
            }
            guard let canonical else { return true }
            let reverse = NameKey(.reverse(of: address))
            if names[reverse]?.appendIfNew(canonical) == nil, names.count < maximumNames {
                names[reverse] = [canonical]
            }
            return true
        }
    }

    /// All names in the file, forward and reverse.
    public var allNames: [Name] { (Array(addresses.keys) + Array(names.keys)).map(\.name) }

    /// Whether the file gives the name an address.
    func holds(_ key: NameKey) -> Bool { addresses[key] != nil }

    /// The file's answer: nil when it does not have the name, or has nothing for questions of this type. A name with
    /// addresses of one family has none of the other.
    func answer(_ key: NameKey, _ type: RecordType, ttl: UInt32) -> Answer? {
        let name = key.name
        switch type {
        case .a, .aaaa:
            guard let all = addresses[key] else { return nil }
            let wanted = all.filter { $0.isIPv4 == (type == .a) }
            return wanted.isEmpty
                ? .noData(name, type: type, negativeTTL: ttl) : .addresses(name, type: type, wanted, ttl: ttl)
        case .ptr:
            return names[key].map { .pointers(name, $0, ttl: ttl) }
        case .https, .svcb:
            // Hints from a resolver would contradict the file's addresses.
            return addresses[key].map { _ in .noData(name, type: type, negativeTTL: ttl) }
        default:
            return nil
        }
    }
}

extension Array where Element: Equatable {
    fileprivate mutating func appendIfNew(_ element: Element) {
        if count < HostsTable.maximumAddresses, !contains(element) { append(element) }
    }
}

/// The words of each line of a text file, without comments.
enum TextLines {
    /// The longest line that is read; people write shorter ones.
    private static let maximumLine = 4096

    /// - Parameters:
    ///   - comment: the octets that begin a comment.
    ///   - body: is handed one line after the other that has words; false: the further ones are not wanted.
    static func forEach(
        of text: Span<UInt8>, comment: [UInt8] = [UInt8(ascii: "#")], _ body: (_ words: [String]) -> Bool
    ) {
        var words: [String] = []
        var word: [UInt8] = []
        var isComment = false
        var length = 0
        func endWord() {
            if !word.isEmpty, length <= maximumLine { words.append(String(decoding: word, as: UTF8.self)) }
            word.removeAll(keepingCapacity: true)
        }
        for at in text.indices {
            let octet = text[at]
            length += 1
            if octet == UInt8(ascii: "\n") {
                endWord()
                if !words.isEmpty, !body(words) { return }
                words.removeAll(keepingCapacity: true)
                (isComment, length) = (false, 0)
            } else if isComment || comment.contains(octet) {
                isComment = true
            } else if octet == UInt8(ascii: " ") || octet == UInt8(ascii: "\t") || octet == UInt8(ascii: "\r") {
                endWord()
            } else {
                word.append(octet)
            }
        }
        endWord()
        if !words.isEmpty { _ = body(words) }
    }
}
