package import Base
package import Cryptography
package import DNSWire
package import Forwarding
package import Streams

/// How one server is asked on streams: a request goes out, an answer comes in. One for each server, on its upstream's
/// loop.
package protocol Dialect: AnyObject {
    var limits: StreamLimits { get }
    /// Whether requests go through TLS.
    var isSecure: Bool { get }
    /// What is spoken on a new connection.
    func conversation() -> any Conversation
    /// A new session to one of the server's endpoints; nil without TLS.
    /// - Parameter wall: Seconds since 1970.
    func session(to endpoint: Endpoint, at wall: UInt64) throws(TLSError) -> TLSSession?
    /// Whether it is worth while to connect to the same endpoint again, in another way, after a failure.
    func knowsAnotherWay(after failure: StreamFailure) -> Bool
    /// Whether a query goes out once more also when the connection that ended without an answer was a fresh one.
    var retriesOnFresh: Bool { get }
    /// Why a connection that stands is not what was wanted; nil: it is.
    func refusal(of stream: Stream) -> Failure?
    /// - Parameter isPlainer: ``Reading/askPlainer`` was what came of it before.
    /// - Throws: It cannot be asked.
    func request(_ ask: Ask, isPlainer: Bool, at now: Tick, wall: UInt64) throws(Unaskable) -> [UInt8]
    func read(_ answer: ConversationAnswer, to ask: Ask, isPlainer: Bool, at now: Tick) -> Reading
}

extension Dialect {
    package func knowsAnotherWay(after failure: StreamFailure) -> Bool { false }
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
    ///   - code: For what is counted.
    ///   - isInStep: It is the answer to what was asked. Else it may be another's, and the connection takes nothing
    ///     more.
    case outcome(Outcome, code: ResponseCode, isInStep: Bool)
    /// The server may know less than was taken for granted: the same is to be asked once more without.
    case askPlainer
    /// Not here and now: the same is to be asked once more, on another connection; what it is when that fails too.
    case askElsewhere(Failure)
}

/// Who says where servers are dialled whose host is a name.
package struct ServerFinder {
    /// Told at once, or when it was found out.
    let find: (_ server: Server, _ now: Tick, _ then: @escaping (ServerEndpoints) -> Void) -> Void
    /// A connection stands there, and its certificate was accepted.
    let worked: (_ server: Server, _ endpoint: Endpoint) -> Void
    /// It could be reached at none of the endpoints that were given.
    let allFailed: (_ server: Server, _ now: Tick) -> Void
}

/// Where a server can be dialled.
package enum ServerEndpoints: Equatable {
    /// What worked last first; never empty.
    case known([Endpoint])
    case unknown(Failure)
}

/// How many connections a server has, and for how long.
package struct StreamLimits: Sendable {
    /// Connections that queries open; what finds none with room waits.
    var connections = 2
    /// With those that were opened to ask again: a network that comes and goes must not multiply them.
    var mostConnections = 6
    /// Whether a connection carries several queries at once.
    var sharesConnections = true
    /// Queries put on one connection in its life.
    var queriesPerConnection = Int.max
    /// How long an idle connection is kept, in nanoseconds; 0: not at all. Less once the server has closed one earlier.
    var idleTime: UInt64
    /// So many are kept so long. More are kept as well while they are of use: with each request on a connection of its
    /// own, a busy second uses all of them again and again, and opening one costs more than many requests. What the
    /// busiest moment leaves behind is closed soon, after ``surplusTime``.
    var usualIdle = 16
    static let surplusTime: UInt64 = 2_000_000_000

    /// Octets that may wait for a server to read; a request and a handshake are far smaller.
    static let maximumQueued = 128 * 1024
    /// Queries that wait for room on a connection to one server.
    static let maximumWaiting = 1024
    /// After an end that comes sooner than so many nanoseconds, idleness was not its reason.
    static let shortestIdle: UInt64 = 1_000_000_000
    /// Between these, what was learned of a server's patience counts.
    static let idleRange: ClosedRange<UInt64> = 1_500_000_000...120_000_000_000
}
