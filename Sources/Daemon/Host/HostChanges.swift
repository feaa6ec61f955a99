import Transport

/// Carries plans out, and takes them back.
struct HostChanges {
    /// What stands before each path; empty on a machine, a folder in tests.
    var root = ""
    /// Runs a program; returns its exit code.
    var run: ([String]) throws(SystemError) -> Int32 = Program.run

    static let folder = "/var/lib/httpdnsd"
    static let recordPath = folder + "/host"

    enum Failed: Error, Equatable, CustomStringConvertible {
        case system(SystemError)
        case command(String, code: Int32)
        case record

        var description: String {
            switch self {
            case .system(let error): "\(error)"
            case .command(let words, let code): "\(words) ended with \(code)"
            case .record: "\(HostChanges.recordPath) cannot be read, so what was here before is not known"
            }
        }
    }

    /// What was here before, if something has been changed.
    func record() throws(Failed) -> HostRecord? {
        guard case .file(let octets, _, _, _) = try state(Self.recordPath) else { return nil }
        guard let record = HostRecord(String(decoding: octets, as: UTF8.self)) else { throw .record }
        return record
    }

    /// Carries a plan out. When it throws, ``disable()`` takes back what was done.
    func enable(_ plan: HostPlan) throws(Failed) {
        var before: [String: FileState] = [:]
        for path in plan.paths { before[path] = try state(path) }
        try put(.folder, at: Self.folder)
        try put(.text(HostRecord(plan, before: before).text, mode: 0o600), at: Self.recordPath)
        for step in plan.enable {
            switch step {
            // What is there already stays, with all that is in it.
            case .put(.folder, let path): if before[path] == .absent { try put(.folder, at: path) }
            case .put(let state, let path): try put(state, at: path)
            case .restore: break
            case .run(let words): if let failed = failure(of: words) { throw failed }
            }
        }
    }

    /// Puts everything back as it was, also what is left of an `enable` or a `disable` that was killed; with nothing to put
    /// back it does nothing.
    /// - Returns: the programs that failed, without which some program may not have noticed.
    @discardableResult
    func disable() throws(Failed) -> [Failed] {
        let record = try record()
        var failures: [Failed] = []
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

    private func failure(of words: [String]) -> Failed? {
        do throws(SystemError) {
            let code = try run(words)
            return code == 0 ? nil : .command(words.joined(separator: " "), code: code)
        } catch {
            return .system(error)
        }
    }

    private func state(_ path: String) throws(Failed) -> FileState {
        do throws(SystemError) { return try FileState(at: root + path) } catch { throw .system(error) }
    }

    private func put(_ state: FileState, at path: String) throws(Failed) {
        do throws(SystemError) { try state.put(at: root + path) } catch { throw .system(error) }
    }
}
