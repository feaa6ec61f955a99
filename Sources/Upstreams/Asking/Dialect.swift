package import Base
package import Cryptography
package import DNSWire
package import Forwarding
package import Streams

/// How one server is asked on streams: a query becomes a request, an answer an outcome. One for each server, on its
/// upstream's loop.
package protocol Dialect: AnyObject {
    var limits: StreamLimits { get }
    /// Whether requests go through TLS.
    var isSecure: Bool { get }
    /// A conversation for a new connection.
    func conversation() -> any ClientConversation
    /// A new session to one of the server's endpoints; nil without TLS.
    /// - Parameter wall: Seconds since 1970.
    func session(to endpoint: Endpoint, at wall: UInt64) throws(TLSError) -> TLSSession?
    /// Whether it is worth while to connect to the same endpoint again, in another way, after a failure.
    func knowsAnotherWay(after failure: StreamFailure) -> Bool
    /// What it means that a connection could not be made.
    func meaning(of failure: StreamFailure) -> Failure
    /// Whether a query is sent again even if the connection that ended without an answer was a fresh one.
    var retriesOnFresh: Bool { get }
    /// Why an established connection cannot be used; nil: it can.
    func refusal(of stream: Stream) -> Failure?
    /// The request for a query.
    /// - Parameter isAnew: Whether the answer before was ``Reading/askAnew``.
    /// - Throws: The server cannot be asked this.
    func request(_ ask: Ask, isAnew: Bool, at now: Tick, wall: UInt64) throws(Unaskable) -> [UInt8]
    func read(_ answer: ConversationAnswer, to ask: Ask, isAnew: Bool, at now: Tick) -> Reading
}

extension Dialect {
    package func knowsAnotherWay(after failure: StreamFailure) -> Bool { false }
    package func meaning(of failure: StreamFailure) -> Failure { Failure(failure) }
    package var retriesOnFresh: Bool { false }
    package func refusal(of stream: Stream) -> Failure? { nil }
}

/// Why a query cannot be put into a request.
package struct Unaskable: Error {
    let failure: Failure
}

/// What an answer means.
package enum Reading {
    /// - Parameters:
    ///   - code: The response code to count.
    ///   - isInStep: Whether it is certainly the answer to this request. Else it may be another's, and the connection
    ///     is not used any more.
    case outcome(Outcome, code: ResponseCode, isInStep: Bool)
    /// Ask the same once more by another request: without an extension that the server may not support, or by a clock
    /// that its answer has corrected.
    case askAnew
    /// The server did not answer on this connection: ask the same again on another one; with the failure to report if
    /// that fails too.
    case askElsewhere(Failure)
}

/// Finds the endpoints of servers whose host is a name.
package struct ServerFinder {
    /// Calls `then` at once, or when the endpoints were found.
    let find: (_ server: Server, _ now: Tick, _ then: @escaping (ServerEndpoints) -> Void) -> Void
    /// Records that a connection to this endpoint was established and its certificate accepted.
    let worked: (_ server: Server, _ endpoint: Endpoint) -> Void
    /// Records that none of the endpoints given for this server could be reached.
    let allFailed: (_ server: Server, _ now: Tick) -> Void
}

/// The endpoints at which a server can be dialled.
package enum ServerEndpoints: Equatable {
    /// The one that worked last comes first; never empty.
    case known([Endpoint])
    case unknown(Failure)
}

/// How many connections a server has, and how long they are kept.
package struct StreamLimits: Sendable {
    /// The most connections opened for queries; a query that finds none with room waits.
    var connections = 2
    /// The most connections including those opened to ask again, so that an unstable network does not multiply them.
    var mostConnections = 6
    /// Whether a connection carries several queries at once.
    var sharesConnections = true
    /// The most queries on one connection in its life.
    var queriesPerConnection = Int.max
    /// How long an idle connection is kept, in nanoseconds; 0: not at all. Shorter once the server has closed one
    /// earlier.
    var idleTime: UInt64
    /// How many idle connections are kept for ``idleTime``. Where each request needs a connection of its own, a busy
    /// second uses more of them again and again, and opening one costs more than many requests; so further ones are
    /// kept too, for ``surplusTime``.
    var usualIdle = 16
    static let surplusTime: UInt64 = 2_000_000_000

    /// The most octets that wait for a server to read; a request and a handshake are far smaller.
    static let maximumQueued = 128 * 1024
    /// The most queries that wait for room on a connection to one server.
    static let maximumWaiting = 1024
    /// If the server closes a connection after a shorter idle time, in nanoseconds, idleness was not the reason.
    static let shortestIdle: UInt64 = 1_000_000_000
    /// The range of idle times that are learned from servers, in nanoseconds.
    static let idleRange: ClosedRange<UInt64> = 1_500_000_000...120_000_000_000
}
