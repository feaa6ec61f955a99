public import Base
public import Configuration
import Control
import Dispatch
import Log

extension Daemon {
    /// Applies new settings as far as they differ from the settings in effect, all in one step, while questions are
    /// answered as usual. The log names keys that need a restart. May be called from one thread at a time.
    /// - Throws: The error of the settings; in this case nothing has changed.
    /// - Parameter origins: The positions of the settings.
    /// - Returns: The changes, in lines for a person.
    @discardableResult
    public func reload(_ new: Settings, _ origins: Settings.Origins? = nil) throws(StartFailure) -> String {
        let reloading = settings.reloading(new)
        // The files of names may have changed although the settings are the same.
        let (running, proxiesBefore) = settings.applyingProxy(in: environment)
        let (next, proxies) = reloading.settings.applyingProxy(in: environment)
        let certificate = try CertificateFiles.Prepared(next.listen, plain: sockets.endpoints(.tcp))
        try sockets.checkCertificate(new.listen)
        let prepared = try forwarderLoop.prepare(
            sockets.applied(to: next), after: running, &numbers, Provenance(origins: origins, proxies: proxies))
        settings = reloading.settings
        settings.forgetFiles()
        let isDone = DispatchSemaphore(value: 0)
        forwarderLoop.apply(prepared) { [streams, certificates] in
            let isAnother = certificate.map { streams.count > 1 && certificates.follow($0) } ?? false
            let parts: [End] = streams.map { part in { part.apply(next.listen, isAnother ? certificate : nil, $0) } }
            Self.end(parts, within: .nanoseconds(Self.longestEnd)) { isDone.signal() }
        }
        isDone.wait()
        // From here on all log lines are true. A line is written if the former or the new level includes it.
        report.log.allow(next.log.level)
        defer { report.log.setLevel(next.log.level) }
        report.proxies(proxies.filter { !proxiesBefore.contains($0) })
        if prepared.areOtherAccounts || proxies != proxiesBefore { report.service(next) }
        if running.listen.allow != next.listen.allow { report.allowed(next.listen.allow, at: sockets) }
        observer.reloaded(failure: nil)
        report.reloaded(reloading)
        return [reloading.appliedLine, reloading.restartLine].compactMap(\.self).joined(separator: "\n")
    }

    /// Reports that the settings could not be read; the settings in effect stay.
    /// - Parameter line: The error and its position.
    /// - Returns: The line in the log.
    public func reloadFailed(_ line: String) -> String {
        observer.reloaded(failure: line)
        return report.reloadFailed(line)
    }
}

extension Settings.Reloading {
    fileprivate var appliedLine: String {
        "the configuration was read again" + (applied.isEmpty ? ", nothing has changed" : ": \(keys)")
    }

    fileprivate var keys: String { applied.joined(separator: ", ") }

    /// The line about keys that need a restart; nil if no key needs one.
    fileprivate var restartLine: String? {
        if needingRestart.isEmpty { return nil }
        let words =
            needingRestart.count == 1
            ? "needs a restart; until then it stays as it was" : "need a restart; until then they stay as they were"
        return "\(needingRestart.joined(separator: ", ")) \(words)"
    }
}

extension Report {
    func reloaded(_ reloading: Settings.Reloading) {
        say(
            .notice, .reloaded, reloading.appliedLine, reloading.applied.isEmpty ? [:] : ["keys": reloading.keys])
        if let line = reloading.restartLine { log.warning("\(line)") }
    }

    func reloadFailed(_ line: String) -> String {
        let words = "the configuration stays as it was: \(line)"
        say(.error, .reloadFailed, words, ["reason": line])
        return words
    }
}
