import Base
import Configuration
import Control
import DNSWire
import Forwarding
import Log

/// Log lines for the forwarder's events about servers, limits and the store.
extension Report {
    /// - Parameters:
    ///   - sessions: The identifiers by which accounts' providers find their requests: see
    ///     ``ServiceAccount/sessionID``.
    ///   - group: Returns the state of a group.
    func event(_ event: Event, sessions: [GroupID: String] = [:], _ group: (GroupID) -> GroupOverview) {
        switch event {
        case .failing(let id, let server, let failure):
            let group = group(id)
            let name = Self.name(group, server)
            var (line, fields) = (
                Self.fails(name, failure), ["group": group.name, "server": "\(server)", "reason": failure.detail]
            )
            if let session = sessions[id] {
                line += " (sid \(session))"
                fields["sid"] = session
            }
            say(.warning, failure.event(group), about: name, line, fields)
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
        case .planExceeded(let id):
            let (group, next) = (group(id), next(group(id), group))
            say(
                .warning, .planExceeded, about: "plan of \(group.name)",
                "\(group.section).queriesPerSecond is reached: names beyond it \(next.map { "go to \($0)" } ?? "wait")",
                ["group": group.name])
        case .noRecordBudgetSpent(let id):
            let (group, next) = (group(id), next(group(id), group))
            say(
                .warning, .noRecordBudgetSpent, about: "names without a record at \(group.name)",
                "\(group.title) is asked for names without a record below one domain as if an attacker made them up: "
                    + "\(next.map { "new ones below it go to \($0)" } ?? "new ones below it are refused"); "
                    + "httpdnsd watch shows who asks",
                ["group": group.name])
        case .leftToValidators(let account, let asked):
            let (group, asked) = (group(account), group(asked))
            say(
                .notice, .leftToValidators, about: "clients that validate at \(group.name)",
                "clients that validate (DO without CD) get names of \(group.title) from \(asked.title), since HTTPDNS has no signatures; \(group.section).signed = \"addresses\" gives them its addresses, which they find bogus in signed zones",
                ["group": group.name, "asked": asked.name])
        case .short(let reason):
            say(
                .warning, .short, about: "this machine",
                "this machine is short of what questions need: \(reason); their clients get what is stale, or SERVFAIL, and no server is given up for it",
                ["reason": reason])
        case .mayLoop(let id, let server):
            let name = Self.name(group(id), server)
            let reason = "they come from \(name), which is being asked the same: a loop, unless its address is forged"
            say(
                .warning, .questionsRefused, about: "loop at \(name)", "questions are refused: \(reason)",
                ["reason": reason])
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
        case .sharedCacheOff(let why):
            say(.warning, .sharedCacheOff, about: Self.store, Self.withoutStore(why), ["reason": why])
        case .sharedCacheOn: say(.notice, .sharedCacheOn, about: Self.store, "shared cache: in use")
        case .sharedCacheTakesNothing(let why):
            say(
                .warning, .sharedCacheTakesNothing, about: Self.store,
                "shared cache: it takes no answers, so other daemons look up again what this one knows, and miss flush --all: \(why)",
                ["reason": why])
        case .sharedCacheTakesAgain:
            say(.notice, .sharedCacheTakesAgain, about: Self.store, "shared cache: it takes answers again")
        case .sharedCacheClock:
            say(
                .warning, .sharedCacheClock, about: Self.store,
                "shared cache: answers from the future are ignored: the clock of this machine or of another daemon's is wrong; timedatectl on each says which"
            )
        }
    }

    private static let store = "shared cache"

    /// The group that is asked instead of an account; nil if there is none.
    private func next(_ account: GroupOverview, _ group: (GroupID) -> GroupOverview) -> String? {
        account.successors.lazy.map(group).first { !$0.servers.isEmpty }?.title
    }

    /// A resolver's answer is right except for the case of its letters.
    func otherCase(_ server: Server) {
        say(
            .notice, .otherCase, about: "spelling of \(server)",
            "resolver \(server) has answered in other upper and lower case than the question's, or an attacker guesses its answers; the question is asked again over TCP",
            ["server": "\(server)"])
    }

    /// The name of a server in a line.
    private static func name(_ group: GroupOverview, _ server: Server) -> String { "\(group.title) \(server)" }

    static func fails(_ who: String, _ failure: Failure) -> String {
        let what = failure.kind == .refusedTogether ? "refuses names asked together" : "fails"
        return "\(who) \(what): \(failure.detail)"
    }

    static func withoutStore(_ why: String) -> String {
        "shared cache: not in use, names are looked up without it: \(why)"
    }
}

extension Failure {
    /// Failures that an operator must repair have another ID than those that pass by themselves.
    fileprivate func event(_ group: GroupOverview) -> LogEventID {
        switch kind {
        case .untrusted: .certificateRefused
        case _ where !group.carriesAddresses: .resolverFails
        case .refusedTogether: .namesRefused
        case .unauthorized: .accountRefused
        case .badAnswer where statusCode == 403: .accountRefused
        case .timedOut, .unreachable, .insecure, .tooOften, .denied, .badAnswer, .here: .serviceFails
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

extension Report {
    /// An account's `debug`: logs each lookup with its names.
    func lookup(_ results: [NameAddresses], at group: String) {
        for result in results {
            log.info("\(Self.prefix(group))lookup \(result.name): \(result.ipv4.text) \(result.ipv6.text)")
        }
    }

    /// An account's `debug`: logs a lookup that failed at a server.
    func lookup(_ lookup: AbnormalLookup, at group: String) {
        guard lookup.server != nil, let failure = lookup.failure else { return }
        let names = lookup.names.map(\.description).joined(separator: " ")
        log.info("\(Self.prefix(group))lookup \(names): \(failure.detail)")
    }

    private static func prefix(_ group: String) -> String { group == Settings.Group.httpdnsName ? "" : "\(group): " }
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
