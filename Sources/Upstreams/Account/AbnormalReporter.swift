package import Base
package import Configuration
import Cryptography
import DNSWire
package import Forwarding
import HTTP
package import Log
import Streams
package import Transport

/// Reports abnormal lookups of one account (`enableReport`): to `reportUrl` in batches, one JSON object a line, or to
/// the log. Confined to the forwarder's loop, whose deadline it shares.
///
/// No lookup waits for a report, and reports go only to `reportUrl`. If the host of `reportUrl` is a name, no account
/// is asked for it: a lookup there could fail, be reported, and so cause further lookups without end.
package final class AbnormalReporter {
    private var line: ReportLine
    private let destination: Destination?
    private let loop: EventLoop
    private let finder: ServerFinder
    private let report: Report
    private var queue = ReportQueue()
    private var logRate = LogRate()
    private var exchange: HTTPExchange?
    /// The number of attempts that were given up: the server of such an attempt may be found later, and gets no report.
    private var givenUp = 0

    /// The server of reports, and its verification.
    private struct Destination {
        let url: Settings.Account.ReportURL
        /// Only the server's endpoints are used here.
        let server: Server
        let security: Security
        let egress: Egress
    }

    /// - Parameters:
    ///   - finder: Finds the server of `reportUrl`.
    package init(
        _ settings: Settings.Group, loop: EventLoop, finder: ServerFinder, report: Report
    ) throws(StartFailure) {
        destination = try settings.reportUrl.map { url throws(StartFailure) in
            Destination(
                url: url, server: Self.server(url), security: try Self.security(url, settings.section),
                egress: settings.egress)
        }
        (self.loop, self.finder, self.report) = (loop, finder, report)
        line = ReportLine(settings)
    }

    /// Applies other settings; the destination of reports and the way there stay the same.
    package func apply(_ settings: Settings.Group) { line = ReportLine(settings) }

    /// The server of an account's reports; nil if there are none, or they go to the log.
    package static func server(of settings: Settings.Group) -> Server? {
        settings.enableReport ? settings.reportUrl.map(server) : nil
    }

    private static func server(_ url: Settings.Account.ReportURL) -> Server {
        let host = url.address.map { Server.Host.address($0, nil) } ?? .name(url.host)
        return Server(.https(path: url.path, usesGET: false), host, port: url.port)
    }

    /// Verifies with the system's authorities, since `[tls]` is for the HTTPDNS service, not for this server.
    private static func security(
        _ url: Settings.Account.ReportURL, _ section: String
    ) throws(StartFailure) -> Security {
        guard url.isSecure else { return .plain }
        do throws(TLSError) {
            let policy = TLSPolicy(serverName: url.address == nil ? url.host : nil)
            return .tls(try TLSClientContext(policy), TLSTarget())
        } catch {
            throw .setting(key: section + ".reportUrl", error.description)
        }
    }

    package func add(_ lookup: AbnormalLookup) {
        let now = Tick(nanoseconds: Clock.now())
        let text = line.text(lookup, at: WallClock.unixMilliseconds())
        if destination == nil {
            guard logRate.allows(at: now) else { return }
            report.abnormalLookup(text, unreported: logRate.takeUnreported())
        } else {
            queue.add(Array(text.utf8), at: now)
        }
    }

    var isSending: Bool { queue.isSending }

    package var nextDeadline: Tick? { queue.nextDeadline }

    package func expire(at now: Tick) {
        if queue.isSending {
            guard let deadline = queue.nextDeadline, deadline <= now else { return }
            close()
            settle(.failed, "no answer within \(ReportQueue.attemptTime) ms", at: now)
        } else if let batch = queue.nextBatch(at: now), let destination {
            finder.find(destination.server, now) { [weak self, givenUp] in
                guard let self, givenUp == self.givenUp else { return }
                found($0, of: destination, for: batch)
            }
        }
    }

    package func close() {
        givenUp += 1
        exchange?.close()
        exchange = nil
    }

    private func found(_ endpoints: ServerEndpoints, of destination: Destination, for batch: [UInt8]) {
        let now = Tick(nanoseconds: Clock.now())
        switch endpoints {
        case .known(let endpoints):
            // After a failure the next endpoint is tried.
            let index = queue.failures % endpoints.count
            if queue.failures > 0, index == 0 { finder.allFailed(destination.server, now) }
            post(batch, to: endpoints[index], of: destination, at: now)
        case .unknown(let failure): settle(.failed, failure.detail, at: now)
        }
    }

    private func post(_ batch: [UInt8], to endpoint: Endpoint, of destination: Destination, at now: Tick) {
        let request = HTTPRequestWriter(host: destination.url.authority, keepsConnection: false)
            .post(Array(destination.url.path.utf8), body: ("application/x-ndjson", batch))
        do throws(LinkEnd) {
            exchange = try HTTPExchange(
                request, to: endpoint, by: destination.egress, destination.security, loop: loop
            ) { [weak self] in self?.settle($0, $1, at: endpoint) }
        } catch {
            settle(.failed, error.description, at: now)
        }
    }

    private func settle(_ exchange: HTTPExchange, _ outcome: HTTPExchange.Outcome, at endpoint: Endpoint) {
        guard exchange === self.exchange, let destination else { return }
        self.exchange = nil
        let now = Tick(nanoseconds: Clock.now())
        switch outcome {
        case .failure(let failure): settle(.failed, failure.description, at: now)
        case .success(let response):
            finder.worked(destination.server, endpoint)
            let reason = "HTTP status \(response.status)"
            switch response.status {
            case 200..<300: settle(.accepted, reason, at: now)
            // After "too slow", "too early" or "too often" the same reports may be accepted later (RFC 9110 §15.5.9,
            // RFC 8470, RFC 6585).
            case 408, 425, 429: settle(.failed, reason, at: now)
            case 400..<500: settle(.refused, reason, at: now)
            default: settle(.failed, reason, at: now)
            }
        }
    }

    private func settle(_ end: ReportQueue.BatchEnd, _ reason: String, at now: Tick) {
        guard let url = destination?.url else { return }
        let failuresBefore = queue.failures
        queue.settle(end, at: now)
        if failuresBefore == 0, queue.failures > 0 {
            report.reportsFail(url, reason)
        } else if failuresBefore > 0, queue.failures == 0 {
            report.reportsAreTaken(url, dropped: queue.dropped)
        }
    }
}

