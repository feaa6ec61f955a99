package import Base
package import Configuration
import Forwarding
import HTTP
import HTTPDNS
package import Log
import Streams
package import Transport

/// Refreshes the list of service addresses that the service's start-up servers (`confIp`) give. Confined to the
/// forwarder's loop, whose deadline it shares.
///
/// `dnsIp` stays in use until the first answer; then it comes after the listed servers, which may not work here. The
/// list has no ports: an address is asked at the port of the server that gave the list, and by the same scheme.
package final class ServiceList {
    /// Called with the servers to ask from now on, in order, when they have changed; never with none.
    package var changed: ([Endpoint]) -> Void = { _ in }

    /// The account in messages.
    private let title: String
    private let startUpServers: [Endpoint]
    private let configured: [Endpoint]
    private let access: ServiceAccess
    private let loop: EventLoop
    private let report: Report
    private var schedule: ServiceListSchedule
    private var exchange: HTTPExchange?
    private var inUse: [Endpoint]
    private var lastFailure: Failure?
    private var isFailing = false

    /// No server is asked before the first ``expire(at:)``.
    /// - Parameters:
    ///   - access: The access to the account, which may be the access of the lookups on the same loop.
    package init(_ settings: Settings.Group, access: ServiceAccess, loop: EventLoop, report: Report, at now: Tick) {
        title = settings.title
        startUpServers = settings.confIp
        configured = settings.dnsIp
        inUse = settings.dnsIp
        schedule = ServiceListSchedule(servers: settings.confIp.count, at: now)
        (self.access, self.loop, self.report) = (access, loop, report)
    }

    package var nextDeadline: Tick { schedule.nextDeadline }

    package func expire(at now: Tick) {
        schedule.expire(at: now)
        perform(at: now)
    }

    /// This machine's addresses or routes have changed, or each server of the list in use has failed.
    package func askSoon(at now: Tick) { schedule.askSoon(at: now) }

    package func close() {
        exchange?.close()
        exchange = nil
    }

    private func perform(at now: Tick) {
        // An attempt that fails at once adds further actions.
        while !schedule.actions.isEmpty {
            switch schedule.actions.removeFirst() {
            case .ask(let index): ask(startUpServers[index], at: now)
            case .cancel:
                lastFailure = Failure(.timedOut, "no answer within \(ServiceListSchedule.attemptTime) ms")
                close()
            case .use(let addresses, let index): use(addresses, from: startUpServers[index])
            case .giveUp:
                if !isFailing { report.serviceListFails(title, startUpServers, lastFailure, inUse: inUse) }
                isFailing = true
            }
        }
    }

    private func ask(_ server: Endpoint, at now: Tick) {
        do {
            let request = access.writer(to: server, keepsConnection: false).get(
                try access.account.listTarget(at: access.clock.time(at: now, wall: WallClock.unixSeconds())))
            exchange = try HTTPExchange(request, to: server, by: access.egress, access.security, loop: loop) {
                [weak self] in
                self?.settle($0, $1)
            }
        } catch {
            lastFailure = (error as? LinkEnd).map { Failure($0) } ?? Failure(.badAnswer, "\(error)")
            schedule.failed(at: now)
        }
    }

    private func settle(_ exchange: HTTPExchange, _ outcome: HTTPExchange.Outcome) {
        guard exchange === self.exchange else { return }
        self.exchange = nil
        let now = Tick(nanoseconds: Clock.now())
        switch outcome {
        case .failure(let failure):
            lastFailure = Failure(failure)
            schedule.failed(at: now)
        case .success(let response):
            do throws(ServiceFailure) {
                schedule.answered(try access.account.parseConfiguration(response), at: now)
            } catch {
                // The second attempt follows at once, by the corrected clock.
                access.correctClock(after: error, response, at: now)
                lastFailure = Failure(.badAnswer, error.words(access.keys))
                schedule.failed(at: now)
            }
        }
        perform(at: now)
    }

    private func use(_ addresses: [IPAddress], from server: Endpoint) {
        if isFailing { report.serviceListIsBack(title, server) }
        isFailing = false
        lastFailure = nil
        var listed = addresses.map { Endpoint($0, port: server.port) }
        for server in configured where !listed.contains(server) { listed.append(server) }
        guard listed != inUse else { return }
        inUse = listed
        report.serviceListChanged(title, listed, isConfigured: addresses.isEmpty)
        changed(listed)
    }
}

extension Report {
    func serviceListChanged(_ account: String, _ servers: [Endpoint], isConfigured: Bool) {
        let list = servers.map(\.description).joined(separator: ", ")
        log.notice(
            "\(account) is asked at \(list), \(isConfigured ? "as the service lists no address" : "by its own list, then by dnsIp")"
        )
    }

    func serviceListFails(
        _ account: String, _ startUpServers: [Endpoint], _ failure: Failure?, inUse: [Endpoint]
    ) {
        let asked = startUpServers.map(\.description).joined(separator: ", ")
        let servers = inUse.map(\.description).joined(separator: ", ")
        let reason = failure?.detail ?? "no answer"
        say(
            .warning, .serviceListFails, about: "confIp of \(account)",
            "no list of service addresses from \(asked): \(reason); \(account) is still asked at \(servers)",
            ["reason": reason])
    }

    func serviceListIsBack(_ account: String, _ server: Endpoint) {
        say(
            .notice, .serviceListBack, about: "confIp of \(account)",
            "\(server) gives the list of service addresses again",
            ["server": "\(server)"])
    }
}
