import Base
import Configuration
import DNSWire
import Forwarding
import Names
import Transport
import Upstreams

/// The assignment of names to groups, by the settings and the files that they name.
struct NameLists: Sendable, Equatable {
    private(set) var rules: DomainRules
    /// A digest of all lists, stable over restarts.
    private(set) var fingerprint: UInt64
    /// The files, which may change.
    private(set) var files: [File] = []

    private var sources: [Source]

    /// A list with the position of its patterns.
    private struct Source {
        let key: String
        /// The file's path; empty if the patterns are in the settings.
        let path: String
        let owner: DomainRules.Owner
        var list: DomainList
        /// The index of the file in ``NameLists/files``; nil if the patterns are in the settings.
        let file: Int?

        func location(_ line: Int) -> String { path.isEmpty ? key : "\(path):\(line)" }

        /// The remedy for a pattern that this list and another have, and the pattern's location in this list. Of one
        /// group's lists, only `except` and another can be in conflict.
        func rivalry(_ pattern: DomainPattern, _ line: Int, with other: Source) -> (remedy: String, location: String) {
            switch (owner, other.owner) {
            case (.except, _), (_, .except): ("give \(pattern) in one of the two", location(line))
            default: ("give \(pattern) to one group", "\(location(line)) of another")
            }
        }
    }

    /// A file of names, and the result of its reading.
    struct File: Sendable {
        fileprivate(set) var key: String
        let path: String
        let use: NameFile.Use
        /// Detects a change of the file.
        fileprivate let stamp: FileStamp
        /// How often the file had been written when it was read: see ``Known``.
        fileprivate let writes: Int
        /// The names in effect; nil if there are none, which is an error except for a list.
        fileprivate var names: NameFile?
        /// The names that the file has instead while another group has one of them: each reading of any file tries them
        /// again.
        fileprivate var refused: NameFile?
        fileprivate(set) var fault: NameFile.Fault?
        fileprivate var isCopy: Bool
        /// The names in effect that the file lacks, since it may be half-written.
        fileprivate var lacked: DomainList
        /// The text that was read, to be copied beside `cache.file` once it is in effect; nil if the file is not used
        /// or may be half-written, or the text was copied.
        fileprivate(set) var text: [UInt8]?
        /// Whether the group has no other names.
        fileprivate(set) var isAlone = false
        /// Whether the file has changed, may be half-written, and must be checked again.
        fileprivate(set) var isWaiting = false
    }

    /// The state of the files of names.
    struct Known: Sendable {
        /// The result of the last reading; nil if there was none, and all files are read.
        var names: NameLists?
        /// How often each file was closed after writing, or moved there, since it is followed. A file is read again
        /// only if it was written again, not because of another file.
        var writes: [String: Int] = [:]
        /// See ``FileWatch/placed``.
        var placed: [String: FileStamp] = [:]
        /// `cache.file`, beside which the last valid text of each file is copied; empty if there are no copies.
        var cacheFile: String
        /// Whether changes of the files may have been missed: a file with another number is read at once.
        var mayHaveMissed = false

        /// The file after the last reading.
        fileprivate func file(_ path: String, _ use: NameFile.Use) -> File? {
            names?.files.first { $0.path == path && $0.use == use }
        }
    }

