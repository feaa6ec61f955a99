import Base
import Configuration
import DNSCache
import Forwarding
import Logging
import Transport

/// The daemon's log lines: each is a function, said when a state changes and never once a query. No query names, no
/// client addresses, no secrets.
struct Report: Sendable {
    let log: Logger
    private let book: LogBook

    init(log: Logger) {
        self.log = log
        book = LogBook(log)
    }

    /// A line about something that may change back and forth.
    /// - Parameters:
    ///   - subject: What changes: lines about the same are counted when there are too many. Nil for what an operator
    ///     has done, who waits to be told.
    ///   - fields: For programs; names in camelCase.
    func say(
        _ level: Logger.Level, _ occasion: Occasion, about subject: String? = nil, _ text: String,
        _ fields: [String: String] = [:]
    ) {
        book.say(LogLine(level: level, text: text, occasion: occasion, fields: fields), about: subject)
    }

    func listening(on endpoints: [Endpoint]) {
        let list = endpoints.map(\.description).joined(separator: ", ")
        say(.notice, .started, "listening on \(list)", ["addresses": list])
    }

    func service(_ settings: Settings.HTTPDNS?) {
        guard let settings else {
            return log.notice("\(Self.noService)")
        }
        let servers = settings.dnsIp.map(\.description).joined(separator: ", ")
        log.notice("HTTPDNS by \(settings.credential.name) at \(servers)")
        if let limits = Self.limits(of: settings.credential) { log.warning("\(limits)") }
    }

    /// What whoever is on the path can do all the same; nil over https.
    static func limits(of credential: Settings.HTTPDNS.Credential) -> String? {
        switch credential {
        case .https: nil
        case .aes:
            "encryptType \"aes\" hides names and proves nothing: whoever is on the path can repeat old answers, write those "
                + "of short names, and give one name's for another that differs in its first 16 characters alone; "
                + "\"https\" proves"
        case .des:
            "encryptType \"des\" hides names from a passer-by only and proves nothing: whoever is on the path can repeat old "
                + "answers, and put new ones together from pieces of them; \"https\" proves"
        }
    }

    func localResolvers(_ servers: [Endpoint], isNeeded: Bool) {
        if !servers.isEmpty {
            log.notice("local resolver \(servers.map(\.description).joined(separator: ", "))")
        } else if isNeeded {
            say(.warning, .noLocalResolver, about: "local resolvers", Self.noLocalResolver)
        }
    }

    func loop(_ server: Endpoint, in source: String) {
        log.warning("\(Self.loop(server, source))")
    }

    static let noService = "no [httpdns] section: the local resolver answers everything"

    static let noLocalResolver = "no local resolver found: what HTTPDNS does not answer gets SERVFAIL"

    static func loop(_ server: Endpoint, _ source: String) -> String {
        "\(source) names \(server), which is this daemon itself or asks it: left out, it would ask itself for ever"
    }

    func cannotRead(_ path: String, _ error: SystemError) {
        log.warning("\(path) cannot be read: \(error)")
    }

    func systemFailed(_ error: SystemError) {
        say(.error, .systemFailed, about: "\(error.call) \(error.subject)", "\(error)")
    }

    func event(_ event: Event, services: [Endpoint], resolvers: [Endpoint]) {
        func service(_ place: Int) -> Endpoint? { place < services.count ? services[place] : nil }
        func resolver(_ place: Int) -> Endpoint? { place < resolvers.count ? resolvers[place] : nil }
        func text(_ server: Endpoint?) -> String { server.map(\.description) ?? "" }
        switch event {
        case .serviceFailing(let server, let failure):
            let name = Self.service(service(server))
            say(
                .warning, failure.occasion, about: name, Self.fails(name, failure),
                ["server": text(service(server)), "reason": failure.detail])
        case .serviceAnswersAgain(let server):
            let name = Self.service(service(server))
            say(
                .notice, .serviceAnswersAgain, about: name, "\(name) answers again",
                ["server": text(service(server))])
        case .serviceSwitched(let from, let to):
            let (former, next) = (service(from), service(to))
            say(
                .warning, .serviceGivenUp, about: "HTTPDNS",
                "\(Self.service(former)) is given up for \(Self.service(next))",
                ["server": text(former), "next": text(next)])
        case .serviceReturned(let from):
            let (former, next) = (service(from), service(0))
            say(
                .notice, .serviceReturned, about: "HTTPDNS",
                "back from \(Self.service(former)) to \(Self.service(next))",
                ["server": text(former), "next": text(next)])
        case .resolverFailing(let server, let failure):
            let name = Self.resolver(resolver(server))
            say(
                .warning, .resolverFails, about: name, Self.fails(name, failure),
                ["server": text(resolver(server)), "reason": failure.detail])
        case .resolverAnswersAgain(let server):
            let name = Self.resolver(resolver(server))
            say(
                .notice, .resolverAnswersAgain, about: name, "\(name) answers again",
                ["server": text(resolver(server))])
        case .planExceeded:
            say(
                .warning, .planExceeded, about: "plan",
                "httpdns.queriesPerSecond is reached: names beyond it go to the local resolver, or wait with httpOnly")
        case .noRecordBudgetSpent:
            say(
                .warning, .noRecordBudgetSpent, about: "names without a record",
                "HTTPDNS is asked for names without a record below one domain as if somebody made them up: new ones below it go to the local resolver, or are refused with httpOnly"
            )
        case .privateRefused:
            say(
                .notice, .privateRefused, about: "private addresses",
                "private addresses are taken out of answers (domains.privateAddresses)")
        case .refusing(let refusal):
            say(
                .warning, .questionsRefused, about: "limits", "questions are refused: \(refusal.text)",
                ["reason": refusal.text])
        }
    }

