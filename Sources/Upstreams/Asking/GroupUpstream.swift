package import Base
package import Counters
package import Cryptography
package import Forwarding
package import Transport

/// The servers of a group that carries messages, each asked by the upstream for its kind.
package final class GroupUpstream: Upstream {
    package var settle: Settle = { _, _, _ in }
    package var wrote: (QueryID) -> Void = { _ in } {
        didSet { for upstream in all { upstream.wrote = wrote } }
    }
    /// Called with the progress of new connections.
    package var progressed: (StreamUpstream.Progress) -> Void = { _ in } {
        didSet { streams.progressed = progressed }
    }
    package var lost: (QueryID) -> Void = { _ in } {
        didSet { for upstream in all { upstream.lost = lost } }
    }
    package let answers: DNSAnswers
    /// The counts of the group's servers.
    package var tallies: UpstreamTallies { streams.tallies }
    /// Plain servers, over UDP. A query whose answer does not fit a datagram is repeated through ``streams``, with the
    /// same ID.
    private let plain: PlainUpstream
    private let streams: StreamUpstream
    private var tls: TLSClientContext?

    /// - Parameters:
    ///   - tls: The verification of the group's encrypted servers; nil if it has none.
    ///   - egress: The way of the group's sockets out of this machine.
    ///   - lookup: Finds servers whose host is a name.
    ///   - outbox: Sends the queries of a turn together; nil if each is sent alone.
    package init(
        _ answers: DNSAnswers, tls: TLSClientContext?, loop: EventLoop, egress: Egress = Egress(),
        lookup: ServerFinder? = nil, outbox: Outbox? = nil
    ) {
        (self.answers, self.tls) = (answers, tls)
        let tallies = UpstreamTallies()
        plain = PlainUpstream(answers, loop: loop, tallies: tallies, outbox: outbox)
        plain.egress = egress
        streams = StreamUpstream(loop: loop, tallies: tallies, lookup: lookup, outbox: outbox, egress: egress) {
            server throws(Failure) in
            try ServerKind(server, answers, tls)
        }
        plain.truncated = { [unowned self] id, server, ask, now in streams.ask(id, server, ask, at: now) }
        plain.settle = { [unowned self] id, outcome, toRepeat in
            // The query may be under way over TCP as well.
            streams.cancel(id)
            settle(id, outcome, toRepeat)
        }
        streams.settle = { [unowned self] id, outcome, toRepeat in
            if !plain.settledOverTCP(id, outcome, toRepeat: toRepeat) { settle(id, outcome, toRepeat) }
        }
    }

    /// Sets another context of verification and another egress from now on; queries under way go on.
    /// - Parameter tls: The context; nil if it stays.
    package func renew(_ tls: TLSClientContext?, _ egress: Egress) {
        guard tls != nil || egress != streams.egress else { return }
        self.tls = tls ?? self.tls
        plain.egress = egress
        streams.renew(egress) { [answers, tls = self.tls] server throws(Failure) in
            try ServerKind(server, answers, tls)
        }
    }

    /// Another upstream for the same servers with the same settings. It shares neither connections nor counts with this
    /// upstream, nor knowledge of the servers.
    package func apart(lookup: ServerFinder?) -> GroupUpstream {
        let answers = DNSAnswers(negativeTTL: answers.negativeTTL, trustsAD: answers.trustsAD)
        answers.clientSubnet = self.answers.clientSubnet
        return GroupUpstream(answers, tls: tls, loop: streams.loop, egress: streams.egress, lookup: lookup)
    }

    package func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick) {
        switch server.kind {
        case .plain: plain.ask(id, server, ask, at: now)
        case .tcp, .tls, .https, .account: streams.ask(id, server, ask, at: now)
        }
    }

    // A query that one of the two upstreams does not know is ignored there.

    package func askAgain(_ id: QueryID) { for upstream in all { upstream.askAgain(id) } }

    package func cancel(_ id: QueryID, isOverdue: Bool) {
        for upstream in all { upstream.cancel(id, isOverdue: isOverdue) }
    }

    package func keep(_ servers: [Server]) { for upstream in all { upstream.keep(servers) } }

    package func networkChanged() { for upstream in all { upstream.networkChanged() } }

    package var isIdle: Bool { all.allSatisfy(\.isIdle) }

    package func close() { for upstream in all { upstream.close() } }

    package var nextDeadline: Tick? { streams.nextDeadline.orEarlier(plain.nextDeadline) }

    package func expire(at now: Tick) { for upstream in all { upstream.expire(at: now) } }

    private var all: [any Upstream] { [plain, streams] }
}