    /// Reads the files that have changed.
    init(_ settings: Settings, _ numbers: GroupNumbers, _ known: Known? = nil) throws(StartFailure) {
        let known = known ?? Known(cacheFile: settings.cache.file)
        var sources: [Source] = []
        var files: [File] = []
        func add(_ key: String, _ owner: DomainRules.Owner, _ list: DomainList, file path: String = "") {
            if list.count > 0 || !path.isEmpty {
                let file = path.isEmpty ? nil : files.count - 1
                sources.append(Source(key: key, path: path, owner: owner, list: list, file: file))
            }
        }
        func add(_ key: String, _ owner: DomainRules.Owner, files paths: [String]) throws(StartFailure) {
            for path in paths {
                let file = File(key, path, .servers, known)
                guard let names = file.names else { throw file.failure }
                files.append(file)
                add(key, owner, names.taken, file: path)
            }
        }
        let domains = settings.domains
        if settings.httpdns != nil {
            add("domains.intercept", .group(.httpdns), DomainList(domains.intercept.map(DomainPattern.subtree)))
            try add("domains.interceptFile", .group(.httpdns), files: domains.interceptFile)
        }
        add("domains.bypass", .group(.fallback), DomainList(domains.bypass.map(DomainPattern.subtree)))
        try add("domains.bypassFile", .group(.fallback), files: domains.bypassFile)
        for group in settings.upstreams {
            let id = numbers[group.name]
            add("\(group.section).domains", .group(id), DomainList(group.domains))
            if group.answer == nil { try add("\(group.section).domainsFile", .group(id), files: group.domainsFile) }
            add("\(group.section).except", .except(id), DomainList(group.except))
        }
        // The author of a list knows neither the servers nor the aliases of this daemon, and must not make it unusable.
        let reports: [Server] = settings.accounts.compactMap { AbnormalReporter.server(of: $0) }
        let servers: [Server] = settings.messageGroups.flatMap(\.named) + reports
        let own: [Name] = servers.compactMap(\.name) + settings.upstreams.compactMap(\.alias)
        // Lists come last: for equal patterns the settings win.
        for group in settings.upstreams where group.answer != nil {
            let (id, key) = (numbers[group.name], "\(group.section).domainsFile")
            if !group.domainsFile.isEmpty { add(key, .spared(id), DomainList(own.map(DomainPattern.only))) }
            for path in group.domainsFile {
                var file = File(key, path, .answers, known)
                file.isAlone = group.domains.isEmpty && group.domainsFile.count == 1
                files.append(file)
                add(key, .listed(id), file.names?.taken ?? DomainList(), file: path)
                add(key, .released(id), file.names?.released ?? DomainList(), file: path)
            }
        }
        (rules, fingerprint) = try Self.rules(&sources, &files, known)
        (self.sources, self.files) = (sources, files)
        do throws(StartFailure) {
            try refuseCircles(settings, numbers)
        } catch {
            guard Self.giveUp(takersOf: own, &sources, &files) else { throw error }
            (rules, fingerprint) = try Self.rules(&sources, &files, known)
            (self.sources, self.files) = (sources, files)
            try refuseCircles(settings, numbers)
        }
        try refuseAliasCircles(settings, numbers)
    }

    /// The rules of all lists, and the digest of the lists. A conflict is the defect of one file: that file keeps its
    /// former names, and what was read of all others is in effect.
    private static func rules(
        _ sources: inout [Source], _ files: inout [File], _ known: Known
    ) throws(StartFailure) -> (DomainRules, UInt64) {
        while true {
            var hash = FNV()
            for source in sources {
                hash.add("\(source.key) ")
                hash.add(source.list.octets)
            }
            if let former = known.names, former.fingerprint == hash.value,
                former.sources.map(\.owner) == sources.map(\.owner)
            {
                // Equal lists share their memory, too.
                return (former.rules, hash.value)
            }
            do throws(DomainRulesError) {
                return (try DomainRules(sources.map { ($0.list, $0.owner) }), hash.value)
            } catch {
                guard case .conflict(let pattern, let first, let second) = error,
                    // A file keeps what it lacks only until it is written.
                    giveUp(sources[first.list].list, in: second.list, &sources, &files)
                        || giveUp(sources[second.list].list, in: first.list, &sources, &files)
                        || putBack(pattern, first, second, &sources, &files, known)
                else { throw failure(error, sources) }
            }
        }
    }

    /// Takes from all lists the patterns that take one of these names and that their files lack: without them, a server
    /// may be found.
    /// - Returns: False if there are none.
    private static func giveUp(
        takersOf names: [Name], _ sources: inout [Source], _ files: inout [File]
    ) -> Bool {
        var isAny = false
        for own in sources.indices {
            let lacked = sources[own].file.map { files[$0].lacked.patterns } ?? []
            let takers = lacked.filter { pattern in
                switch pattern {
                case .subtree(let parent), .below(let parent): names.contains { $0.isWithin(parent) }
                case .only, .singleLabels, .network: false
                }
            }
            if giveUp(DomainList(takers), in: own, &sources, &files) { isAny = true }
        }
        return isAny
    }

    /// Takes these patterns from a list as far as its file lacks them.
    /// - Returns: False if it lacks none of them.
    private static func giveUp(
        _ patterns: DomainList, in own: Int, _ sources: inout [Source], _ files: inout [File]
    ) -> Bool {
        guard let index = sources[own].file else { return false }
        let kept = files[index].lacked.subtracting(patterns)
        let taken = files[index].lacked.subtracting(kept)
        guard taken.count > 0 else { return false }
        files[index].lacked = kept
        files[index].names?.remove(taken)
        sources[own].list = sources[own].list.subtracting(taken)
        return true
    }

