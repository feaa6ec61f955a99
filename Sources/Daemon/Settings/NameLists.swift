import Base
import Configuration
import Forwarding
import Names
import Transport

/// Which names go to which group, by the settings and the files that they name.
struct NameLists: Sendable, Equatable {
    let rules: DomainRules
    /// The paths of the files, which may change.
    let paths: [String]
    /// A digest of all lists, which is the same over a restart.
    let fingerprint: UInt64

    /// What there is in each list of a group that answers by itself, in words.
    let contents: [String]

    private let sources: [Source]
    private let stamps: [FileStamp]

    /// A list, and where its patterns were given.
    private struct Source {
        let key: String
        /// The file's path; empty: the patterns stand in the settings.
        let path: String
        let owner: DomainRules.Owner
        let list: DomainList

        func place(_ line: Int) -> String { path.isEmpty ? key : "\(path):\(line)" }
    }

    /// Reads the files.
    init(_ settings: Settings, _ numbers: GroupNumbers) throws(StartFailure) {
        var sources: [Source] = []
        var (stamps, contents): ([FileStamp], [String]) = ([], [])
        func add(_ key: String, _ owner: DomainRules.Owner, _ list: DomainList, file path: String = "") {
            if list.count > 0 || !path.isEmpty {
                sources.append(Source(key: key, path: path, owner: owner, list: list))
            }
        }
        func add(_ key: String, _ owner: DomainRules.Owner, _ patterns: [DomainPattern]) {
            add(key, owner, DomainList(patterns))
        }
        func add(_ key: String, _ owner: DomainRules.Owner, file path: String) throws(StartFailure) {
            guard !path.isEmpty else { return }
            stamps.append(FileStamp(path))
            add(key, owner, try Self.read(path, key, DomainList.init(parsing:)), file: path)
        }
        let domains = settings.domains
        if settings.httpdns != nil {
            add("domains.intercept", .group(.httpdns), domains.intercept.map { .subtree($0) })
            try add("domains.interceptFile", .group(.httpdns), file: domains.interceptFile)
        }
        add("domains.bypass", .group(.fallback), domains.bypass.map { .subtree($0) })
        try add("domains.bypassFile", .group(.fallback), file: domains.bypassFile)
        for group in settings.upstreams {
            let id = numbers[group.name]
            add("\(group.section).domains", .group(id), group.domains)
            if group.answer == nil { try add("\(group.section).domainsFile", .group(id), file: group.domainsFile) }
            add("\(group.section).except", .except(id), group.except)
        }
        // Behind the rest: of the same pattern, what the settings say comes first.
        for group in settings.upstreams where group.answer != nil && !group.domainsFile.isEmpty {
            let (id, key, path) = (numbers[group.name], "\(group.section).domainsFile", group.domainsFile)
            stamps.append(FileStamp(path))
            let list = try Self.read(path, key, BlockList.init(parsing:))
            add(key, .listed(id), list.taken, file: path)
            add(key, .released(id), list.released, file: path)
            contents.append("\(key): \(list.words(path))")
        }
        (self.sources, self.stamps, self.contents) = (sources, stamps, contents)
        paths = sources.map(\.path).filter { !$0.isEmpty }
        var hash = FNV()
        for source in sources {
            hash.add("\(source.key) ")
            hash.add(source.list.octets)
        }
        fingerprint = hash.value
        do throws(DomainRulesError) {
            rules = try DomainRules(sources.map { ($0.list, $0.owner) })
        } catch {
            throw Self.failure(error, sources)
        }
        try refuseCircles(settings, numbers)
    }

    /// Where a pattern of the rules stands: the key that gives it, and its file with the line there; without a file, which item
    /// of the key's own list it is.
    func place(_ place: DomainPlace) -> (key: String, file: String?, number: Int) {
        let source = sources[place.list]
        return (source.key, source.path.isEmpty ? nil : source.path, place.line)
    }

    /// Whether the files still are what was read.
    var holds: Bool { stamps.allSatisfy(\.holds) }

    static func == (a: NameLists, b: NameLists) -> Bool { a.fingerprint == b.fingerprint && a.paths == b.paths }

    private static func read<List>(
        _ path: String, _ key: String, _ parse: (Span<UInt8>) throws(DomainListError) -> List
    ) throws(StartFailure) -> List {
        let text: [UInt8]
        do throws(SystemError) {
            text = try SystemFile.read(path, limit: DomainList.maximumOctets)
        } catch {
            throw .setting(key: key, "\(error); give a file that this user may read")
        }
        do throws(DomainListError) {
            return try parse(text.span)
        } catch {
            throw .setting(key: key, "\(path):\(error.line): \(error)")
        }
    }

    private static func failure(_ error: DomainRulesError, _ sources: [Source]) -> StartFailure {
        switch error {
        case .conflict(let pattern, let first, let second):
            let (a, b) = (sources[first.list], sources[second.list])
            let subject = b.path.isEmpty ? "" : "\(b.place(second.line)): "
            return .setting(
                key: b.key, item: b.path.isEmpty ? second.line : nil,
                "\(subject)give \(pattern) to one group; it is in \(a.place(first.line)) of another as well",
                other: a.path.isEmpty ? StartFailure.Item(key: a.key, number: first.line) : nil)
        case .tooManyOctets:
            return .setting(key: sources.last?.key ?? "upstreams", "the lists of names are too long together")
        }
    }
}

extension BlockList {
    /// What there is in a list, in words.
    fileprivate func words(_ path: String) -> String {
        func count(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
        var words = "\(path) has \(count(taken.count, "name"))"
        if released.count > 0 { words += " and \(count(released.count, "exception"))" }
        guard notFollowed > 0 else { return words }
        return words
            + "; \(count(notFollowed, "rule")) of it that a DNS server cannot follow \(notFollowed == 1 ? "is" : "are") left "
            + "out, the first on line \(firstNotFollowed)"
    }
}
