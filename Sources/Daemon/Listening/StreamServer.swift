import Base
import Configuration
import Counters
import Cryptography
import DNSWire
import Forwarding
import Log
import Streams
import Transport

/// All clients over one transport, TCP (RFC 7766), TLS (RFC 7858) or HTTPS (RFC 8484), on a loop of their own, so that
/// a slow client, or a handshake, delays no other traffic.
final class StreamServer: @unchecked Sendable {
    // Unchecked: all but `loop` is used only on the loop.
    let loop: EventLoop
    private var frontend: CurrentFrontend.Copy
    let forwarderLoop: ForwarderLoop
    private var room: ClientRoom
    private var listeners: [StreamListener]
    /// The clients with output to send at the end of the turn.
    private var gathered: [StreamClient] = []
    /// The connected clients, by number.
    private(set) var clients: [UInt64: StreamClient] = [:] {
        didSet { tally.set(.open, to: clients.count) }
    }
    let tally: Tally
    /// The certificate for clients; nil if they use DNS in the clear.
    private var certificate: TLSServerContext?
    /// When the keys of tickets change next, in the time of ``Clock``.
    private var nextKeys = Clock.now() + keysLast
    /// When ``checkClients()`` is due.
    private var nextCheck: UInt64?
    /// When the clients that are left are closed, and what is called then; nil before ``stop(by:_:)``.
    private var ending: (deadline: UInt64, stopped: @Sendable () -> Void)?
    let notes = WatchNotes()
    private let report: Report
    /// Memory into which clients' bytes are read.
    let scratch = Scratch(65_535)
    /// Memory in which replies are written before they are queued.
    let replies = Scratch(65_535)
    /// The time of day for clients over HTTPS.
    let clock = HTTPClock()

    /// How long tickets can be opened with a key, in nanoseconds: a day.
    private static let keysLast: UInt64 = 86_400_000_000_000

    /// The listeners of one transport.
    struct Listeners {
        let transport: Tally.Transport
        let listeners: [StreamListener]
        /// Nil if clients use DNS in the clear.
        let certificate: TLSServerContext?
    }

    init(
        _ sockets: Listeners, _ settings: Settings.Listen, frontend: CurrentFrontend, forwarderLoop: ForwarderLoop,
        report: Report
    ) throws(SystemError) {
        tally = Tally(sockets.transport)
        // A handshake takes a hundred times as long as an answer, and any client can ask for one.
        loop = try EventLoop(
            label: "httpdnsd.\(tally.transport.rawValue)",
            share: sockets.certificate == nil ? .usual : .lowest)
        certificate = sockets.certificate
        listeners = sockets.listeners
        self.frontend = CurrentFrontend.Copy(of: frontend)
        self.forwarderLoop = forwarderLoop
        self.report = report
        room = ClientRoom(settings, isEncrypted: certificate != nil)
    }

    private var guests: some Sequence<ClientRoom.Guest> { clients.values.lazy.map(\.guest) }

    func start() throws(SystemError) {
        for listener in listeners {
            // New handshakes come after the handshakes under way, which would have to make room for them.
            try listener.start(in: loop, givesWay: certificate != nil, failed: report.systemFailed(turnedAway)) {
                [unowned self] socket, address in
                accept(socket, address)
            }
        }
        loop.turnEnded = { [unowned self] in
            flush()
            endIfDone()
        }
        loop.deadlineReached = { [unowned self] in checkClients() }
        loop.start()
    }

    /// Applies other settings, to present clients too. From any thread.
    /// - Parameters:
    ///   - certificate: The certificate; nil if the former one stays.
    ///   - done: Called on the loop when the settings are in effect.
    func apply(
        _ settings: Settings.Listen, _ certificate: CertificateFiles.Prepared? = nil,
        _ done: @escaping @Sendable () -> Void
    ) {
        loop.submit { [self] in
            defer { done() }
            room.settings = settings
            take(certificate)
            closeStrangers()
            checkClients()
        }
    }

    /// Sets the certificate for clients that connect from now on. From any thread.
    func show(_ certificate: CertificateFiles.Prepared) { loop.submit { [self] in take(certificate) } }

    private func take(_ prepared: CertificateFiles.Prepared?) {
        guard let context = prepared?.contexts[tally.transport] else { return }
        (certificate, nextKeys) = (context, Clock.now() + Self.keysLast)
    }

