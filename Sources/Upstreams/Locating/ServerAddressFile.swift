import Base
import DNSWire
package import Log
package import Transport

/// The file that stores the addresses of servers over a restart. Written on a loop of its own, so that no query waits
/// for a disk; ``Generations`` are written there as well.
package final class ServerAddressFile: @unchecked Sendable {
    // Unchecked: all mutable state is used only on the loop.
    private let path: String
    /// What is to be in the files, by their paths.
    private var texts: [String: KeptText] = [:]
    private let report: Report
    private let loop: EventLoop

    /// - Parameter cacheFile: `cache.file`, beside which this file is.
    package init(beside cacheFile: String, report: Report) throws(SystemError) {
        (path, self.report) = (cacheFile + ".servers", report)
        loop = try EventLoop(label: "httpdnsd.serverfile")
        loop.deadlineReached = { [unowned self] in writeDue() }
        loop.start()
    }

    /// The file's contents; empty if it cannot be read within a second.
    func read() -> [(name: Name, addresses: [IPAddress])] {
        do throws(SystemError) {
            return ServerAddressText.parse(
                try SystemFile.soon(path) { path throws(SystemError) in
                    let file = try ReadableFile(path)
                    guard file.length <= ServerAddressText.maximumOctets else { return [] }
                    return try file.read(0..<file.length)
                })
        } catch {
            if !error.isNotFound { report.addressesNotWritten(error) }
            return []
        }
    }

    /// Saves these addresses; may be called from any thread.
    func save(_ servers: [(name: Name, addresses: [IPAddress])]) {
        loop.submit { [self] in
            take(ServerAddressText.write(servers), path) { [report] in report.addressesNotWritten($0) }
            writeDue()
        }
    }

    /// Saves the text of another small file, at once; may be called from any thread.
    /// - Parameter failed: Called with the reason if it cannot be written, once until it can.
    func save(_ text: [UInt8], at path: String, failed: @escaping @Sendable (SystemError) -> Void) {
        loop.submit { [self] in
            take(text, path, failed)
            texts[path]?.write()
            writeDue()
        }
    }

    /// Writes all pending data. Call once, when nothing more will be saved.
    /// - Parameter stopped: Called on a thread of this object.
    package func stop(_ stopped: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            for path in texts.keys { texts[path]?.write() }
            loop.stop(stopped)
        }
    }

    private func take(_ text: [UInt8], _ path: String, _ failed: @escaping (SystemError) -> Void) {
        texts[path, default: KeptText(path, failed: failed)].take(text)
    }

    private func writeDue() {
        let now = Clock.now()
        for (path, text) in texts where text.isDue(at: now) { texts[path]?.write() }
        loop.setDeadline(texts.values.compactMap(\.due).min())
    }
}

/// The text of a small file, which is written again later if it cannot be written.
private struct KeptText {
    private var file: KeptFile
    private let failed: (SystemError) -> Void
    private var waiting: [UInt8]?
    private var written: [UInt8]?
    /// When the next write is due, in the time of ``Clock``.
    private var next: UInt64 = 0

    /// The least time between two writes in nanoseconds, to spare disks: addresses may change at any time.
    private static let pause: UInt64 = 60_000_000_000

    /// - Parameter failed: See ``KeptFile/write(_:failed:)``.
    init(_ path: String, failed: @escaping (SystemError) -> Void) {
        (file, self.failed) = (KeptFile(path), failed)
    }

    /// When a text is to be written, in the time of ``Clock``; nil if none waits.
    var due: UInt64? { waiting == nil ? nil : next }

    func isDue(at now: UInt64) -> Bool { due.map { $0 <= now } ?? false }

    /// Takes a text instead of the former.
    mutating func take(_ text: [UInt8]) { waiting = text == written ? nil : text }

    /// Writes the text that waits.
    mutating func write() {
        guard let text = waiting else { return }
        next = Clock.now() + Self.pause
        if file.write(text, failed: failed) { (waiting, written) = (nil, text) }
    }
}

extension Report {
    func addressesNotWritten(_ error: SystemError) {
        say(
            .warning, .cacheFileFails, about: "addresses of servers",
            "the addresses of servers are not kept over a restart: \(error)")
    }
}
