import Base
import Configuration
import Dispatch
import Log
import Transport

/// The assignment of names to groups, read again when its files change.
///
/// `@unchecked Sendable`: confined to the forwarder's loop, except the reading, which has values of its own, and
/// ``known``.
final class NameFiles: @unchecked Sendable {
    /// Called when a file has changed ``names``.
    var changed: () -> Void = {}
    /// Nil before the first settings.
    private(set) var names: NameLists?

    private let loop: EventLoop
    private let report: Report
    private var settings = Settings()
    private var numbers = GroupNumbers()
    private lazy var watch = FileWatch(in: loop, failed: report.cannotFollow) { [unowned self] written in
        for path in written { writes[path, default: 0] += 1 }
        read()
    }
    /// See ``NameLists/Known``.
    private var writes: [String: Int] = [:]
    /// Copies to write, by the paths of the files.
    private var waiting: [String: NameCopy] = [:]
    private var isWriting = false
    /// Whether the last copy could not be written.
    private var cannotCopy = false
    /// Whether the copies that wait are written after ``pause``.
    private var isDiskAwaited = false
    private static let pause = DispatchTimeInterval.seconds(60)
    /// Why the files together could not be used the last time.
    private var failure: StartFailure?
    /// Increases when a reading begins or becomes needless: the result of an earlier reading is ignored.
    private var turn = 0

    /// Why the files together cannot be used, in words; nil if they can.
    var trouble: String? { failure.flatMap(Report.namesStay) }

    init(loop: EventLoop, report: Report) { (self.loop, self.report) = (loop, report) }

    /// Takes names that were read just now, and follows their files from now on. They are read again if one of them has
    /// changed after it was read and before it was watched.
    func apply(_ new: NameLists, _ settings: Settings, _ numbers: GroupNumbers) {
        turn += 1
        (self.settings, self.numbers, failure) = (settings, numbers, nil)
        let areOthers = watch.follow(new.paths)
        take(new)
        if !new.paths.isEmpty { read(mayHaveMissed: areOthers) }
    }

    /// Ends, and writes the copies that could not be written so far.
    func close() {
        watch.follow([])
        turn += 1
        for copy in waiting.values { try? copy.write(beside: settings.cache.file) }
    }

    /// The present state of the files, with all their events.
    func known(cacheFile: String) -> NameLists.Known {
        NameLists.Known(names: names, writes: writes, placed: watch.placed, cacheFile: cacheFile)
    }

    /// Reads the files on another thread, since they may have a million names.
    private func read(mayHaveMissed: Bool = false) {
        turn += 1
        let (turn, settings, numbers) = (turn, settings, numbers)
        var known = known(cacheFile: settings.cache.file)
        known.mayHaveMissed = mayHaveMissed
        loop.elsewhere { [known] in
            Result { () throws(StartFailure) in try NameLists(settings, numbers, known) }
        } then: { [self] read in
            if self.turn == turn { take(read) }
        }
    }

    private func take(_ read: Result<NameLists, StartFailure>) {
        switch read {
        case .success(let new):
            failure = nil
            let before = names
            take(new)
            if new != before { changed() }
        case .failure(let new):
            if new != failure { report.namesWrong(new) }
            failure = new
            watch.lookAgain()
        }
    }

    private func take(_ read: NameLists) {
        var new = read
        let copies = new.takeTexts()
        let before = names
        names = new
        report.names(new, after: before)
        // The obstacle to reading may be gone in a while.
        if new.isWaiting || new.files.contains(where: { $0.fault != nil && !$0.isRefused }) { watch.lookAgain() }
        for copy in copies { waiting[copy.path] = copy }
        writeCopies()
        if !new.paths.isEmpty { giveBackMemory() }
    }

    /// Frees the memory of a reading: texts and former rules, for 200,000 names more octets than the names take. This
    /// turn still retains some of it.
    private func giveBackMemory() {
        let trim = { @Sendable [self] in
            if !isWriting { loop.elsewhere(ProgramMemory.trimHeap) {} }
        }
        loop.elsewhere({}, then: trim)
    }

    /// Writes the copies on another thread, since a disk may be slow; one at a time, so that the latest stays.
    private func writeCopies() {
        guard !isWriting, let (path, copy) = waiting.first else { return }
        waiting[path] = nil
        isWriting = true
        let cacheFile = settings.cache.file
        loop.elsewhere { () -> SystemError? in
            do throws(SystemError) { try copy.write(beside: cacheFile) } catch { return error }
            return nil
        } then: { [self] error in
            isWriting = false
            if let error {
                if !cannotCopy { report.noCopy(error) }
                if waiting[path] == nil { waiting[path] = copy }
                writeCopiesLater()
            } else {
                writeCopies()
            }
            cannotCopy = error != nil
            giveBackMemory()
        }
    }

    /// The disk may be full, or the folder closed, for a while only.
    private func writeCopiesLater() {
        guard !isDiskAwaited else { return }
        isDiskAwaited = true
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.pause) { [weak self] in
            guard let self else { return }
            loop.submit { [self] in
                isDiskAwaited = false
                writeCopies()
            }
        }
    }
}

extension Report {
    /// Logs the contents and the errors of files that were read.
    fileprivate func names(_ new: NameLists, after old: NameLists?) {
        let others = new.files.filter { file in
            !file.isSame(as: old?.files.first { $0.key == file.key && $0.path == file.path })
        }
        let right = others.filter { $0.fault == nil }.map(\.path).eachOnce
        if old != nil, !right.isEmpty {
            say(
                .notice, .reloaded, about: "files of names",
                "the files of names were read again: \(right.joined(separator: ", "))")
        }
        for words in others.compactMap({ $0.fault == nil ? $0.contents : nil }) { log.notice("\(words)") }
        for file in others {
            guard let remark = file.remark else { continue }
            if file.fault == nil {
                log.warning("\(remark)")
            } else {
                say(.error, .reloadFailed, about: file.path, remark, ["reason": remark])
            }
        }
    }

    fileprivate static func namesStay(_ failure: StartFailure) -> String? {
        guard case .setting(let key, _, let message, _) = failure else { return nil }
        return "the names stay as they were: \(key): \(message)"
    }

    fileprivate func namesWrong(_ failure: StartFailure) {
        guard case .setting(_, _, let message, _) = failure, let words = Self.namesStay(failure) else { return }
        say(.error, .reloadFailed, about: "files of names", words, ["reason": message])
    }

    fileprivate func noCopy(_ error: SystemError) {
        say(
            .warning, .cacheFileFails, about: "copies of names",
            "no copy of a file of names is kept, so a restart needs the file itself: \(error)")
    }
}
