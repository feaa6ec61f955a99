import Base
import DNSWire
import Forwarding
import Streams

/// The protocol with one server: a query becomes a request, an answer an outcome. Each server has a dialect, on its
/// upstream's loop.
protocol Dialect: AnyObject {
    /// A conversation for a new connection.
    func conversation() -> any ClientConversation
    /// The request for a query.
    /// - Parameter isRewritten: Whether the previous answer was ``Reading/retryRewritten``.
    /// - Throws: Why the server cannot be asked this.
    func request(_ ask: Ask, isRewritten: Bool, at now: Tick, wall: UInt64) throws(Failure) -> [UInt8]
    func read(_ answer: ConversationAnswer, to ask: Ask, isRewritten: Bool, at now: Tick) -> Reading
    /// How long the server keeps idle connections open, by the last answer, in tenths of a second.
    var keepAlive: UInt16? { get }
}

extension Dialect {
    var keepAlive: UInt16? { nil }
}

/// The meaning of an answer.
enum Reading {
    /// - Parameters:
    ///   - code: The response code to count.
    ///   - provesConnectionInSync: Whether this is certainly the answer to this request. Else it may be another
    ///     request's, and the connection is not used any more.
    case outcome(Outcome, code: ResponseCode, provesConnectionInSync: Bool)
    /// Repeat the query by another request: without an extension that the server may not support, or by a clock that
    /// its answer has corrected.
    case retryRewritten
    /// The server did not answer on this connection: repeat the query on another connection; with the failure to report
    /// if that fails too.
    case retryOnOtherConnection(Failure)

    /// A failure after which the server is still asked on the same connection.
    /// - Parameters:
    ///   - status: The HTTP status.
    ///   - retryAfter: Seconds for which the server is to be left alone.
    static func failed(_ kind: Failure.Kind, _ detail: String, _ status: Int? = nil, retryAfter: Int? = nil) -> Reading
    {
        let failure = Failure(kind, detail, statusCode: status, retryAfter: retryAfter)
        return .outcome(.failed(failure), code: .servFail, provesConnectionInSync: true)
    }

    /// The answer does not belong to this request.
    static func outOfSync(_ detail: String) -> Reading {
        .outcome(.failed(Failure(.badAnswer, detail)), code: .servFail, provesConnectionInSync: false)
    }
}
