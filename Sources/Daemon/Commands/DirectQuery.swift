public import Base
public import Configuration
public import DNSWire
import Forwarding

/// Asks one group directly for addresses, without the cache and other groups, for the command `query`.
///
/// The servers of the group are tried in order, each once for each request. A server that fails is not tried again; one
/// that refuses a question is.
public struct DirectQuery {
    private let straight: StraightAsking
    private let group: UpstreamGroup
    private let families: Families

    /// - Parameter name: The name of the group.
    public init(
        _ settings: Settings, group name: String = Settings.Group.httpdnsName, ipv4: Bool, ipv6: Bool
    ) throws(StartFailure) {
        if name == Settings.Group.httpdnsName, settings.httpdns == nil {
            throw .setting(
                key: "httpdns", "there is no such section; it names the service to ask, and --group another group")
        }
        straight = try StraightAsking(settings)
        guard let group = straight.groups.first(where: { $0.name == name }), !group.servers.isEmpty else {
            throw settings.noServerToAsk(name)
        }
        self.group = group
        families = (ipv4 ? Families.ipv4 : []).union(ipv6 ? .ipv6 : [])
    }

    /// Whether the group is an account, which knows only host names.
    public var isOfAccount: Bool { group.carriesAddresses }

    /// Asks about all names; called only once in this value's life. An account is asked about several names in a
    /// request, a server about a name and a type.
    /// - Parameter said: Called before each request with its server and the progress.
    /// - Returns: The results; and if no server gave an answer to some of the names, why, in one line: each server with
    ///   its result. Then the results are those of the other names, and of one family of a name.
    public func ask(
        _ names: [Name], asking said: (String) -> Void = { _ in }
    ) -> (results: [NameAddresses], failure: String?) {
        defer { straight.close() }
        let distinct = names.eachOnce
        var (pending, servers) = (requests(distinct), group.servers[...])
        var known: [Name: NameAddresses] = [:]
        /// Why servers are not asked any more, and the refusals of the first request.
        var (failures, refusals): ([String], [String]) = ([], [])
        var unanswered: [Ask] = []
        while let request = pending.first, !servers.isEmpty {
            guard refusals.count < servers.count else {
                unanswered.append(pending.removeFirst())
                failures += refusals
                refusals = []
                continue
            }
            let index = servers.startIndex + refusals.count
            let who = "\(group.title) \(servers[index])"
            said("\(who); \(known.count) of \(distinct.count) names are known")
            let outcome = straight.ask(group, servers[index], request).outcome
            if let failure = take(outcome, of: request, &known) {
                if case .answer = outcome, case .message(let question) = request {
                    refusals.append("\(who): \(failure) for \(question.name) \(question.type)")
                } else {
                    failures.append("\(who): \(failure)")
                    servers.remove(at: index)
                }
                continue
            }
            refusals = []
            pending.removeFirst()
            // The names that the answer leaves out, or that are refused together, are asked one by one; a name that is
            // left out even then has no record.
            if case .addresses(let names, _) = request, names.count > 1 {
                pending.insert(contentsOf: names.filter { known[$0] == nil }.map { .addresses([$0], families) }, at: 0)
            }
        }
        unanswered += pending
        let left = Set(
            unanswered.flatMap { request in
                switch request {
                case .addresses(let names, _): names
                case .message(let question): [question.name]
                }
            })
        let found = names.filter { known[$0] != nil || !left.contains($0) }.map { known[$0] ?? withoutRecord($0) }
        return (found, unanswered.isEmpty ? nil : failures.joined(separator: "; "))
    }

    private func requests(_ names: [Name]) -> [Ask] {
        switch group.carries {
        case .addresses(namesPerRequest: let batch):
            stride(from: 0, to: names.count, by: batch).map {
                .addresses(Array(names[$0..<min($0 + batch, names.count)]), families)
            }
        case .messages:
            names.flatMap { name in
                [(Families.ipv4, RecordType.a), (.ipv6, .aaaa)].filter { families.contains($0.0) }
                    .map { .message(MessageQuestion(name: name, type: $0.1)) }
            }
        }
    }

    private func withoutRecord(_ name: Name) -> NameAddresses {
        func family(_ family: Families) -> FamilyAddresses { families.contains(family) ? .noRecord : .notAsked }
        return NameAddresses(name: name, ipv4: family(.ipv4), ipv6: family(.ipv6))
    }

    /// Adds a server's answer to the known addresses.
    /// - Returns: Why it is no answer; nil if it is an answer.
    private func take(_ outcome: Outcome, of request: Ask, _ known: inout [Name: NameAddresses]) -> String? {
        switch (outcome, request) {
        case (.addresses(let results, _), .addresses):
            for result in results { known[result.name] = result }
            return nil
        case (.answer(let answer), .message(let question)):
            if let refusal = answer.refusal { return refusal }
            let addresses = answer.addresses
            let family = addresses.isEmpty ? FamilyAddresses.noRecord : .addresses(addresses, ttl: answer.keep)
            var found = known[question.name] ?? NameAddresses(name: question.name, ipv4: .notAsked, ipv6: .notAsked)
            if question.type == .a { found.ipv4 = family } else { found.ipv6 = family }
            known[question.name] = found
            return nil
        case (.failed(let failure), .addresses) where failure.kind == .refusedTogether: return nil
        case (.failed(let failure), _): return failure.detail
        case (.addresses, .message), (.answer, .addresses): return "an answer of another kind"
        }
    }
}

extension Answer {
    /// The code and the reason of a message that does not answer the question; nil if it does.
    var refusal: String? {
        let (code, reason) = (head.responseCode, extendedErrorText)
        return code.isAnswer ? nil : "\(code)\(reason.isEmpty ? "" : ": \(reason)")"
    }
}
