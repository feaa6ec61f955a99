import Base
import Transport

/// Carries plans out, and undoes them.
struct HostChanges {
    /// A prefix of each path; empty on a machine, a folder in tests.
    var root = ""
    /// Runs a program and returns its exit code.
    var run: ([String]) throws(SystemError) -> Int32 = Program.run

    static let folder = "/var/lib/httpdnsd"
    static let recordPath = folder + "/host"

    /// Whether there are recorded changes.
    var isRecorded: Bool { SystemFile.isThere(root + Self.recordPath) }

    /// The former state, if there are changes. Root carries out its steps, so it is trusted only if no other user can
    /// have written it, and may only have steps of plans.
    func record() throws(Host.Failed) -> HostRecord? {
        let found = try state(Self.recordPath)
        guard found != .absent else { return nil }
        guard case .file(let octets, let mode, let owner, _) = found, case .file(_, _, let own, _) = FileState.text(""),
            owner == own, mode & 0o022 == 0, OwnFolder.isOwn(root + Self.folder)
        else { throw Self.distrusted("may be another user's, and is not believed") }
        guard var record = HostRecord(String(decoding: octets, as: UTF8.self)) else {
            throw Self.distrusted("cannot be read, so what was here before is not known")
        }
        guard record.disable.allSatisfy(HostPlan.known.contains) else {
            throw Self.distrusted("has steps that no httpdnsd host enable writes, and is not believed")
        }
        record.look(at: try Host.Failed.ofSystem { () throws(SystemError) in try HostFacts(root: root) })
        return record
    }

    /// Carries a plan out. If it throws, ``undo()`` undoes the steps.
    func enable(_ plan: HostPlan) throws(Host.Failed) {
        var before: [String: FileState] = [:]
        for path in plan.paths { before[path] = try state(path) }
        try put(.folder, at: Self.folder)
        guard OwnFolder.isOwn(root + Self.folder) else {
            throw Self.distrusted("would be in a folder that another user can change")
        }
        try put(.text(HostRecord(plan, before: before).text, mode: 0o600), at: Self.recordPath)
        for step in plan.enable {
            switch step {
            // An existing folder stays, with all its contents.
            case .put(.folder, let path): if before[path] == .absent { try put(.folder, at: path) }
            case .put(let state, let path): try put(state, at: path)
            case .restore: break
            case .run(let words): if let failed = failure(of: words) { throw failed }
            }
        }
    }

    /// Restores the former state, also after an `enable` or an `undo` that was killed; without changes it does nothing.
    /// - Returns: The programs that failed, so that some program may not have noticed.
    func undo() throws(Host.Failed) -> [Host.Failed] {
        let record = try record()
        var failures: [Host.Failed] = []
        for step in record?.disable ?? [] {
            switch step {
            case .put: break
            case .restore(let path): if let state = record?.former(path) { try put(state, at: path) }
            case .run(let words): if let failed = failure(of: words) { failures.append(failed) }
            }
        }
        return failures
    }

    /// Removes the record, when the former state is restored.
    func forget() throws(Host.Failed) {
        try put(.absent, at: Self.recordPath)
        try put(.absent, at: Self.folder)
    }

    /// The failure if the record of the former state is not trusted, or cannot be read.
    private static func distrusted(_ why: String) -> Host.Failed {
        .system("\(recordPath) \(why): write \(HostFacts.resolvConfPath) as it is to be, and remove that file")
    }

    private func failure(of words: [String]) -> Host.Failed? {
        do throws(SystemError) {
            let code = try run(words)
            return code == 0 ? nil : .system("\(words.joined(separator: " ")) ended with \(code)")
        } catch {
            return .system("\(error)")
        }
    }

    private func state(_ path: String) throws(Host.Failed) -> FileState {
        try Host.Failed.ofSystem { () throws(SystemError) in try FileState(at: root + path) }
    }

    private func put(_ state: FileState, at path: String) throws(Host.Failed) {
        try Host.Failed.ofSystem { () throws(SystemError) in try state.put(at: root + path) }
    }
}

