import Base
import Configuration
import Log
import Logging
import Transport

/// Which names go to which group, read again when the files that say so change.
///
/// `@unchecked Sendable`: confined to the forwarder's loop, but for the reading, which has values of its own.
final class NameFiles: @unchecked Sendable {
    /// Called when ``names`` has changed because of a file.
    var changed: () -> Void = {}
    /// Nil before the first settings.
    private(set) var names: NameLists?

    private let loop: EventLoop
    private let report: Report
    private var settings = Settings()
    private var numbers = GroupNumbers()
    private var watch: FileWatch?
    /// Why the files could not be read the last time.
    private var failure: StartFailure?
    /// Increases when a reading begins or becomes needless: the result of an earlier one is ignored.
    private var turn = 0

    init(loop: EventLoop, report: Report) { (self.loop, self.report) = (loop, report) }

    /// Takes names that were read just now, and follows their files from now on. They are read once more if one of them has
    /// changed after it was read and before it was watched.
    func apply(_ new: NameLists, _ settings: Settings, _ numbers: GroupNumbers) {
        stop()
        if names?.contents != new.contents { report.contents(new) }
        (names, self.settings, self.numbers, failure) = (new, settings, numbers, nil)
        guard !new.paths.isEmpty else { return }
        watch = FileWatch(new.paths, in: loop, failed: report.cannotFollow) { [unowned self] in read() }
        read(unlessStill: new)
    }

    func stop() {
        watch?.stop()
        watch = nil
        turn += 1
    }

    /// Reads the files on another thread, since there may be a million names in them.
    /// - Parameter known: these are not read again if the files still are as they were.
    private func read(unlessStill known: NameLists? = nil) {
        turn += 1
        let (turn, settings, numbers) = (turn, settings, numbers)
        loop.elsewhere {
            (known?.holds ?? false) ? nil : Result { () throws(StartFailure) in try NameLists(settings, numbers) }
        } then: { [self] read in
            if let read, self.turn == turn { take(read) }
        }
    }

    private func take(_ read: Result<NameLists, StartFailure>) {
        switch read {
        case .success(let new):
            failure = nil
            guard new != names else { return }
            names = new
            changed()
            report.namesChanged(new)
            report.contents(new)
        case .failure(let new):
            if new != failure { report.namesWrong(new) }
            failure = new
            watch?.lookAgain()
        }
    }
}

extension Report {
    fileprivate func contents(_ names: NameLists) {
        for words in names.contents { log.notice("\(words)") }
    }

    fileprivate func namesChanged(_ names: NameLists) {
        say(
            .notice, .reloaded, about: "files of names",
            "the files of names were read again: \(names.paths.joined(separator: ", "))")
    }

    fileprivate func namesWrong(_ failure: StartFailure) {
        guard case .setting(let key, _, let message, _) = failure else { return }
        say(
            .error, .reloadFailed, about: "files of names", "the names stay as they were: \(key): \(message)",
            ["reason": message])
    }
}