    /// - Parameter isLost: no server of HTTPDNS can be used; false: one can again.
    func service(isLost: Bool, httpOnly: Bool) {
        let instead = httpOnly ? "what is known is answered, and nothing else" : "the local resolver answers"
        if isLost {
            say(.warning, .serviceLost, about: "HTTPDNS as a whole", "HTTPDNS is out of use: \(instead)")
        } else {
            say(.notice, .serviceBack, about: "HTTPDNS as a whole", "HTTPDNS is in use again")
        }
    }

    /// Whom a line is about; nil: somebody who is no longer in the list.
    static func service(_ server: Endpoint?) -> String { server.map { "HTTPDNS \($0)" } ?? "a former HTTPDNS server" }
    static func resolver(_ server: Endpoint?) -> String {
        server.map { "local resolver \($0)" } ?? "a former local resolver"
    }
    static func fails(_ who: String, _ failure: Failure) -> String { "\(who) fails: \(failure.detail)" }

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
        say(
            .info, .networkChanged, about: "network changes",
            "addresses or routes have changed: connections are made anew")
    }

    func network(isGone: Bool) {
        if isGone {
            say(.warning, .networkGone, about: "network", "the network is gone: no route leads out of this machine")
        } else {
            say(.notice, .networkBack, about: "network", "the network is back")
        }
    }

    func proxy(_ found: ProxyFound) {
        log.notice("\(Self.proxy(found))")
    }

    static func proxy(_ found: ProxyFound) -> String {
        found.isHeeded
            ? "\(found.variable) is set, and httpdns.proxy is \"bypass\": the local resolver answers everything, HTTPDNS is not asked"
            : "\(found.variable) is set, but httpOnly leaves nobody else to ask: HTTPDNS is asked all the same"
    }

    func cacheFile(_ event: CacheFile.Event) {
        guard event.isFailure else { return log.notice("\(event)") }
        say(.warning, .cacheFileFails, about: "cache.file", "\(event)")
    }

    func counters(
        _ counters: Counters, refusedForRoom: UInt64, _ mismatches: MismatchCounters, _ clients: StreamCounters,
        _ cache: DNSCache.Statistics
    ) {
        let refused = counters.refusedFlights + counters.refusedWaiting + refusedForRoom
        log.notice(
            """
            cache \(cache.entries) answers, \(cache.bytes) bytes, \(cache.hits) hits, \(cache.misses) misses, \
            \(cache.evictions) evicted; \(counters.flights) questions looked up, \(counters.joined) joined one under way, \
            \(refused) refused; HTTPDNS \(counters.serviceRequests) requests for \(counters.serviceNames) names, \
            \(counters.serviceFailures) failed; local resolver \(counters.resolverQueries) queries, \
            \(counters.resolverRepeats) repeated, \(counters.resolverFailures) failed, \(mismatches.all) messages that were no \
            answer ignored (\(mismatches.strangers) from elsewhere, \(mismatches.otherCase) in another case); \(counters.fallbacks) fell back, \(counters.servedStale) stale, \
            \(counters.overdue) out of time; \(clients.accepted) TCP clients, \
            \(clients.refused + clients.refusedOfOneSource) refused, \(clients.closedForRoom) closed for room, \
            \(clients.closedIdle) idle, \(clients.cutOff) cut off
            """)
    }

    func reloaded(_ reloading: Settings.Reloading) {
        if reloading.applied.isEmpty {
            say(.notice, .reloaded, "the configuration was read again, nothing has changed")
        } else {
            let keys = reloading.applied.joined(separator: ", ")
            say(
                .notice, .reloaded, "the configuration was read again: \(keys)",
                ["keys": keys])
        }
        let rest = reloading.needingRestart
        if !rest.isEmpty {
            log.warning("\(rest.joined(separator: ", ")) \(rest.count == 1 ? "needs" : "need") a restart")
        }
    }

    func reloadFailed(_ line: String) {
        say(.error, .reloadFailed, "the configuration stays as it was: \(line)", ["reason": line])
    }

    func stopping(_ reason: String) {
        book.close()
        say(.notice, .stopping, "stopping: \(reason)", ["reason": reason])
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

extension Failure {
    /// What an operator has to mend is told apart from what passes.
    fileprivate var occasion: Occasion {
        switch kind {
        case .untrusted: .certificateRefused
        case .unauthorized: .accountRefused
        case .badAnswer where statusCode == 403: .accountRefused
        case .timedOut, .unreachable, .tooOften, .badAnswer: .serviceFails
        }
    }
}

extension Refusal {
    fileprivate var text: String {
        switch self {
        case .tooManyFlights: "too many are under way"
        case .tooManyWaiting: "too many clients wait"
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
