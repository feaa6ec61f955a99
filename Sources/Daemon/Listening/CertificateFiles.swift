import Base
import Configuration
import Control
import Counters
import Cryptography
import DNSWire
import Log
import Streams
import Transport

/// Follows the files of the certificate for clients over TLS and HTTPS, and of its key.
///
/// `@unchecked Sendable`: confined to one loop, except the reading, which has values of its own.
final class CertificateFiles: @unchecked Sendable {
    /// A certificate for the servers, made from settings; made on any thread.
    struct Prepared: @unchecked Sendable {
        // Unchecked: made on one thread; each context is used on the loop of its server.
        /// For each transport that is encrypted.
        let contexts: [Tally.Transport: TLSServerContext]
        let shown: ShownCertificate
        /// The settings without the contents of the files, of which changes are still detected.
        fileprivate let settings: Settings.Listen
        fileprivate let plain: [Endpoint]

        /// Nil if there is no certificate.
        /// - Parameter plain: The listeners in the clear, where clients discover the servers over TLS and HTTPS.
        init?(_ settings: Settings.Listen, plain: [Endpoint]) throws(StartFailure) {
            guard let (certificate, key) = settings.certificate else { return nil }
            func context(_ protocols: [String]) throws(StartFailure) -> TLSServerContext {
                do throws(TLSError) {
                    return try TLSServerContext(
                        certificatePEM: certificate, keyPEM: key, protocols: protocols, refusesOthers: true)
                } catch {
                    let name = error == .certificateUnreadable ? "certificateFile" : "keyFile"
                    throw .setting(key: "listen.\(name)", error.description)
                }
            }
            let tls = try context([ApplicationProtocol.dnsOverTLS])
            contexts = [.tls: tls, .https: try context(ServerHTTP.protocols)]
            shown = ShownCertificate(tls, settings, plain: plain)
            self.plain = plain
            var settings = settings
            settings.forgetFiles()
            self.settings = settings
        }
    }

    /// The certificate for clients; nil if TLS and HTTPS are not served.
    private(set) var current: Prepared?
    /// Passes another certificate to the servers.
    private let show: (Prepared) -> Void
    private let loop: EventLoop
    private let report: Report
    private lazy var watch = FileWatch(in: loop, failed: report.cannotFollow) { [unowned self] _ in read() }
    /// The error of the files at the last reading; nil if there is none.
    private var failure: Failure?
    /// Increases when a reading begins or becomes needless: the result of an earlier reading is ignored.
    private var turn = 0

    /// The longest file, in octets.
    private static let longestFile = 1 << 20
    /// How long the files may be wrong before that is logged, in nanoseconds: certificate and key are two files, which
    /// are not replaced at once.
    private static let patience: UInt64 = 5_000_000_000

    /// The error of the files, as in the log; nil if there is none.
    var trouble: String? {
        failure.flatMap { failure in
            guard failure.isReported else { return nil }
            return Report.formerCertificate(failure.words) + (failure.isOfContents ? ". A restart would fail" : "")
        }
    }

    private struct Failure: Error {
        let words: String
        /// Whether the files could be read, and are wrong.
        var isOfContents = false
        let began = Clock.now()
        var isReported = false
    }

    init(loop: EventLoop, report: Report, show: @escaping (Prepared) -> Void) {
        (self.loop, self.report, self.show) = (loop, report, show)
    }

    /// Takes the certificate of settings, and follows its files. Call on the loop, or before it starts.
    /// - Returns: Whether the servers have another one: with a new context, clients' sessions could not be resumed.
    @discardableResult
    func follow(_ prepared: Prepared) -> Bool {
        let isAnother = !(current?.settings.hasCertificate(of: prepared.settings) ?? false)
        (current, failure) = (prepared, nil)
        report.certificate(prepared.shown)
        watch.follow([prepared.settings.certificateFile.path, prepared.settings.keyFile.path])
        // The files may have changed after they were read and before they were watched.
        read()
        return isAnother
    }

    func stop() {
        watch.follow([])
        turn += 1
    }

    private func read() {
        guard let current else { return }
        turn += 1
        let turn = turn
        loop.elsewhere {
            Self.read(after: current)
        } then: { [self] read in
            if self.turn == turn { take(read) }
        }
    }

    /// - Returns: Nil if nothing has changed.
    private static func read(after known: Prepared) -> Result<Prepared?, Failure> {
        do throws(SystemError) {
            var new = known.settings
            new.take(
                certificatePEM: try SystemFile.read(new.certificateFile.path, limit: longestFile),
                keyPEM: try SystemFile.read(new.keyFile.path, limit: longestFile))
            guard new != known.settings else { return .success(nil) }
            do throws(StartFailure) {
                return .success(try Prepared(new, plain: known.plain))
            } catch {
                guard case .setting(let key, _, let message, _) = error else { return .success(nil) }
                return .failure(Failure(words: "\(key): \(message)", isOfContents: true))
            }
        } catch {
            return .failure(Failure(words: error.description))
        }
    }

    private func take(_ read: Result<Prepared?, Failure>) {
        switch read {
        case .success(nil): failure = nil
        case .success(let new?):
            (current, failure) = (new, nil)
            show(new)
            report.certificateChanged(new.settings)
            report.certificate(new.shown)
        case .failure(let new):
            var now = new
            if let before = failure, before.words == new.words { now = before }
            if !now.isReported, new.began - now.began >= Self.patience {
                now.isReported = true
                report.certificateWrong(now.words)
            }
            failure = now
            watch.lookAgain()
        }
    }
}

extension ShownCertificate {
    /// - Parameter plain: The listeners in the clear.
    fileprivate init(_ context: TLSServerContext, _ settings: Settings.Listen, plain: [Endpoint]) {
        let (begins, ends) = context.validity
        let name = settings.name.map { $0.description.hasSuffix(".") ? String($0.description.dropLast()) : "\($0)" }
        // Clients that discover the daemon compare the address at which they have asked (RFC 9462 §4.2).
        let discovered = name == nil ? [] : plain.map(\.address).filter { !$0.isLoopback && !$0.isUnspecified }
        let lacked = discovered.filter { !context.isFor($0) }.eachOnce
        self.init(
            file: settings.certificateFile.path, begins: begins, ends: ends,
            lackedName: name.flatMap { context.isFor(name: $0) ? nil : $0 }, lackedAddresses: lacked)
    }
}

extension Report {
    private static let ofCertificate = "certificate of clients"

    /// Logs the errors of the certificate for clients.
    fileprivate func certificate(_ shown: ShownCertificate) {
        for words in shown.remarks(at: WallClock.unixSeconds()) { log.warning("\(words)") }
    }

    fileprivate func certificateChanged(_ settings: Settings.Listen) {
        say(
            .notice, .reloaded, about: Self.ofCertificate,
            "new TLS clients are shown the certificate that is in \(settings.certificateFile.path) now")
    }

    fileprivate static func formerCertificate(_ words: String) -> String {
        "TLS clients are shown the certificate of before: \(words)"
    }

    fileprivate func certificateWrong(_ words: String) {
        say(.error, .reloadFailed, about: Self.ofCertificate, Self.formerCertificate(words), ["reason": words])
    }
}
