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
    /// The source for which it counts at the server; nil where the server takes any number.
    let holder: Source?
    /// When the attempt has failed.
    let endsAt: Tick
    /// When the server, silent for so long, is asked once more; nil: it was, or is not.
    var askAgainAt: Tick?
    /// When the server takes longer than usual, so that the next one is asked as well; nil: it was, or is not.
    var askNextAt: Tick?
    /// When the server, after a long silence, was asked once more.
    var repeated: Tick?
    /// Whether the server took longer than usual, so that the next one was asked as well.
    var isOvertaken = false
    /// Whether it shows whether its server, which was set aside, answers again.
    let isTrial: Bool
    /// Whether it has left: see ``GroupDesk/wrote(_:)``.
    var isWritten = false
    /// Whether the kernel has not taken its first datagram, so that silence is no failure of the server.
    var isLost = false

    enum Subject {
        /// The addresses of several names, of these families.
        case names([Lookup], Families)
        /// The question of a flight.
        case message(MessageStep)
        /// A query whose answer is not wanted: it only shows the state of the server. Its question was that of a flight,
        /// which may have ended.
        case measurement(MessageStep)

        var isNames: Bool { if case .names = self { true } else { false } }
    }

    /// When something is due that the server does not bring about.
    var nextMoment: Tick { min(endsAt, askAgainAt ?? endsAt, askNextAt ?? endsAt) }
}
