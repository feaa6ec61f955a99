import Base
import Configuration
import DNSCache
import Forwarding
import Log
import Logging
import Transport

/// What the log says of the servers that are asked, of the network, and of lookups.
extension Report {
    func event(_ event: Event) {
        switch event {
        case .failing(let group, let server, let failure):
            let name = Self.name(group, server)
            say(
                .warning, group == .httpdns ? failure.occasion : .resolverFails, about: name, Self.fails(name, failure),
                ["server": "\(server)", "reason": failure.detail])
        case .answersAgain(let group, let server):
            let name = Self.name(group, server)
            say(
                .notice, group == .httpdns ? .serviceAnswersAgain : .resolverAnswersAgain, about: name,
                "\(name) answers again", ["server": "\(server)"])
        case .switched(let group, let former, let next):
            say(
                .warning, .serviceGivenUp, about: "HTTPDNS",
                "\(Self.name(group, former)) is given up for \(Self.name(group, next))",
                ["server": "\(former)", "next": "\(next)"])
        case .returned(let group, let former, let next):
            say(
                .notice, .serviceReturned, about: "HTTPDNS",
                "back from \(Self.name(group, former)) to \(Self.name(group, next))",
                ["server": "\(former)", "next": "\(next)"])
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

    /// Whom a line is about.
    static func name(_ group: GroupID, _ server: Server) -> String {
        group == .httpdns ? "HTTPDNS \(server)" : "local resolver \(server)"
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
    func lookup(_ outcome: Outcome) {
        switch outcome {
        case .addresses(let results):
            for result in results {
                log.info("lookup \(result.name): \(result.ipv4.text) \(result.ipv6.text)")
            }
        case .failed(let failure): log.info("lookup failed: \(failure.detail)")
        case .answer: break
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
