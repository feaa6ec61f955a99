import Configuration
import Forwarding

/// The room for the clients of one transport, TCP, TLS or HTTPS: which may connect, which is closed, and which begins a
/// handshake. Its inputs are the clients and the time; it closes no connection itself.
///
/// | event | limit | decision |
/// | --- | --- | --- |
/// | a client connects | its source has a quarter of `listen.tcpClients`, or its network on a link seven eighths | one of these makes room, else it is refused |
/// | | there are `listen.tcpClients` | one of all makes room, else it is refused |
/// | one makes room | | first the longest handshake; else the longest idle one, as RFC 7766 §6.2.3 advises; else the oldest half-sent query or unread answer; never a client that waits for an answer |
/// | a handshake is to begin | its source has ``Shares/handshakes`` under way | it waits until one of them ends |
/// | octets are stored | all have more than ``maximumHeld`` | of the source with the most, the client with the most is disconnected; a source of the network on a link with the most, if that has more |
/// | time passes | a handshake takes ``longestHandshake`` | it is closed |
/// | | a connection is idle for `listen.tcpIdleSeconds`, and no query is being looked up | it is closed |
///
/// This host is no source here: its programs may have all connections and handshakes, and of octets each connection has
/// its own part.
struct ClientRoom {
    /// A connected client.
    struct Guest {
        let number: UInt64
        let source: Source
        /// When octets last came from the client or went to it.
        var lastActivity: UInt64 = 0
        /// When the client connected, while its TLS handshake is under way or has failed; nil if that is done, or there is
        /// none.
        var handshakeBegan: UInt64?
        /// Octets of partial queries and unread answers.
        var held = 0
        /// Whether no query is being looked up for the client; half-sent queries or unread answers do not hold it open
        /// without end.
        var isQuiet = true
    }

    enum Entry: Equatable {
        case free
        /// This client makes room, and is closed.
        case insteadOf(UInt64)
        case refusedOfSource, refused
    }

    private struct Handshakes {
        var underWay = 0
        /// The numbers of the clients that wait to begin their handshakes, in order.
        var waiting: [UInt64] = []
    }

    /// The most octets stored for all clients: sixteen at their own limit.
    static let maximumHeld = 16 * StreamClient.maximumQueued
    /// The longest handshake, in nanoseconds.
    static let longestHandshake: UInt64 = 10_000_000_000

    private let isEncrypted: Bool
    /// The settings in effect, for present clients too.
    var settings: Settings.Listen
    private var counts = SourceCounts<Int>()
    /// Octets stored for all clients.
    var held = 0
    private var handshakes: [Source: Handshakes] = [:]

    init(_ settings: Settings.Listen, isEncrypted: Bool) { (self.settings, self.isEncrypted) = (settings, isEncrypted) }

    private var idle: UInt64 { UInt64(settings.tcpIdleSeconds) * 1_000_000_000 }

    /// Whether one more client of a source may connect.
    func entry(of source: Source, among guests: some Sequence<Guest>) -> Entry {
        let most = settings.tcpClients
        if source != .host, counts[source] >= max(1, most / 4) {
            return makingRoom(among: guests.filter { $0.source == source }).map { .insteadOf($0) } ?? .refusedOfSource
        }
        if let network = source.network, counts[network: network] >= Shares.ofNetwork(most) {
            return makingRoom(among: guests.filter { $0.source.network == network }).map { .insteadOf($0) }
                ?? .refusedOfSource
        }
        guard counts.all >= most else { return .free }
        return makingRoom(among: Array(guests)).map { .insteadOf($0) } ?? .refused
    }

    /// The client that makes room.
    private func makingRoom(among guests: [Guest]) -> UInt64? {
        func oldest(_ isMeant: (Guest) -> Bool) -> UInt64? {
            guests.filter(isMeant).min { $0.lastActivity < $1.lastActivity }?.number
        }
        return oldest { $0.handshakeBegan != nil } ?? oldest { $0.isQuiet && $0.held == 0 } ?? oldest(\.isQuiet)
    }

    /// Adds a client that has connected.
    /// - Returns: Whether its handshake must wait.
    mutating func entered(_ guest: Guest) -> Bool {
        counts.add(1, to: guest.source)
        guard isEncrypted, guest.source != .host else { return false }
        var those = handshakes[guest.source] ?? Handshakes()
        let waits = those.underWay >= Shares.handshakes
        if waits { those.waiting.append(guest.number) } else { those.underWay += 1 }
        handshakes[guest.source] = those
        return waits
    }

    mutating func left(_ guest: Guest) { counts.add(-1, to: guest.source) }

    /// A client's handshake is done, or has failed.
    /// - Returns: The client that begins its own now.
    mutating func handshakeEnded(_ guest: Guest) -> UInt64? {
        guard var those = handshakes[guest.source] else { return nil }
        defer { handshakes[guest.source] = those.underWay > 0 ? those : nil }
        if let index = those.waiting.firstIndex(of: guest.number) {
            those.waiting.remove(at: index)
            return nil
        }
        guard !those.waiting.isEmpty else {
            those.underWay -= 1
            return nil
        }
        return those.waiting.removeFirst()
    }

    /// The client to disconnect, since too many octets are stored for all clients; nil if there is room.
    func tooMuch(among guests: some Sequence<Guest>) -> UInt64? {
        guard held > Self.maximumHeld else { return nil }
        let holding = guests.filter { $0.held > 0 }
        var parts = SourceCounts<Int>()
        for guest in holding where guest.source != .host { parts.add(guest.held, to: guest.source) }
        func standing(_ guest: Guest) -> (Int, Int, Int) {
            guard guest.source != .host else { return (guest.held, guest.held, guest.held) }
            let part = parts[guest.source]
            return (guest.source.network.map { parts[network: $0] } ?? part, part, guest.held)
        }
        return holding.max { standing($0) < standing($1) }?.number
    }

    /// When an idle client is closed; never while it waits for an answer.
    func due(_ guest: Guest) -> UInt64 {
        guest.handshakeBegan.map { $0 + Self.longestHandshake } ?? guest.lastActivity + idle
    }

    /// The next check of clients: at most once in a quarter of a client's time, so that many clients cost little.
    func nextCheck(among guests: some Sequence<Guest>, at now: UInt64) -> UInt64? {
        let shortest = isEncrypted ? min(idle, Self.longestHandshake) : idle
        return guests.map(due).min().map { max($0, now + shortest / 4) }
    }
}
