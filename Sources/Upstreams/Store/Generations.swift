import Base
package import Log
import Transport

/// The highest generation of a store's entries that was seen under each key of the fleet. With `cache.file` it outlives
/// a restart: a malicious store could return an earlier generation, and with it all deleted entries.
package final class Generations: @unchecked Sendable {
    // Unchecked: `known` is used only on the forwarder's loop.
    private let path: String?
    private let servers: ServerAddressFile?
    private let report: Report
    /// The generations, by the text of their key in the store, which reveals nothing about the fleet's key.
    private var known: [String: UInt64] = [:]
    private var isRead = false

    private static let maximumOctets = 4096
    /// Far beyond any real count; a file with a higher number is not the daemon's.
    private static let highest = UInt64(UInt32.max)

    /// - Parameters:
    ///   - cacheFile: `cache.file`, beside which this file is; nil if nothing outlives a restart.
    ///   - servers: The other file there, with which this file is written.
    package init(beside cacheFile: String?, with servers: ServerAddressFile?, report: Report) {
        (path, self.servers, self.report) = (cacheFile.map { $0 + ".generations" }, servers, report)
    }

    /// Reads the file, for a second at most. Call once before there is a store; without a store the file is not needed.
    package func read() {
        guard let path, !isRead else { return }
        isRead = true
        do throws(SystemError) {
            let octets = try SystemFile.soon(path) { path throws(SystemError) in
                try SystemFile.read(path, limit: Self.maximumOctets)
            }
            let text = String(decoding: octets, as: UTF8.self)
            for line in text.split(separator: "\n") {
                let words = line.split(separator: " ")
                guard words.count == 2, let number = UInt64(words[1]), number <= Self.highest else { continue }
                known[String(words[0])] = number
            }
        } catch {
            if !error.isNotFound { report.generationsNotWritten(error) }
        }
    }

    /// - Parameter key: See ``StoreSeal/generationKey``.
    func highest(of key: StoreSeal.Key) -> UInt64 { known[String(decoding: key.text, as: UTF8.self)] ?? 0 }

    /// Stores the generations of the keys in use, and drops those of former keys.
    /// - Parameter deletes: Whether entries are still to be deleted. A restart forgets which, so it begins the next
    ///   generation.
    func keep(_ seals: [StoreSeal], deletes: Bool) {
        var present: [String: UInt64] = [:]
        for seal in seals where seal.generation > 0 || deletes {
            present[String(decoding: seal.generationKey.text, as: UTF8.self)] = seal.generation &+ (deletes ? 1 : 0)
        }
        guard present != known else { return }
        known = present
        guard let path, let servers else { return }
        let text = present.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }.joined()
        servers.save(Array(text.utf8), at: path) { [report] in report.generationsNotWritten($0) }
    }
}

extension Report {
    fileprivate func generationsNotWritten(_ error: SystemError) {
        say(
            .warning, .cacheFileFails, about: "generations",
            "generations of the shared cache are not kept over a restart, after which a store that lies can give back what was flushed: \(error)"
        )
    }
}
