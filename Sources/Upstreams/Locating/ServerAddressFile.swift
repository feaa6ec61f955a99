import Base
import DNSWire
package import Log
package import Transport

/// The file that stores the addresses of servers over a restart. Written on a loop of its own, so that no query waits
/// for a disk; ``Generations`` are written there as well.
package final class ServerAddressFile: @unchecked Sendable {
    // Unchecked: all mutable state is used only on the loop.
    private var file: KeptFile
    private let report: Report
    let loop: EventLoop
    private var waiting: [UInt8]?
    private var written: [UInt8]?
    /// When the next write is due, in the time of ``Clock``.
    private var nextWrite: UInt64 = 0

    /// The least time between two writes in nanoseconds, to spare disks: addresses may change at any time.
    private static let pause: UInt64 = 60_000_000_000

    /// - Parameter cacheFile: `cache.file`, beside which this file is.
    package init(beside cacheFile: String, report: Report) throws(SystemError) {
        (file, self.report) = (KeptFile(cacheFile + ".servers"), report)
        loop = try EventLoop(label: "httpdnsd.serverfile")
        loop.deadlineReached = { [unowned self] in writeIfDue() }
        loop.start()
    }

    /// The file's contents; empty if it cannot be read within a second.
    func read() -> [(name: Name, addresses: [IPAddress])] {
        do throws(SystemError) {
            return ServerAddressText.parse(
                try SystemFile.soon(file.path) { path throws(SystemError) in
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
            waiting = ServerAddressText.write(servers)
            writeIfDue()
        }
    }

    /// Writes all pending data. Call once, when nothing more will be saved.
    /// - Parameter stopped: Called on a thread of this object.
    package func stop(_ stopped: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            write()
            loop.stop(stopped)
        }
    }

    private func writeIfDue() {
        if Clock.now() >= nextWrite { write() } else { loop.setDeadline(nextWrite) }
    }

    private func write() {
        guard let text = waiting else { return }
        waiting = nil
        guard text != written else { return }
        nextWrite = Clock.now() + Self.pause
        if file.write(text, failed: report.addressesNotWritten) { written = text }
    }
}

extension Report {
    func addressesNotWritten(_ error: SystemError) {
        say(
            .warning, .cacheFileFails, about: "addresses of servers",
            "the addresses of servers are not kept over a restart: \(error)")
    }
}
