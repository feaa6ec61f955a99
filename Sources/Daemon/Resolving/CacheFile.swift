import Base
import DNSCache
import Log
import Synchronization
import Transport

/// The cache's file: read once at the start, written from time to time and at the end.
///
/// The file has a loop of its own, so that no query waits for a disk.
final class CacheFile: @unchecked Sendable {
    // Unchecked: all mutable state is used only on the loop.
    private let path: String
    private let cache: DNSCache
    private let report: Report
    let loop: EventLoop
    private let boot = CacheFile.bootIdentifier()
    private let countsWhileOff = CacheFile.isRight(
        hardwareClock: try? SystemFile.read("/sys/class/rtc/rtc0/since_epoch", limit: 64), at: WallClock.unixSeconds())
    /// See ``trouble``.
    private let cannotWrite = Mutex<String?>(nil)
    /// The value of ``DNSCache/changes`` when the file was written; nil if it must be written again.
    private var savedChanges: UInt64? = 0
    /// Whether the file has answers that were flushed, since it can be neither written nor removed.
    private var holdsFlushed = false
    /// Seconds from the last attempt to write the file to the next.
    private var pause = 1

    /// The highest average rate of writing: a small file is written a second after a change, a larger one less often,
    /// to spare disks. A daemon that is killed loses the answers since the last write. An attempt that fails counts as
    /// well: on a full disk it takes all free space for a moment.
    static let octetsPerSecond = 64 * 1024

    init(path: String, cache: DNSCache, report: Report) throws(SystemError) {
        (self.path, self.cache, self.report) = (path, cache, report)
        loop = try EventLoop(label: "httpdnsd.cachefile")
    }

    /// Begins to read the file, and writes changes from then on.
    /// - Parameter loaded: Called on a thread of this object, when all readable entries were read.
    func start(_ loaded: @escaping @Sendable () -> Void) {
        loop.deadlineReached = { [unowned self] in
            save()
            setDeadline()
        }
        loop.submit { [self] in
            load()
            loaded()
            setDeadline()
        }
        loop.start()
    }

    /// Writes the changes after the present work. Call once, when no more answers will be stored.
    /// - Parameter stopped: Called on a thread of this object.
    func stop(_ stopped: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            save()
            loop.stop(stopped)
        }
    }

    /// Writes the file at once: removed answers must not return, and the file may also have answers of other settings,
    /// which the cache does not have. A file that cannot be written is removed. From any thread.
    /// - Parameter saved: Called on a thread of this object, when the file has no removed answer any more, or cannot be
    ///   written.
    func saveSoon(_ saved: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            savedChanges = nil
            save()
            if trouble != nil { discard() }
            setDeadline()
            saved()
        }
    }

    /// Why the file cannot be written, in words; nil if it can. From any thread.
    var trouble: String? { cannotWrite.withLock { $0 } }

    private func setDeadline() { loop.setDeadline(Clock.now() + UInt64(pause) * 1_000_000_000) }

    var moment: DNSCache.Moment {
        DNSCache.Moment(
            wall: WallClock.unixSeconds(), tick: Tick(nanoseconds: Clock.now()).seconds, boot: boot,
            countsWhileOff: countsWhileOff)
    }

    /// Whether the hardware clock has the time of the wall clock, to a day, since it may have local time. Without a
    /// battery it begins years ago at each start of the machine.
    /// - Parameters:
    ///   - text: The hardware clock's seconds since 1970, in decimal digits; nil without such a clock.
    ///   - wall: Seconds since 1970.
    static func isRight(hardwareClock text: [UInt8]?, at wall: UInt64) -> Bool {
        guard let text, let seconds = UInt64(String(decoding: text, as: UTF8.self).prefix(while: \.isWholeNumber))
        else { return false }
        return max(seconds, wall) - min(seconds, wall) < 86_400
    }

    /// The identifier of this start of the machine (random(4)).
    private static func bootIdentifier() -> UInt128? {
        guard let text = try? SystemFile.read("/proc/sys/kernel/random/boot_id", limit: 64) else { return nil }
        let digits = String(decoding: text, as: UTF8.self).filter(\.isHexDigit)
        return digits.count == 32 ? UInt128(digits, radix: 16) : nil
    }
}

extension CacheFile {
    /// A missing file equals an empty one.
    private func load() {
        do throws(SystemError) {
            try restore(from: ReadableFile(path))
        } catch {
            if !error.isNotFound { report.cacheFileFails("cache.file is not taken over: \(error)") }
        }
    }

    private func restore(from file: consuming ReadableFile) throws(SystemError) {
        var failure: SystemError?
        let (answers, others, fault) = cache.restoreSnapshot(
            length: file.length, at: moment
        ) { range in
            do throws(SystemError) {
                return try file.read(range)
            } catch {
                failure = error
                return nil
            }
        }
        guard let fault else {
            let rest = others == 0 ? "" : ", \(others) of other settings left out"
            return report.log.notice("\(counted(answers, "answer")) taken over from cache.file\(rest)")
        }
        let extent =
            answers == 0
            ? "cache.file is not taken over" : "cache.file is taken over in part, \(counted(answers, "answer"))"
        report.cacheFileFails("\(extent): \(failure.map { "\($0)" } ?? "\(fault); \(setAside())")")
    }

    /// Renames the file, which is no valid snapshot, and returns a text with the new name.
    private func setAside() -> String {
        let name = path + ".damaged"
        do throws(SystemError) {
            try SystemFile.move(path, to: name)
            return "it is \(name) now"
        } catch {
            return "\(error)"
        }
    }

    /// Removes the file, which cannot be written, and has answers that must not return.
    private func discard() {
        holdsFlushed = false
        do throws(SystemError) {
            try SystemFile.remove(path)
        } catch {
            guard !error.isNotFound else { return }
            let words = "cache.file cannot be written, so a restart brings back what was flushed: \(error)"
            report.cacheFileFails(words)
            cannotWrite.withLock { $0 = words }
            holdsFlushed = true
        }
    }

    /// Writes the file if the cache has changed since the last time.
    private func save() {
        let changes = cache.changes
        guard changes != savedChanges else { return }
        var octets = 0
        do throws(SystemError) {
            var file = try ReplacementFile.begin(path)
            try cache.writeSnapshot(at: moment) { part throws(SystemError) in
                octets += part.count
                try file.write(part)
            }
            try file.commit()
            (savedChanges, pause) = (changes, max(1, octets / Self.octetsPerSecond))
            if trouble != nil { report.log.notice("cache.file can be written again") }
            cannotWrite.withLock { $0 = nil }
            holdsFlushed = false
        } catch {
            pause = max(octets / Self.octetsPerSecond, min(2 * pause, 60))
            guard !holdsFlushed else { return }
            let words = "cache.file cannot be written, so a restart forgets what is learnt from now on: \(error)"
            // The failure is logged once; further attempts follow.
            if trouble == nil { report.cacheFileFails(words) }
            cannotWrite.withLock { $0 = words }
        }
    }
}

extension Report {
    fileprivate func cacheFileFails(_ words: String) {
        say(.warning, .cacheFileFails, about: "cache.file", words)
    }
}