    /// Gives one of two lists in conflict its former names back: the list of a file that did not have the pattern
    /// before; of two such files, the later one.
    /// - Returns: False if neither is of such a file, as at a start.
    private static func putBack(
        _ pattern: DomainPattern, _ first: PatternLocation, _ second: PatternLocation, _ sources: inout [Source],
        _ files: inout [File], _ known: Known
    ) -> Bool {
        for (own, other) in [(second, first), (first, second)] {
            let (source, rival) = (sources[own.list], sources[other.list])
            guard let index = source.file, let last = known.file(files[index].path, files[index].use),
                let names = last.names
            else { continue }
            // Former names that have the pattern are in the same conflict.
            let former = [(names.taken, source.owner), (DomainList([pattern]), rival.owner)]
            guard (try? DomainRules(former)) != nil else { continue }
            let (remedy, elsewhere) = rival.rivalry(pattern, other.line, with: source)
            files[index].putBack(last, because: .taken(remedy, line: own.line, elsewhere: elsewhere))
            sources[own.list].list = names.taken
            return true
        }
        return false
    }

    /// The paths of the files, each once.
    var paths: [String] { files.map(\.path).eachOnce }

    /// Whether a file must be checked again.
    var isWaiting: Bool { files.contains(where: \.isWaiting) }

    /// The patterns of groups' names that only this network can know, with the location of each; of a file the first alone.
    var privateNames: [(location: String, pattern: DomainPattern, group: GroupID)] {
        sources.flatMap { source -> [(String, DomainPattern, GroupID)] in
            guard case .group(let id) = source.owner else { return [] }
            let found = source.list.patterns.filter { DomainRules.arePrivate($0) }
            return source.path.isEmpty
                ? found.map { (source.key, $0, id) } : found.prefix(1).map { ("\(source.key): \(source.path)", $0, id) }
        }
    }

    /// The contents of each list of a group that answers by itself, in words.
    var contents: [String] { files.compactMap { $0.use == .answers && $0.fault == nil ? $0.contents : nil } }

    /// The errors of files and the names in effect instead, in words.
    var remarks: [String] { files.compactMap(\.remark) }

    /// The lists with ignored lines, in words.
    var leftOut: [String] { files.compactMap { $0.fault == nil && $0.leavesOut ? $0.contents : nil } }

    /// Drops the texts that are in effect.
    /// - Returns: The copies to write of them.
    mutating func takeTexts() -> [NameCopy] {
        var copies: [NameCopy] = []
        for index in files.indices where files[index].refused == nil {
            if let text = files[index].text.take() { copies.append(NameCopy(path: files[index].path, text: text)) }
        }
        return copies
    }

    /// The location of a rule's pattern: its key, and its file with the line; without a file, the number of the item in
    /// the key's own list.
    func location(_ location: PatternLocation) -> (key: String, file: String?, number: Int) {
        let source = sources[location.list]
        return (source.key, source.path.isEmpty ? nil : source.path, location.line)
    }

    static func == (a: NameLists, b: NameLists) -> Bool { a.fingerprint == b.fingerprint && a.paths == b.paths }

    private static func failure(_ error: DomainRulesError, _ sources: [Source]) -> StartFailure {
        switch error {
        case .conflict(let pattern, let first, let second):
            let (a, b) = (sources[first.list], sources[second.list])
            let subject = b.path.isEmpty ? "" : "\(b.location(second.line)): "
            let (remedy, elsewhere) = a.rivalry(pattern, first.line, with: b)
            return .setting(
                key: b.key, item: b.path.isEmpty ? second.line : nil,
                "\(subject)\(remedy); it is in \(elsewhere) as well",
                other: a.path.isEmpty ? StartFailure.Item(key: a.key, number: first.line) : nil)
        case .tooManyOctets:
            return .setting(key: sources.last?.key ?? "upstreams", "the lists of names are too long together")
        }
    }
}

extension NameLists.File {
    fileprivate init(_ key: String, _ path: String, _ use: NameFile.Use, _ known: NameLists.Known) {
        let last = known.file(path, use)
        let writes = known.writes[path, default: 0]
        if let last {
            var look = writes > last.writes ? .read : last.stamp.look(mayHaveMissed: known.mayHaveMissed)
            // The file may be written by now, or an obstacle such as a lack of descriptors may be gone.
            if look == .keep, last.isWaiting { look = .read }
            if look == .keep, case .unreadable = last.fault { look = .read }
            if look != .read {
                self = last.kept(key, isWaiting: look == .wait)
                return
            }
        }
        // Made before the file is read.
        let stamp = FileStamp(path)
        let read = Self.read(path)
        let outcome = NameFile.read(
            read, for: use, after: last?.names, mayBeWritten: stamp.mayBeWritten(since: known.placed[path])
        ) {
            try? Self.read(NameCopy.path(of: path, beside: known.cacheFile)).get()
        }
        let isWhole = outcome.lacked.count == 0
        self.init(
            key: key, path: path, use: use, stamp: stamp, writes: writes,
            // Equal names share their memory, too.
            names: outcome.names == last?.names ? last?.names : outcome.names, fault: outcome.fault,
            isCopy: outcome.isCopy || outcome.fault != nil && last?.isCopy ?? false, lacked: outcome.lacked,
            text: outcome.fault == nil && isWhole && !known.cacheFile.isEmpty ? try? read.get() : nil,
            isWaiting: !isWhole)
    }