/// The state of a host before `httpdnsd host enable`, and the way back: written before the first change, and removed
/// after the last change of `disable`.
struct HostRecord: Sendable, Equatable {
    /// The steps back.
    var disable: [HostPlan.Step]
    /// The state of each path.
    var before: [String: FileState]
    /// Whether `/etc/resolv.conf` was changed after `enable`, and stays: see ``look(at:)``.
    private(set) var leavesResolvConf = false

    private static let first = "httpdnsd host 1"

    init(_ plan: HostPlan, before: [String: FileState]) { (disable, self.before) = (plan.disable, before) }

    /// Decides whether `/etc/resolv.conf` stays: a program keeps it now, or it names a server that is not on this
    /// machine. Its former servers may be of a network that is gone, while a file that names the daemon, or no server,
    /// is of no use without the daemon.
    mutating func look(at facts: HostFacts) {
        let isOwnLink = facts.resolvConf == HostPlan.stubLink && disable.contains(HostPlan.restartResolved)
        let isUnchanged = isOwnLink || facts.resolvConf == before[HostFacts.resolvConfPath] ?? facts.resolvConf
        leavesResolvConf =
            !isUnchanged && (facts.keeper != .hand || facts.servers.first?.address.isLoopback == false)
    }

    /// The state to which a path goes back; nil if the path stays as it is.
    func former(_ path: String) -> FileState? {
        let stays = before[path] == .folder || path == HostFacts.resolvConfPath && leavesResolvConf
        return stays ? nil : before[path]
    }

    /// A line for each step; words are in Base64, so that they may contain anything.
    var text: String {
        let lines = disable.map { step in
            switch step {
            case .run(let words): "run " + words.map(Self.encoded).joined(separator: " ")
            case .restore(let path): "restore \(Self.encoded(path)) \(Self.encoded(before[path] ?? .absent))"
            case .put: preconditionFailure("nothing new is put when all is taken back")
            }
        }
        return ([Self.first] + lines + ["end"]).map { $0 + "\n" }.joined()
    }

    /// - Returns: nil if the text is no whole record.
    init?(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count >= 3, lines[0] == Self.first, lines.suffix(2) == ["end", ""] else { return nil }
        (disable, before) = ([], [:])
        for line in lines.dropFirst().dropLast(2) {
            let words = line.split(separator: " ").map(String.init)
            let decoded = words.dropFirst().compactMap(Self.decoded)
            switch words.first {
            case "run" where words.count > 1 && decoded.count == words.count - 1: disable.append(.run(decoded))
            case "restore" where words.count >= 3:
                guard let path = decoded.first, let state = Self.state(Array(words.dropFirst(2))) else { return nil }
                disable.append(.restore(path))
                before[path] = state
            default: return nil
            }
        }
    }

    private static func encoded(_ text: String) -> String { Base64.standard.encode(Array(text.utf8)) }

    private static func decoded(_ word: String) -> String? {
        Base64.standard.decode(word.utf8).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func encoded(_ state: FileState) -> String {
        switch state {
        case .absent: "absent"
        case .folder: "folder"
        case .link(let target): "link \(encoded(target))"
        case .file(let octets, let mode, let owner, let group):
            "file \(mode) \(owner) \(group) =\(Base64.standard.encode(octets))"
        }
    }

    private static func state(_ words: [String]) -> FileState? {
        switch (words.first, words.count) {
        case ("absent", 1): return .absent
        case ("folder", 1): return .folder
        case ("link", 2): return decoded(words[1]).map(FileState.link)
        case ("file", 5):
            guard let mode = UInt32(words[1]), let owner = UInt32(words[2]), let group = UInt32(words[3]),
                words[4].hasPrefix("="), let octets = Base64.standard.decode(words[4].utf8.dropFirst())
            else { return nil }
            return .file(octets, mode: mode, owner: owner, group: group)
        default: return nil
        }
    }
}
