import Addresses
import Configuration
import DNSCache
import Forwarding
import Logging
import Transport

/// The daemon's log lines: each is a function, said when a state changes and never once a query. No query names, no
/// client addresses, no secrets.
struct Report: Sendable {
    let log: Logger

    func listening(on endpoints: [Endpoint]) {
        log.notice("listening on \(endpoints.map(\.description).joined(separator: ", "))")
    }

    func service(_ settings: Settings.HTTPDNS?) {
        guard let settings else {
            return log.notice("no [httpdns] section: the local resolver answers everything")
        }
        let servers = settings.dnsIp.map(\.description).joined(separator: ", ")
        log.notice("HTTPDNS by \(settings.credential.name) at \(servers)")
        if case .des = settings.credential {
            log.warning(
                "encryptType \"des\" hides names from a passer-by only: use \"https\" or \"aes\" where the account has them"
            )
        }
    }

    func localResolvers(_ servers: [Endpoint], isNeeded: Bool) {
        if !servers.isEmpty {
            log.notice("local resolver \(servers.map(\.description).joined(separator: ", "))")
        } else if isNeeded {
            log.warning("\(Self.noLocalResolver)")
        }
    }

    func loop(_ server: Endpoint, in source: String) {
        log.warning("\(Self.loop(server, source))")
    }

    static let noLocalResolver = "no local resolver found: what HTTPDNS does not answer gets SERVFAIL"

    static func loop(_ server: Endpoint, _ source: String) -> String {
        "\(source) names \(server), which is this daemon itself: left out, it would ask itself for ever"
    }

    func cannotRead(_ path: String, _ error: SystemError) {
        log.warning("\(path) cannot be read: \(error)")
    }

    func systemFailed(_ error: SystemError) {
        log.error("\(error)")
    }

    func event(_ event: Event, services: [Endpoint], resolvers: [Endpoint]) {
        func service(_ place: Int) -> String {
            place < services.count ? "HTTPDNS \(services[place])" : "a former HTTPDNS server"
        }
        func resolver(_ place: Int) -> String {
            place < resolvers.count ? "local resolver \(resolvers[place])" : "a former local resolver"
        }
        switch event {
        case .serviceFailing(let server, let failure):
            log.warning("\(service(server)) fails: \(failure.detail)")
        case .serviceAnswersAgain(let server): log.notice("\(service(server)) answers again")
        case .serviceSwitched(let from, let to): log.warning("\(service(from)) is given up for \(service(to))")
        case .serviceReturned(let from): log.notice("back from \(service(from)) to \(service(0))")
        case .resolverFailing(let server, let failure):
            log.warning("\(resolver(server)) fails: \(failure.detail)")
        case .resolverAnswersAgain(let server): log.notice("\(resolver(server)) answers again")
        case .planExceeded:
            log.warning(
                "httpdns.queriesPerSecond is reached: names beyond it go to the local resolver, or wait with httpOnly")
        case .refusing(let refusal): log.warning("questions are refused: \(refusal.text)")
        }
    }

    func noControlSocket(_ error: SystemError) {
        log.warning("no control socket, so no status, cache and flush: \(error)")
    }

    func metrics(on endpoint: Endpoint) {
        log.notice("metrics and status page on http://\(endpoint)/")
    }

    func flushed(_ answers: Int) {
        log.notice("flushed: \(answers) answers forgotten")
    }

    func networkChanged() {
        log.info("addresses or routes have changed: connections are made anew")
    }

    func proxyBypass(_ variable: String) {
        log.notice(
            "\(variable) is set, and httpdns.proxy is \"bypass\": the local resolver answers everything, HTTPDNS is not asked"
        )
    }

    func proxyWithHTTPOnly(_ variable: String) {
        log.notice("\(variable) is set, but httpOnly leaves nobody else to ask: HTTPDNS is asked all the same")
    }

    func cacheFile(_ event: CacheFile.Event) {
        log.log(level: event.isFailure ? .warning : .notice, "\(event)")
    }

    func counters(_ counters: Counters, refusedForRoom: UInt64, _ cache: DNSCache.Statistics) {
        log.notice(
            """
            cache \(cache.entries) answers, \(cache.bytes) bytes, \(cache.hits) hits, \(cache.misses) misses, \
            \(cache.evictions) evicted; \(counters.flights) questions looked up, \(counters.joined) joined one under way, \
            \(counters.refused + refusedForRoom) refused; HTTPDNS \(counters.serviceRequests) requests for \(counters.serviceNames) names, \
            \(counters.serviceFailures) failed; local resolver \(counters.resolverQueries) queries, \
            \(counters.resolverFailures) failed; \(counters.fallbacks) fell back, \(counters.servedStale) stale, \
            \(counters.overdue) out of time
            """)
    }

    func stopping(_ reason: String) {
        log.notice("stopping: \(reason)")
    }

    /// `httpdns.debug`: each lookup, names and all.
    func lookup(_ outcome: ServiceOutcome) {
        switch outcome {
        case .answered(let results):
            for result in results {
                log.info("lookup \(result.name): \(result.ipv4.text) \(result.ipv6.text)")
            }
        case .failed(let failure): log.info("lookup failed: \(failure.detail)")
        }
    }
}

extension FamilyAddresses {
    fileprivate var text: String {
        switch self {
        case .addresses(let addresses, let ttl): "\(addresses.map(\.description).joined(separator: ";")),\(ttl)"
        case .noRecord: "0"
        case .notAsked: "-"
        }
    }
}

extension Refusal {
    fileprivate var text: String {
        switch self {
        case .tooManyFlights: "too many are under way"
        case .tooManyWaiting: "too many clients wait for one name"
        }
    }
}

extension Settings.HTTPDNS.Credential {
    var name: String {
        switch self {
        case .https: "https"
        case .aes: "aes"
        case .des: "des"
        }
    }
}
