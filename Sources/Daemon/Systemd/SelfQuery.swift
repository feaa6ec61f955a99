import Base
import Transport

/// A question of the daemon to one of its own addresses, on the same path as any client's: for a name that is always
/// answered by the daemon itself (RFC 6761 §6.3). Any response counts as an answer, even REFUSED.
///
/// Not every address can be reached from within: it may be bound to a device, or be gone from the machine. So an
/// address that has answered is remembered, and must answer from then on.
struct SelfQuery: ~Copyable {
    private let candidates: [Endpoint]
    private var proven: Endpoint?
    /// All addresses were tried for long without success; from now on each is tried once a round.
    private var isHopeless = false
    private var random = Random()

    enum Outcome: Equatable {
        case answered
        case unanswered
        /// No address has ever answered, or the one that did is gone: silence proves nothing.
        case impossible
    }

    /// Milliseconds after which an unanswered question is repeated: it may have been lost in a flood.
    private static let patience = 250

    /// - Parameter listening: the endpoints of the daemon.
    init(_ listening: [Endpoint]) {
        let reachable = listening.map { endpoint in
            guard endpoint.address.isUnspecified else { return endpoint }
            let loopback = endpoint.address.isIPv4 ? IPAddress.v4(127, 0, 0, 1) : IPAddress(v6: 0, 1)
            return Endpoint(loopback, port: endpoint.port)
        }
        // Loopback addresses come first.
        candidates = reachable.filter { $0.address.isLoopback } + reachable.filter { !$0.address.isLoopback }
    }

    /// Asks, and blocks the thread until the answer is there or `milliseconds` have passed.
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

    /// - Returns: nil when the address is not this machine's (any more).
    private mutating func ask(_ endpoint: Endpoint, within milliseconds: Int) -> Bool? {
        let end = Clock.now() + UInt64(milliseconds) * 1_000_000
        while true {
            // Sent from the address itself, so that no packet leaves the machine; with a new socket for each attempt,
            // so that another listener may get it.
            guard let socket = try? QuerySocket.open(to: endpoint, from: endpoint.address) else { return nil }
            let now = Clock.now()
            guard now < end else { return false }
            let id = random.uint16()
            let patience = min(Self.patience, Int((end - now) / 1_000_000) + 1)
            let isSent = (try? socket.send(Self.question(id).span)) == true
            let isReadable = isSent && socket.wait(milliseconds: patience)
            if isReadable, Self.isAnswer(socket, to: id) { return true }
            // Not sent, refused, or another message came. These come at once, so the next attempt has to wait.
            if !isSent || isReadable { Clock.sleep(milliseconds: patience) }
        }
    }

    private static func isAnswer(_ socket: borrowing QuerySocket, to id: UInt16) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 512)
        var room = buffer.mutableSpan
        guard case .bytes(let count) = try? socket.receive(into: &room), count >= 12 else { return false }
        return UInt16(buffer[0]) << 8 | UInt16(buffer[1]) == id && buffer[2] & 0x80 != 0
    }

    /// The query `localhost. A IN`, with RD.
    private static func question(_ id: UInt16) -> [UInt8] {
        [UInt8(id >> 8), UInt8(id & 0xFF), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 9] + Array("localhost".utf8) + [0, 0, 1, 0, 1]
    }
}