    private static func read(_ path: String) -> Result<[UInt8], NameFile.Fault> {
        do throws(SystemError) {
            return .success(try SystemFile.read(path, limit: DomainList.maximumOctets))
        } catch {
            return .failure(.unreadable("\(error)"))
        }
    }

    /// The file as it was read before.
    /// - Parameter key: The key that names it now: the group may have another name, or another group has the same file.
    private func kept(_ key: String, isWaiting: Bool) -> Self {
        var file = self
        (file.key, file.isWaiting) = (key, isWaiting)
        if let refused { (file.names, file.refused, file.fault, file.isCopy) = (refused, nil, nil, false) }
        return file
    }

    /// Puts the former names in effect, and keeps the names of the file for later readings.
    fileprivate mutating func putBack(_ former: Self, because fault: NameFile.Fault) {
        (refused, names, self.fault, isCopy) = (names, former.names, fault, former.isCopy)
    }

    /// Whether the names of the file can be used only after a change of it or of another file.
    var isRefused: Bool { refused != nil }

    /// Whether the last reading of the file had the same result.
    func isSame(as other: NameLists.File?) -> Bool {
        guard let other else { return false }
        return fault == other.fault && names?.taken == other.names?.taken && names?.released == other.names?.released
    }

    /// Whether the file has lines that are neither names nor rules of lists.
    fileprivate var leavesOut: Bool { (names?.others.count ?? 0) > 0 }

    /// Why the daemon cannot start with a file.
    fileprivate var failure: StartFailure { .setting(key: key, wrong) }

    private var wrong: String {
        guard let fault else { return "" }
        if case .unreadable = fault { return "\(fault)" }
        return "\(path)\(fault.line.map { ":\($0)" } ?? ""): \(fault)"
    }

    /// The file's error and the names in effect instead, or that it has no effect; nil if neither.
    var remark: String? {
        guard fault != nil else { return contents == nil ? nil : noEffect }
        guard let names else { return "\(key): no name is taken from the list: \(wrong)" }
        let count = counted(names.taken.count, "name")
        return "\(key): the \(count) of before stay\(isCopy ? ", from the copy beside cache.file" : ""): \(wrong)"
    }

    /// The contents of a list, in words; nil if it has no names in effect.
    var contents: String? {
        guard let names else { return nil }
        var words = "\(key): \(path) has \(counted(names.taken.count, "name"))"
        if names.released.count > 0 { words += " and \(counted(names.released.count, "exception"))" }
        func leftOut(_ lines: BlockList.LeftOut, _ noun: String, _ why: String = "") {
            guard lines.count > 0 else { return }
            words +=
                "; \(counted(lines.count, noun)) of it\(why) \(lines.count == 1 ? "is" : "are") left out, the first on "
                + "line \(lines.firstLine)"
        }
        leftOut(names.rules, "rule", " that a DNS server cannot follow")
        leftOut(names.others, "line")
        if names.others.count > 0 { words += ": \(names.others.first)" }
        return words
    }

    /// A remark that a list has no names, and so no effect; nil if it has names.
    private var noEffect: String? {
        guard use == .answers, let names, names.taken.count == 0 else { return nil }
        if names.released.count == 0 { return "\(key): \(path) has no names" }
        return isAlone
            ? "\(key): \(path) has exceptions alone, which have no effect: they hold for the names of the same group"
            : nil
    }
}

/// The copy of the last valid text of a file of names: it is read instead of the file at a start when that cannot be
/// used.
struct NameCopy: Sendable {
    /// The path of the file.
    let path: String
    let text: [UInt8]

    /// The path of a file's copy, with a digest of the file's path; empty if there is none, without a `cache.file`.
    static func path(of path: String, beside cacheFile: String) -> String {
        guard !cacheFile.isEmpty else { return "" }
        var hash = FNV()
        hash.add(path)
        return "\(cacheFile).names-\(String(hash.value, radix: 16))"
    }

    /// Writes the copy, unless it exists. May take long.
    func write(beside cacheFile: String) throws(SystemError) {
        let copy = Self.path(of: path, beside: cacheFile)
        if let old = try? SystemFile.read(copy, limit: text.count), old == text { return }
        var file = try ReplacementFile.begin(copy)
        try file.write(text)
        try file.commit()
    }
}