    /// Takes no more clients or queries; waiting clients still get their answers until `stop`.
    /// - Parameter stopped: Called on the loop, after all queries taken before were submitted.
    func stopListening(_ stopped: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            defer { stopped() }
            for listener in listeners { listener.stop() }
            listeners = []
            for client in clients.values { client.stopReading() }
        }
    }

    /// Closes all clients, and stops the loop, after ``stopListening(_:)``: as soon as all clients have read their answers.
    /// - Parameters:
    ///   - deadline: When the clients that are left are closed nevertheless, in the time of ``Clock``.
    ///   - stopped: Called on the loop's queue when it has stopped.
    func stop(by deadline: UInt64, _ stopped: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            ending = (deadline, stopped)
            check(at: nextCheck)
        }
    }

    private func endIfDone() {
        guard let ending, clients.isEmpty || Clock.now() >= ending.deadline else { return }
        self.ending = nil
        for client in clients.values { client.close() }
        loop.stop(ending.stopped)
    }

    /// Calls the client's ``StreamClient/flush()`` at the end of the turn.
    func flushLater(_ client: StreamClient) { gathered.append(client) }

    private func flush() {
        var index = 0
        while index < gathered.count {
            gathered[index].flush()
            index += 1
        }
        gathered.removeAll(keepingCapacity: true)
    }

    private var turnedAway: String { "a client over \(tally.transport.rawValue.uppercased()) was turned away" }

    /// A client that may not ask uses none of the resources that allowed clients share, least of all a handshake.
    private func accept(_ socket: consuming StreamSocket, _ address: SocketAddress) {
        guard let source = frontend.source(ofAllowed: address.address) else {
            return countStranger(address.address)
        }
        while case let entry = room.entry(of: source, among: guests), entry != .free {
            guard case .insteadOf(let number) = entry else {
                tally.count(entry == .refused ? .refused : .refusedOfOneSource)
                return
            }
            tally.count(.closedForRoom)
            clients[number]?.closeIdle()
        }
        let tls = try? certificate?.session()
        // Without memory for a session a client is refused: it is never served in the clear.
        guard (tls == nil) == (certificate == nil) else {
            tally.count(.refused)
            return
        }
        do {
            // The numbers of clients that have left are not reused.
            let client = try StreamClient(
                socket, from: address.address, of: source, as: tally[.accepted], tls: tls, server: self)
            clients[client.number] = client
            tally.count(.accepted)
            client.waits = room.entered(client.guest)
            checkInTime(client)
        } catch {
            report.systemFailed(turnedAway, error)
        }
    }

    /// Closes the connections of clients that may not ask any more.
    private func closeStrangers() {
        for client in clients.values where frontend.source(ofAllowed: client.address) == nil {
            countStranger(client.address)
            client.closeIdle()
        }
    }

    private func countStranger(_ address: IPAddress) {
        tally.count(.closedNotAllowed)
        forwarderLoop.strangers.report(address, hasConnected: true)
    }

    /// Adds to the octets stored for clients; negative to subtract.
    func keep(_ change: Int) {
        room.held += change
        while change > 0, let client = room.tooMuch(among: guests).flatMap({ clients[$0] }) { cutOff(client) }
    }

    /// Closes the connection of a client for which too much is stored.
    func cutOff(_ client: StreamClient) {
        tally.count(.cutOff)
        client.close()
    }

    /// A client's handshake is done, or has failed.
    /// - Parameter failure: The failure; nil if the handshake is done, or the client did not cause the failure.
    func handshakeEnded(_ client: StreamClient, _ failure: Counted?) {
        if let failure {
            tally.count(.handshakeFailed)
            tally.count(failure)
        }
        if let next = room.handshakeEnded(client.guest) { clients[next]?.waits = false }
    }

    /// Whether the reply to this message is padded.
    func isPadded(_ message: Span<UInt8>) -> Bool { certificate != nil && Padding.isAsked(message) }

    /// Handles one message; a reply is then in ``replies``.
    func receive(_ message: Span<UInt8>, from address: IPAddress, at now: Tick) -> QueryFrontend.Outcome {
        let buffer = unsafe replies.buffer
        var reply = unsafe buffer.mutableSpan
        frontend.update()
        return frontend.receive(
            message, from: address, at: now, limit: Int(UInt16.max), tally: tally, into: &reply)
    }

    /// See ``QueryFrontend/asker(_:over:isProven:)``, after ``receive(_:from:at:)``.
    func asker(_ address: IPAddress, isProven: Bool) -> Asker {
        frontend.asker(address, over: tally.transport, isProven: isProven)
    }

    func remove(_ client: StreamClient) {
        if clients.removeValue(forKey: client.number) != nil { room.left(client.guest) }
    }

    /// Ensures that a client is checked in time. A check that is due earlier for another client stays as it is.
    func checkInTime(_ client: StreamClient) {
        let due = room.due(client.guest)
        if due < nextCheck ?? .max { check(at: due) }
    }

    private func checkClients() {
        let now = Clock.now()
        for client in clients.values where client.guest.isQuiet && room.due(client.guest) <= now {
            if client.guest.handshakeBegan == nil {
                tally.count(.closedIdle)
            } else {
                client.handshakeEnded(.handshakeTimedOut)
            }
            client.closeIdle()
        }
        if let certificate, now >= nextKeys {
            certificate.changeTicketKeys()
            nextKeys = now + Self.keysLast
        }
        check(at: room.nextCheck(among: guests, at: now))
    }

    private func check(at time: UInt64?) {
        nextCheck = [time, certificate.map { _ in nextKeys }, ending?.deadline].compactMap(\.self).min()
        loop.setDeadline(nextCheck)
    }
}
