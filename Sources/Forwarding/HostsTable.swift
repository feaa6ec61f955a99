public import Base
public import DNSWire

/// The names of hosts(5) files, from which questions are answered before any group is asked.
public struct HostsTable: Sendable, Equatable {
    private var addresses: [NameKey: [IPAddress]] = [:]
    private var names: [NameKey: [Name]] = [:]
    /// How many addresses of the file were dropped, since there was no room for another name.
    public private(set) var leftOut = 0
    /// The other parts of the file that are left out: words that are not names, and addresses of a name or names of an
    /// address beyond ``maximumAddresses``.
    public private(set) var unread = Unread()

    public struct Unread: Sendable, Equatable {
        public fileprivate(set) var count = 0
        /// The line of the first such part, from 1; 0 if there is none.
        public fileprivate(set) var firstLine = 0
        /// The index of the file with that line, from 0.
        public fileprivate(set) var firstFile = 0
    }

    /// Names beyond this number are left out. Block lists have some hundred thousand names.
    public static let maximumNames = 2_000_000
    /// The longest file, in octets: room for ``maximumNames`` names in lines of twice the usual length.
    public static let maximumOctets = 128 << 20
    /// The most addresses of one name, and the most names of one address. Only block lists have more, and reading such
    /// a file must not take quadratic time.
    public static let maximumAddresses = 64
    /// The longest word that may be a name, in octets: each octet of a name may be written in four octets.
    private static let longestWord = 4 * Name.maximumLength

    /// The number of files read.
    private var files = 0

    /// A table without names.
    public init() {}

    /// A table of one file: see ``add(parsing:maximumNames:)``.
    public init(parsing text: Span<UInt8>, maximumNames: Int = Self.maximumNames) {
        add(parsing: text, maximumNames: maximumNames)
    }

    /// Reads a hosts file as if it followed the files read before: each line is an address and its names, which may be
    /// in Unicode; `#` begins a comment. Lines without an address are ignored, as in the C library.
    /// - Parameter maximumNames: The most names in the table.
    public mutating func add(parsing text: Span<UInt8>, maximumNames: Int = Self.maximumNames) {
        defer { files += 1 }
        // Block lists give all their names one address: these names share its memory.
        var alone: [IPAddress] = []
        var lines = TextLines()
        while let whole = lines.next(in: text) {
            var line = whole.lowerBound..<(firstIndex(of: UInt8(ascii: "#"), in: text, whole) ?? whole.upperBound)
            guard let first = takeWord(text, &line), let address = IPAddress(parsing: text.extracting(first)) else {
                continue
            }
            if alone.first != address { alone = [address] }
            var canonical: Name?
            while let word = takeWord(text, &line) {
                guard let name = Self.name(text, word) else {
                    leaveOut(lines.number)
                    continue
                }
                let key = NameKey(name)
                switch addresses[key]?.appendIfNew(address) {
                case true?: break
                case false?: leaveOut(lines.number)
                case nil:
                    guard addresses.count < maximumNames else {
                        leftOut += 1
                        continue
                    }
                    addresses[key] = alone
                }
                canonical = canonical ?? name
            }
            guard let canonical else { continue }
            let reverse = NameKey(.reverse(of: address))
            switch names[reverse]?.appendIfNew(canonical) {
            case true?: break
            // All names of a block list have the same address.
            case false?: if !address.isUnspecified, !address.isLoopback { leaveOut(lines.number) }
            case nil: if names.count < maximumNames { names[reverse] = [canonical] }
            }
        }
    }

    private static func name(_ text: Span<UInt8>, _ word: Range<Int>) -> Name? {
        guard word.count <= longestWord else { return nil }
        let octets = word.contains { text[$0] >= 0x80 } ? UnicodeName.ascii(text, word) : text.bytes(in: word)
        return octets.flatMap { Name(String(decoding: $0, as: UTF8.self)) }
    }

    private mutating func leaveOut(_ line: Int) {
        if unread.count == 0 { (unread.firstFile, unread.firstLine) = (files, line) }
        unread.count += 1
    }

    /// This table with the names of another one that it lacks; nil if it lacks none.
    public func joined(with other: HostsTable) -> HostsTable? {
        if other.addresses.keys.allSatisfy({ addresses[$0] != nil }) { return nil }
        var table = self
        table.addresses.merge(other.addresses) { own, _ in own }
        table.names.merge(other.names) { own, _ in own }
        return table
    }

    /// All names in the files, forward and reverse.
    public var allNames: [Name] { (Array(addresses.keys) + Array(names.keys)).map(\.name) }

    /// Whether the file gives the name an address.
    func holds(_ key: NameKey) -> Bool { addresses[key] != nil }

    /// Whether the file has the name for a client, as the name or the reverse name of an address. Such a name exists for
    /// every type, so it never gets NXDOMAIN, which holds for all types of a name (RFC 8020).
    func exists(_ key: NameKey, isOfThisHost: Bool) -> Bool {
        names[key] != nil || addresses(key, isOfThisHost: isOfThisHost) != nil
    }

    /// Whether the file gives the name only loopback addresses: a client on another host would connect to itself, so
    /// for such clients the name is not in the file.
    func isForThisHostAlone(_ key: NameKey) -> Bool {
        addresses[key].map { $0.allSatisfy(\.unmapped.isLoopback) } ?? false
    }

    /// The first loopback address of a name that has only loopback addresses; nil for any other name.
    public func loopbackAddress(of name: Name) -> IPAddress? {
        let key = NameKey(name)
        return isForThisHostAlone(key) ? addresses[key]?.first : nil
    }

    /// The addresses of a name for a client.
    private func addresses(_ key: NameKey, isOfThisHost: Bool) -> [IPAddress]? {
        guard let all = addresses[key] else { return nil }
        if isOfThisHost { return all }
        let others = all.filter { !$0.unmapped.isLoopback }
        return others.isEmpty ? nil : others
    }

    /// The file's answer; nil if the file does not have the name, or has no answer for this type. A name with addresses
    /// of only one family has NODATA for the other family. The TTL is 0: the file may change at any time.
    /// - Parameter isOfThisHost: Whether a program of this machine asks. Other clients get no loopback address
    ///   (127.0.0.0/8, ::1).
    func answer(_ key: NameKey, _ type: RecordType, isOfThisHost: Bool = true) -> Answer? {
        let name = key.name
        switch type {
        case .a, .aaaa:
            guard let all = addresses(key, isOfThisHost: isOfThisHost) else { return nil }
            let wanted = all.filter { $0.isIPv4 == (type == .a) }
            return wanted.isEmpty
                ? .noData(name, type: type, negativeTTL: 0) : .addresses(name, type: type, wanted, ttl: 0)
        case .ptr:
            return names[key].map { .pointers(name, $0, ttl: 0) }
        case .https, .svcb:
            // Hints from a resolver would contradict the file's addresses.
            return addresses(key, isOfThisHost: isOfThisHost).map { _ in .noData(name, type: type, negativeTTL: 0) }
        default:
            return nil
        }
    }
}

extension Array where Element: Equatable {
    /// - Returns: false if there is no room for the element.
    fileprivate mutating func appendIfNew(_ element: Element) -> Bool {
        if contains(element) { return true }
        guard count < HostsTable.maximumAddresses else { return false }
        append(element)
        return true
    }
}
