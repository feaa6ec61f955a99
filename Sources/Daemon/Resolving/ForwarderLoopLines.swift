import Base
import Configuration
import DNSCache
import DNSWire
import Forwarding
import Log
import Logging
import Transport
import Upstreams

/// Lines of the log about servers, the network and lookups.
extension Report {
    /// - Parameter group: gives the state of a group.
    func event(_ event: Event, _ group: (GroupID) -> GroupOverview) {
        switch event {
        case .failing(let id, let server, let failure):
            let group = group(id)
            let name = Self.name(group, server)
            say(
                .warning, failure.event(group), about: name, Self.fails(name, failure),
                ["group": group.name, "server": "\(server)", "reason": failure.detail])
        case .answersAgain(let id, let server):
            let group = group(id)
            let name = Self.name(group, server)
            say(
                .notice, group.carriesAddresses ? .serviceAnswersAgain : .resolverAnswersAgain, about: name,
                "\(name) answers again", ["group": group.name, "server": "\(server)"])
        case .switched(let id, let former, let next):
            let group = group(id)
            say(
                .warning, .serviceGivenUp, about: group.title,
                "\(Self.name(group, former)) is given up: \(Self.name(group, next)) is asked in its place",
                ["group": group.name, "server": "\(former)", "next": "\(next)"])
        case .returned(let id, let former, let next):
            let group = group(id)
            say(
                .notice, .serviceReturned, about: group.title,
                "back from \(Self.name(group, former)) to \(Self.name(group, next))",
                ["group": group.name, "server": "\(former)", "next": "\(next)"])
        case .planExceeded(let id): planExceeded(group(id))
        case .noRecordBudgetSpent(let id): noRecordBudgetSpent(group(id))
        case .privateRefused:
            say(
                .notice, .privateRefused, about: "private addresses",
                "private addresses are taken out of answers (domains.privateAddresses); names that may have them belong in domains.privateAllowed"
            )
        case .refusing(let refusal):
            say(
                .warning, .questionsRefused, about: "limits",
                "questions are refused: \(refusal.text); their clients get SERVFAIL, or what is stale; httpdnsd watch shows who asks",
                ["reason": refusal.text])
        case .sharedCacheOff, .sharedCacheOn, .sharedCacheTakesNothing, .sharedCacheTakesAgain, .sharedCacheClock:
            sharedCache(event)
        }
    }

    private func planExceeded(_ group: GroupOverview) {
        let text =
            group.id == .httpdns
            ? "httpdns.queriesPerSecond is reached: names beyond it go to the local resolver, or wait with httpOnly"
            : "upstreams.\(group.name).queriesPerSecond is reached: names beyond it go to the next group, or wait"
        say(.warning, .planExceeded, about: "plan of \(group.name)", text, ["group": group.name])
    }

    private func noRecordBudgetSpent(_ group: GroupOverview) {
        let head = "\(group.title) is asked for names without a record below one domain as if somebody made them up"
        let text =
            group.id == .httpdns
            ? "\(head): new ones below it go to the local resolver, or are refused with httpOnly; httpdnsd watch shows who asks"
            : "\(head): new ones below it go to the next group, or are refused; httpdnsd watch shows who asks"
        say(
            .warning, .noRecordBudgetSpent, about: "names without a record at \(group.name)", text,
            ["group": group.name])
    }

    /// The name of a server in a line.
    private static func name(_ group: GroupOverview, _ server: Server) -> String { "\(group.title) \(server)" }

    static func fails(_ who: String, _ failure: Failure) -> String { "\(who) fails: \(failure.detail)" }

    func networkChanged() {
        say(
            .info, .networkChanged, about: "network changes",
            "addresses or routes have changed: connections are made anew")
    }

    func network(isGone: Bool) {
        if isGone {
            say(
                .warning, .networkGone, about: "network",
                "the network is gone, no route leads out of this machine: what is cached is answered, and nothing else")
        } else {
            say(.notice, .networkBack, about: "network", "the network is back")
        }
    }

    /// An account's `debug`: logs each lookup with its names.
    func lookup(_ outcome: Outcome, at group: String) {
        let prefix = group == Settings.Group.httpdnsName ? "" : "\(group): "
        switch outcome {
        case .addresses(let results):
            for result in results {
                log.info("\(prefix)lookup \(result.name): \(result.ipv4.text) \(result.ipv6.text)")
            }
        case .failed(let failure): log.info("\(prefix)lookup failed: \(failure.detail)")
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
    /// Failures that an operator has to repair have another id than those that pass by themselves.
    fileprivate func event(_ group: GroupOverview) -> LogEventID {
        switch kind {
        case .untrusted: .certificateRefused
        case _ where !group.carriesAddresses: .resolverFails
        case .unauthorized: .accountRefused
        case .badAnswer where statusCode == 403: .accountRefused
        case .timedOut, .unreachable, .tooOften, .denied, .badAnswer: .serviceFails
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

extension ForwarderLoop {
    /// Called on the loop at the end of a turn in which a query may have failed, or while a group is out of use.
    func lookForOutages() {
        guard outages.isDue(forwarder.failedQueries) else {
            isOutageDue = false
            return
        }
        let groups = forwarder.groupOverviews
        for group in outages.update(groups) { report.outage(of: group, among: groups, out: outages.out) }
    }
}
