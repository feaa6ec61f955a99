import Addresses
import Configuration
import DNSCache
import DNSWire
import Transport

/// All TCP clients (RFC 7766), on a loop of their own so that a slow one is nobody else's affair.
final class StreamServer: @unchecked Sendable {
    // Unchecked: everything but `loop` is touched on the loop alone.
    let loop: EventLoop
    private let reception: Reception
    let resolver: Resolver
    private let maximumClients: Int
    private let idleNanoseconds: UInt64
    private var listeners: [StreamListener]
    private var clients: [ObjectIdentifier: StreamClient] = [:]
    private(set) var refusedClients: UInt64 = 0
    let tally = Tally(.tcp)
    private let report: Report
    /// What a client's bytes are read into before they are its own, and where a reply is written before it is queued.
    let scratch = Scratch(65_535)

    init(
        _ listeners: [StreamListener], _ settings: Settings.Listen, reception: Reception, resolver: Resolver,
        report: Report
    ) throws(SystemError) {
        loop = try EventLoop(label: "httpdnsd.tcp")
        self.listeners = listeners
        self.reception = reception
        self.resolver = resolver
        self.report = report
        maximumClients = settings.tcpClients
        idleNanoseconds = UInt64(settings.tcpIdleSeconds) * 1_000_000_000
    }

    func start() throws(SystemError) {
        for listener in listeners {
            try listener.start(in: loop, failed: report.systemFailed) { [unowned self] socket, address in
                accept(socket, address)
            }
        }
        loop.deadlineReached = { [unowned self] in closeIdleClients() }
        loop.start()
    }

    /// Takes no more clients or queries; those waiting still get their answers until `stop`.
    /// - Parameter stopped: called on the loop; what was taken before has been submitted by then.
    func stopListening(_ stopped: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            defer { stopped() }
            for listener in listeners { listener.stop() }
            listeners = []
            for client in clients.values { client.stopReading() }
        }
    }

    func stop(_ stopped: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            for client in clients.values { client.close() }
            loop.stop(stopped)
        }
    }

    /// Connections at this moment; on the loop.
    var openClients: Int { clients.count }

    private func accept(_ socket: consuming StreamSocket, _ address: SocketAddress) {
        if clients.count >= maximumClients, !makeRoom() {
            refusedClients += 1
            return
        }
        do {
            let client = try StreamClient(socket, from: address.address, server: self)
            clients[ObjectIdentifier(client)] = client
            scheduleIdleCheck()
        } catch {
            report.systemFailed(error)
        }
    }

    /// At the cap the client that has been idle longest goes, as RFC 7766 §6.2.3 advises, else the one whose half-sent
    /// query or unread answer is oldest; if all wait for answers, the newest is refused.
    private func makeRoom() -> Bool {
        func oldest(_ clients: [StreamClient]) -> StreamClient? {
            clients.min { $0.lastActivity < $1.lastActivity }
        }
        let all = Array(clients.values)
        guard let client = oldest(all.filter(\.isIdle)) ?? oldest(all.filter(\.isQuiet)) else { return false }
        client.close()
        return true
    }

    /// Takes one message; a reply is in the scratch memory then.
    func receive(_ message: Span<UInt8>, from address: IPAddress, at now: Tick) -> Reception.Outcome {
        let buffer = unsafe scratch.buffer
        var reply = unsafe buffer.mutableSpan
        return reception.receive(message, from: address, at: now, limit: Int(UInt16.max), tally: tally, into: &reply)
    }

    func remove(_ client: StreamClient) {
        clients.removeValue(forKey: ObjectIdentifier(client))
    }

    private func closeIdleClients() {
        let now = Clock.now()
        for client in clients.values where client.isQuiet && client.lastActivity + idleNanoseconds <= now {
            client.close()
        }
        scheduleIdleCheck()
    }

    /// The next look is when the client that is silent longest runs out of time, but not more than once a quarter of
    /// the idle time, so that many clients cost little.
    private func scheduleIdleCheck() {
        guard let oldest = clients.values.lazy.map(\.lastActivity).min() else { return loop.setDeadline(nil) }
        loop.setDeadline(max(oldest + idleNanoseconds, Clock.now() + idleNanoseconds / 4))
    }
}
