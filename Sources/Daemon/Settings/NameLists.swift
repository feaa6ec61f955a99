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
        var stamps: [FileStamp] = []
        func add(_ key: String, _ owner: DomainRules.Owner, _ patterns: [DomainPattern]) {
            guard !patterns.isEmpty else { return }
            sources.append(Source(key: key, path: "", owner: owner, list: DomainList(patterns)))
        }
        func add(_ key: String, _ owner: DomainRules.Owner, file path: String) throws(StartFailure) {
            guard !path.isEmpty else { return }
            stamps.append(FileStamp(path))
            sources.append(Source(key: key, path: path, owner: owner, list: try Self.read(path, key)))
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
            try add("\(group.section).domainsFile", .group(id), file: group.domainsFile)
            add("\(group.section).except", .except(id), group.except)
        }
        (self.sources, self.stamps) = (sources, stamps)
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

    private static func read(_ path: String, _ key: String) throws(StartFailure) -> DomainList {
        let text: [UInt8]
        do throws(SystemError) {
            text = try SystemFile.read(path, limit: DomainList.maximumOctets)
        } catch {
            throw .setting(key: key, "\(error); give a file that this user may read")
        }
        do throws(DomainListError) {
            return try DomainList(parsing: text.span)
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
