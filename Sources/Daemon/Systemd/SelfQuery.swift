import Base
import Transport

/// A question of the daemon's own to one of its own addresses, on the way that any client's takes: for a name that is
/// answered here and nowhere else (RFC 6761 §6.3). Whatever the answer is, REFUSED too, it is one.
///
/// Not every address can be tried from within: it may be bound to a device, or be gone from the machine. So one that
/// has answered is kept, and from then on has to.
struct SelfQuery: ~Copyable {
    private let candidates: [Endpoint]
    private var proven: Endpoint?
    /// All were tried for long and in vain; from then on each gets one chance a time.
    private var isHopeless = false
    private var random = Random()

    enum Outcome: Equatable {
        case answered
        case unanswered
        /// No address has ever answered, or the one that did is gone: nothing follows from silence.
        case impossible
    }

    /// How long a question may be under way before it is asked again, in milliseconds: it may have been lost in a
    /// flood.
    private static let patience = 250

    /// - Parameter listening: where the daemon answers.
    init(_ listening: [Endpoint]) {
        let reachable = listening.map { endpoint in
            guard endpoint.address.isUnspecified else { return endpoint }
            let loopback = endpoint.address.isIPv4 ? IPAddress.v4(127, 0, 0, 1) : IPAddress(v6: 0, 1)
            return Endpoint(loopback, port: endpoint.port)
        }
        // Loopback addresses stay.
        candidates = reachable.filter { $0.address.isLoopback } + reachable.filter { !$0.address.isLoopback }
    }

    /// Asks, and holds the thread until the answer is there, or so many milliseconds have passed.
    mutating func ask(within milliseconds: Int) -> Outcome {
        if let proven {
            if let isAnswered = ask(proven, within: milliseconds) { return isAnswered ? .answered : .unanswered }
            self.proven = nil
        }
        let share = isHopeless ? Self.patience : milliseconds / max(1, candidates.count)
        for candidate in candidates where ask(candidate, within: share) == true {
            (proven, isHopeless) = (candidate, false)
            return .answered
        }
        isHopeless = true
        return .impossible
    }

    /// - Returns: nil when the address is none of this machine's (any more).
    private mutating func ask(_ endpoint: Endpoint, within milliseconds: Int) -> Bool? {
        let end = Clock.now() + UInt64(milliseconds) * 1_000_000
        while true {
            // From the address itself, so that no packet leaves the machine; a socket for each attempt, so that it may
            // come to another of the listeners.
            guard let socket = try? QuerySocket.open(to: endpoint, from: endpoint.address) else { return nil }
            let now = Clock.now()
            guard now < end else { return false }
            let id = random.uint16()
            let patience = min(Self.patience, Int((end - now) / 1_000_000) + 1)
            let isSent = (try? socket.send(Self.question(id).span)) == true
            let isReadable = isSent && socket.wait(milliseconds: patience)
            if isReadable, Self.isAnswer(socket, to: id) { return true }
            // Not sent, refused, or something else came: all of that at once, and again with the next attempt.
            if !isSent || isReadable { Clock.sleep(milliseconds: patience) }
        }
    }

    private static func isAnswer(_ socket: borrowing QuerySocket, to id: UInt16) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 512)
        var room = buffer.mutableSpan
        guard case .bytes(let count) = try? socket.receive(into: &room), count >= 12 else { return false }
        return UInt16(buffer[0]) << 8 | UInt16(buffer[1]) == id && buffer[2] & 0x80 != 0
    }

    /// `localhost. A IN`, RD set.
    private static func question(_ id: UInt16) -> [UInt8] {
        [UInt8(id >> 8), UInt8(id & 0xFF), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 9] + Array("localhost".utf8) + [0, 0, 1, 0, 1]
    }
}
