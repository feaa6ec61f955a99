import Base
import Configuration
import DNSCache
import Forwarding
import Log
import Logging
import Transport

/// What the log says of the servers that are asked, of the network, and of lookups.
extension Report {
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
