import Base
import Counters
import DNSWire
import Forwarding
import Transport

/// The notes of questions for the clients of `watch`.
extension WatchNotes.Page {
    /// Adds a reply of a listener: from the cache, or a refusal.
    mutating func add(
        _ reply: Span<UInt8>, to client: IPAddress, over transport: Tally.Transport, at time: UInt64, took: UInt64
    ) {
        guard let summary = ReplySummary(reply) else { return }
        var name: [UInt8] = []
        name.append(reply.extracting(summary.name))
        add(
            Watched(
                at: time, took: took, client: client, transport: transport, name: name, type: summary.type,
                code: summary.code, by: summary.isAnswer ? .cache : .daemon))
    }
}

extension WatchNotes {
    /// Notes an answer that did not come from a listener.
    func note(
        _ client: Client, _ answer: Answer, _ answerer: Answerer, _ way: Exposure, _ took: UInt64,
        _ forwarder: borrowing Forwarder
    ) {
        let by: Watched.By =
            switch answerer {
            case .cache: .cache
            case .stale: .stale
            case .noServer: .noServer
            case .group(let group): .group(forwarder.name(of: group))
            case .sharedCache(let group): .server(group: forwarder.name(of: group), "shared cache")
            case .server(let group, let server): .server(group: forwarder.name(of: group), "\(server)")
            case .daemon:
                forwarder.policy.reason(client.question.name(in: client.query.span), client.question.type) == .hosts
                    ? .hosts : .daemon
            }
        let watched = Watched(
            at: WallClock.unixMicroseconds(), took: took, client: client.asker.address, transport: client.asker.way,
            name: Array(client.query[Question.nameOffset..<client.question.nameEnd]), type: client.question.type,
            code: answer.head.responseCode, by: by, way: way, reason: answer.reason)
        note(1) { $0.add(watched) }
    }
}

extension Answer {
    /// The reason beside the response code, for a person; empty if there is none.
    fileprivate var reason: String {
        // The source of the answer shows that it is stale.
        guard let first = extendedErrors.first, first != .staleAnswer, first != .staleNXDomainAnswer else { return "" }
        let text = extendedErrorText
        return text.isEmpty ? "\(first)" : text
    }
}