/// The limit of abnormal lookups in the log: a service that is down must not fill it.
struct LogRate {
    /// The most lines in each second.
    static let linesPerSecond = 10

    private var second: UInt32?
    private var lines = 0
    private var unreported: UInt64 = 0

    mutating func allows(at now: Tick) -> Bool {
        if second != now.seconds { (second, lines) = (now.seconds, 0) }
        lines += 1
        if lines > Self.linesPerSecond { unreported += 1 }
        return lines <= Self.linesPerSecond
    }

    /// Returns the number of suppressed lines since the last call.
    mutating func takeUnreported() -> UInt64 {
        defer { unreported = 0 }
        return unreported
    }
}

extension Report {
    /// `enableReport` without `reportUrl`: the whole report, names included, as the operator has configured.
    func abnormalLookup(_ json: String, unreported: UInt64) {
        if unreported > 0 { log.info("\(unreported) more abnormal lookups") }
        log.info("abnormal lookup \(json)")
    }

    func reportsFail(_ url: Settings.Account.ReportURL, _ reason: String) {
        log.warning(
            "\(url.authority) does not take reports of abnormal lookups, names are looked up all the same: \(reason)")
    }

    func reportsAreTaken(_ url: Settings.Account.ReportURL, dropped: UInt64) {
        log.notice("\(url.authority) takes reports of abnormal lookups again; \(dropped) were lost since the start")
    }
}
