import Base
import Counters
import Forwarding

/// A local resolver as it is asked in the clear. Confined to the resolver's loop.
final class PlainServer {
    let server: Server
    /// It is one of those that are listed: what is kept for it is looked through now and then.
    var isKept: Bool
    var spelling = Spelling()
    /// From which the next query goes, if it takes more.
    var port: QueryPort?
    /// From its first answer on.
    var tally: UpstreamTallies.ServerTally?

    init(_ server: Server, isKept: Bool) { (self.server, self.isKept) = (server, isKept) }
}

/// A query under way to a local resolver, by each way it went out.
final class LocalQuery {
    let id: QueryID
    let question: MessageQuestion
    let server: PlainServer
    var sent = SmallList<SentQuery>()
    /// The answer did not fit a datagram, and comes over TCP.
    var isOverTCP = false
    /// The server was silent, and this is the second time that it is asked.
    var isRepeat = false

    init(_ id: QueryID, _ question: MessageQuestion, _ server: PlainServer) {
        (self.id, self.question, self.server) = (id, question, server)
    }
}

/// A query as it went to a local resolver in a datagram.
final class SentQuery {
    let id: UInt16
    let query: LocalQuery
    let port: QueryPort
    let bytes: [UInt8]
    /// Whether it has an OPT record.
    let edns: EDNS
    /// The name has a letter in upper case, so an answer shows whether its server repeats them.
    let isMixed: Bool
    /// The server was silent, and this is the second time that it is asked.
    let isRepeat: Bool
    let at: Tick
    /// Something came that was the answer but for its letters' case.
    var sawOtherCase = false

    init(
        id: UInt16, _ query: LocalQuery, from port: QueryPort, bytes: [UInt8], edns: EDNS, isMixed: Bool,
        isRepeat: Bool, at: Tick
    ) {
        (self.id, self.query, self.port, self.bytes) = (id, query, port, bytes)
        (self.edns, self.isMixed, self.isRepeat, self.at) = (edns, isMixed, isRepeat, at)
    }

    enum EDNS {
        case used
        /// The server is known not to understand it.
        case omitted
        /// The same query with it has just been answered with an error.
        case tried
    }
}
