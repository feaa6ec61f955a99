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

    /// The former state, if there are changes. Root carries it out, so it is trusted only if no other user can have
    /// written it, and it may only have the steps of plans.
    func record() throws(Host.Failed) -> HostRecord? {
        let found = try state(Self.recordPath)
        guard found != .absent else { return nil }
        guard case .file(let octets, let mode, let owner, _) = found, case .file(_, _, let own, _) = FileState.text(""),
            owner == own, mode & 0o022 == 0, OwnFolder.isOwn(root + Self.folder)
        else { throw Self.distrusted("may be another user's, and is not believed") }
        guard let record = HostRecord(String(decoding: octets, as: UTF8.self)) else {
            throw Self.distrusted("cannot be read, so what was here before is not known")
        }
        guard record.disable.allSatisfy(HostPlan.known.contains) else {
            throw Self.distrusted("has steps that no httpdnsd host enable writes, and is not believed")
        }
        return record
    }

    /// Carries a plan out. If it throws, ``disable()`` undoes the steps.
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

    /// Restores the former state, also after an `enable` or a `disable` that was killed; without changes it does
    /// nothing.
    /// - Returns: The programs that failed, so that some program may not have noticed.
    @discardableResult
    func disable() throws(Host.Failed) -> [Host.Failed] {
        let record = try record()
        var failures: [Host.Failed] = []
        for step in record?.disable ?? [] {
            switch step {
            case .put: break
            case .restore(let path): if let state = record?.before[path], state != .folder { try put(state, at: path) }
            case .run(let words): if let failed = failure(of: words) { failures.append(failed) }
            }
        }
        try put(.absent, at: Self.recordPath)
        try put(.absent, at: Self.folder)
        return failures
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
