import Base
import Configuration
import Counters
import Cryptography
import Log
import Logging
import Streams
import Transport

/// The certificate that clients are shown over TLS, and its key. Their files are followed: new connections get what is in them,
/// and those that are open go on.
///
/// `@unchecked Sendable`: confined to the loop of its server once that runs, but for the reading, which has values of its own.
final class ServerCertificate: @unchecked Sendable {
    /// What a server shows, made from settings; made on any thread.
    struct Prepared: @unchecked Sendable {
        // Unchecked: made on one thread, used on the loop.
        fileprivate let context: TLSServerContext
        /// Without the contents of the files, which can still be compared.
        fileprivate let settings: Settings.Listen
        fileprivate let transport: Tally.Transport

        /// Nil without a certificate, and for what is not encrypted.
        init?(_ settings: Settings.Listen, _ transport: Tally.Transport) throws(StartFailure) {
            guard transport.isEncrypted, let (certificate, key) = settings.certificate else { return nil }
            self.transport = transport
            do throws(TLSError) {
                context = try TLSServerContext(
                    certificatePEM: certificate, keyPEM: key,
                    protocols: transport == .https ? ServerHTTP.protocols : [ApplicationProtocol.dnsOverTLS],
                    refusesOthers: true)
            } catch {
                let name = error == .certificateUnreadable ? "certificateFile" : "keyFile"
                throw .setting(key: "listen.\(name)", error.description)
            }
            var settings = settings
            settings.forgetFiles()
            self.settings = settings
        }
    }

    private var current: Prepared
    private let loop: EventLoop
    private let report: Report
    private var watch: FileWatch?
    /// What was wrong with the files the last time; nil: nothing.
    private var failure: Failure?
    /// Increases when a reading begins or becomes needless: the result of an earlier one is ignored.
    private var turn = 0
    /// When the keys of tickets change next, in the time of ``Clock``.
    private(set) var nextChange: UInt64

    /// How long tickets can be opened with a key, in nanoseconds: a day.
    static let keysLast: UInt64 = 86_400_000_000_000
    /// The longest file, in octets.
    private static let longestFile = 1 << 20

    /// How long the files may be wrong before that is said, in nanoseconds: certificate and key are two files, which nothing
    /// replaces at once.
    private static let patience: UInt64 = 5_000_000_000

    private struct Failure: Error {
        let words: String
        let began = Clock.now()
        var isSaid = false
    }

    init(_ prepared: Prepared, loop: EventLoop, report: Report) {
        (current, self.loop, self.report) = (prepared, loop, report)
        nextChange = Clock.now() + Self.keysLast
    }

    /// Begins to follow the files. Call before the loop starts, or on it.
    func start() {
        watch?.stop()
        watch = FileWatch(
            [current.settings.certificateFile, current.settings.keyFile], in: loop, failed: report.cannotFollow
        ) { [unowned self] _ in read() }
        // They may have changed after they were read and before they were watched.
        read()
    }

    func stop() {
        watch?.stop()
        watch = nil
        turn += 1
    }

    /// Takes another one, whose files are followed from now on.
    func apply(_ prepared: Prepared) {
        take(prepared)
        start()
    }

    /// A session for a connection that a client has opened; nil: there is no memory for it.
    func session() -> TLSSession? { try? current.context.session() }

    /// Changes the keys of tickets if it is time to.
    func changeKeys(at now: UInt64) {
        guard now >= nextChange else { return }
        current.context.changeTicketKeys()
        nextChange = now + Self.keysLast
    }

    private func take(_ prepared: Prepared) {
        (current, failure) = (prepared, nil)
        turn += 1
        nextChange = Clock.now() + Self.keysLast
    }

    private func read() {
        turn += 1
        let (turn, settings, transport) = (turn, current.settings, current.transport)
        loop.elsewhere {
            Self.read(settings, transport)
        } then: { [self] read in
            if self.turn == turn { take(read) }
        }
    }

    /// - Returns: Nil: nothing has changed.
    private static func read(_ settings: Settings.Listen, _ transport: Tally.Transport) -> Result<Prepared?, Failure> {
        do throws(SystemError) {
            var new = settings
            new.take(
                certificatePEM: try SystemFile.read(settings.certificateFile, limit: longestFile),
                keyPEM: try SystemFile.read(settings.keyFile, limit: longestFile))
            guard new != settings else { return .success(nil) }
            do throws(StartFailure) {
                return .success(try Prepared(new, transport))
            } catch {
                guard case .setting(let key, _, let message, _) = error else { return .success(nil) }
                return .failure(Failure(words: "\(key): \(message)"))
            }
        } catch {
            return .failure(Failure(words: error.description))
        }
    }

    private func take(_ read: Result<Prepared?, Failure>) {
        switch read {
        case .success(nil): failure = nil
        case .success(let new?):
            take(new)
            report.certificateChanged(new.settings, new.transport)
        case .failure(let new):
            var now = new
            if let before = failure, before.words == new.words { now = before }
            if !now.isSaid, new.began - now.began >= Self.patience {
                now.isSaid = true
                report.certificateWrong(now.words, current.transport)
            }
            failure = now
            watch?.lookAgain()
        }
    }
}

extension Report {
    fileprivate func certificateChanged(_ settings: Settings.Listen, _ transport: Tally.Transport) {
        let name = transport.rawValue
        say(
            .notice, .reloaded, about: "\(name) certificate",
            "new \(name.uppercased()) clients are shown the certificate that is in \(settings.certificateFile) now")
    }

    fileprivate func certificateWrong(_ words: String, _ transport: Tally.Transport) {
        let name = transport.rawValue
        say(
            .error, .reloadFailed, about: "\(name) certificate",
            "\(name.uppercased()) clients are shown the certificate of before: \(words)",
            ["reason": words])
    }
}
