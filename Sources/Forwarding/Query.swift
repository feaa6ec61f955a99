import Base
import DNSWire

/// A query under way to a server.
struct Query {
    let group: GroupID
    let server: Server
    /// ``ServerState/number`` of the server.
    let number: Int
    let sent: Tick
    var subject: Subject
    /// The source for which it counts at the server; nil: the server takes any number.
    let holder: Source?
    /// When the attempt fails.
    let endsAt: Tick
    /// When the silent server is asked again; nil: it was, or is not to be.
    var askAgainAt: Tick?
    /// When the next server is asked too, since this one takes longer than usual; nil: it was, or is not to be.
    var askNextAt: Tick?
    /// When the silent server was asked again.
    var repeated: Tick?
    /// Whether the next server was asked too, since this one took longer than usual.
    var isOvertaken = false
    /// Whether it is the trial of a server that was set aside.
    let isTrial: Bool
    /// Whether it was sent: see ``GroupDesk/wrote(_:)``.
    var isWritten = false
    /// Whether the kernel has refused its first datagram, so that silence is no failure of the server.
    var isLost = false

    enum Subject {
        /// The addresses of several names, of these families.
        case names([Lookup], Families)
        /// The question of a flight.
        case message(MessageStep)
        /// A query without a use for its answer: it only shows the state of the server. Its question was that of a
        /// flight, which may have ended.
        case measurement(MessageStep)

        var isNames: Bool { if case .names = self { true } else { false } }
    }

    /// When a deadline is due that does not depend on the server.
    var nextMoment: Tick { min(endsAt, askAgainAt ?? endsAt, askNextAt ?? endsAt) }
}
