import Base
import Counters
import Forwarding

/// The state of a server that is asked in the clear. Confined to the forwarder's loop.
final class PlainServer {
    let server: Server
    /// Whether the upstream remembers the server; each port of a server that is not remembered takes a single query.
    var isRemembered: Bool
    var spelling = Spelling()
    /// The port for the next query, if the port still takes queries.
    var port: QueryPort?
    /// The server's figures; nil before its first answer.
    var tally: UpstreamTallies.ServerTally?

    init(_ server: Server, isRemembered: Bool) { (self.server, self.isRemembered) = (server, isRemembered) }
}

/// A query under way to a plain server, with all datagrams and streams on which it was sent.
final class PlainQuery {
    let id: QueryID
    let question: MessageQuestion
    let server: PlainServer
    var sent = SmallList<SentQuery>()
    /// Whether the answer did not fit a datagram, and comes over TCP.
    var isOverTCP = false
    /// Whether the query was sent a second time, because the server was silent.
    var isRepeat = false

    init(_ id: QueryID, _ question: MessageQuestion, _ server: PlainServer) {
        (self.id, self.question, self.server) = (id, question, server)
    }
}

/// A query in a sent datagram.
final class SentQuery {
    let id: UInt16
    let query: PlainQuery
    let port: QueryPort
    let bytes: [UInt8]
    /// Whether the query has an OPT record.
    let edns: EDNSUse
    /// Whether the name has an upper-case letter, so that an answer shows whether the server repeats the case.
    let isMixed: Bool
    /// Whether the query was sent a second time, because the server was silent.
    let isRepeat: Bool
    let at: Tick
    /// Whether a message came that was the answer except for the case of letters.
    var sawOtherCase = false

    init(
        id: UInt16, _ query: PlainQuery, from port: QueryPort, bytes: [UInt8], edns: EDNSUse, isMixed: Bool,
        isRepeat: Bool, at: Tick
    ) {
        (self.id, self.query, self.port, self.bytes) = (id, query, port, bytes)
        (self.edns, self.isMixed, self.isRepeat, self.at) = (edns, isMixed, isRepeat, at)
    }
}
