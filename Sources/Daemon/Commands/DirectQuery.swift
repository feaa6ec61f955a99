public import Base
public import Configuration
public import DNSWire
import Forwarding

/// Asks one group directly for addresses, without cache and other groups, for the command `query`.
///
/// The servers of the group are tried in order, each once a request.
public final class DirectQuery: @unchecked Sendable {
    // Unchecked: everything is used on the loop alone once it has started.
    private let asking: StraightAsking
    private let group: UpstreamGroup
    private let families: Families
    private var pending: [Request] = []
    private var server = 0
    private var distinct: [Name] = []
    private var known: [Name: NameAddresses] = [:]
    private var failures: [String] = []
    private var said: @Sendable (String) -> Void = { _ in }

    /// What goes to a server at once.
    private enum Request {
        /// To an account.
        case names([Name])
        /// To a server that carries messages.
        case question(Name, RecordType)
    }

    /// Why no server gave an answer, in one line.
    public struct Failed: Error, Equatable, Sendable, CustomStringConvertible {
        /// Each server with what came of it.
        public let description: String
    }

    /// - Parameter name: that of the group.
    public init(
        _ settings: Settings, group name: String = Settings.Group.httpdnsName, ipv4: Bool, ipv6: Bool
    ) throws(StartFailure) {
        if name == Settings.Group.httpdnsName, settings.httpdns == nil {
            throw .setting(
                key: "httpdns", "there is no such section; it names the service to ask, and --group another group")
        }
        asking = try StraightAsking(settings)
        guard let group = asking.groups.first(where: { $0.name == name }), !group.servers.isEmpty else {
            throw settings.nobodyToAsk(name)
        }
        self.group = group
        families = (ipv4 ? Families.ipv4 : []).union(ipv6 ? .ipv6 : [])
    }

    /// Whether the group is an account, which knows no other names than those of hosts.
    public var isOfAccount: Bool { group.carriesAddresses }

    /// Asks about all names and calls back once; only once in this object's life. An account is asked about several names in
    /// a request, a server about a name and a type.
    /// - Parameter asking: called on a queue of its own before each request with whom it goes to, and how far this is.
    public func ask(
        _ names: [Name], asking said: @escaping @Sendable (String) -> Void = { _ in },
        _ done: @escaping @Sendable (Result<[NameAddresses], Failed>) -> Void
    ) {
        self.said = said
        var seen: Set<Name> = []
        distinct = names.filter { seen.insert($0).inserted }
        switch group.carries {
        case .addresses(namesPerRequest: let batch):
            pending = stride(from: 0, to: distinct.count, by: batch).map {
                .names(Array(distinct[$0..<min($0 + batch, distinct.count)]))
            }
        case .messages:
            pending = distinct.flatMap { name in
                [(Families.ipv4, RecordType.a), (.ipv6, .aaaa)].filter { families.contains($0.0) }
                    .map { Request.question(name, $0.1) }
            }
        }
        asking.next = { [unowned self] in next() }
        asking.settled = { [unowned self] in settle($0) }
        asking.start(conclude: { [self] in
            let result: Result<[NameAddresses], Failed> =
                pending.isEmpty
                ? .success(names.map { known[$0] ?? withoutRecord($0) })
                : .failure(Failed(description: failures.joined(separator: "; ")))
            return { done(result) }
        })
    }

    /// Sends the next request; false: there is none, or nobody left to answer it.
    private func next() -> Bool {
        guard server < group.servers.count, let request = pending.first else { return false }
        said("\(who); \(known.count) of \(distinct.count) names are known")
        let ask: Ask =
            switch request {
            case .names(let names): .addresses(names, families)
            case .question(let name, let type): .message(MessageQuestion(name: name, type: type))
            }
        asking.ask(group, group.servers[server], ask)
        return true
    }

    private var who: String { "\(group.title.text) \(group.servers[server])" }

    private func withoutRecord(_ name: Name) -> NameAddresses {
        func family(_ family: Families) -> FamilyAddresses { families.contains(family) ? .noRecord : .notAsked }
        return NameAddresses(name: name, ipv4: family(.ipv4), ipv6: family(.ipv6))
    }

    private func settle(_ outcome: Outcome) {
        guard let request = pending.first else { return }
        switch (outcome, request) {
        case (.addresses(let results, _), .names(let names)):
            for result in results { known[result.name] = result }
            pending.removeFirst()
            let leftOut = names.filter { known[$0] == nil }
            // The names that the answer leaves out are asked one by one; a name that is left out even then has no
            // record.
            if names.count > 1 { pending.insert(contentsOf: leftOut.map { .names([$0]) }, at: 0) }
        case (.answer(let answer), .question(let name, let type)):
            guard answer.head.responseCode.isAnswer else {
                let reason = answer.extendedErrorText
                return fail("\(answer.head.responseCode)\(reason.isEmpty ? "" : ": \(reason)")")
            }
            pending.removeFirst()
            var found = known[name] ?? withoutRecord(name)
            let addresses = answer.addresses
            let family = addresses.isEmpty ? FamilyAddresses.noRecord : .addresses(addresses, ttl: answer.keep)
            if type == .a { found.ipv4 = family } else { found.ipv6 = family }
            known[name] = found
        case (.failed(let failure), _): fail(failure.detail)
        case (.addresses, .question), (.answer, .names): fail("an answer of another kind")
        }
    }

    private func fail(_ detail: String) {
        failures.append("\(who): \(detail)")
        server += 1
    }
}
