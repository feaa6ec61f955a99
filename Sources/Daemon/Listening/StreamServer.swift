import Base
import Configuration
import Counters
import DNSWire
import Forwarding
import Log
import Transport

/// All TCP clients (RFC 7766), on a loop of their own so that a slow one is nobody else's affair.
final class StreamServer: @unchecked Sendable {
    // Unchecked: everything but `loop` is touched on the loop alone.
    let loop: EventLoop
    private var frontend: CurrentFrontend.Copy
    let forwarderLoop: ForwarderLoop
    private var maximumClients: Int
    private var idleNanoseconds: UInt64
    private var listeners: [StreamListener]
    private var clients: [ObjectIdentifier: StreamClient] = [:]
    /// Clients of each source that is not this host.
    private var ofSource: [Source: Int] = [:]
    /// Octets kept for all clients: what they have sent in part and what they have not read.
    private var kept = 0
    private(set) var counters = StreamCounters()
    let tally = Tally(.tcp)
    private let report: Report
    /// What a client's bytes are read into before they are its own, and where a reply is written before it is queued.
    let scratch = Scratch(65_535)

    /// Connections that one source may have of `listen.tcpClients`: a quarter, so that no single one shuts out the
    /// others. This host's own programs all come from loopback and may have them all.
    private var maximumOfSource: Int { max(1, maximumClients / 4) }
    /// Octets kept for all clients: sixteen that are each at their limit. Past it the one with the most is cut off.
    static let maximumKept = 16 * StreamClient.maximumQueued

    init(
        _ listeners: [StreamListener], _ settings: Settings.Listen, frontend: CurrentFrontend,
        forwarderLoop: ForwarderLoop,
        report: Report
    ) throws(SystemError) {
        loop = try EventLoop(label: "httpdnsd.tcp")
        self.listeners = listeners
        self.frontend = CurrentFrontend.Copy(of: frontend)
        self.forwarderLoop = forwarderLoop
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

    /// Other settings, for the clients that are there as well. From any thread.
    func apply(_ settings: Settings.Listen) {
        loop.submit { [self] in
            maximumClients = settings.tcpClients
            idleNanoseconds = UInt64(settings.tcpIdleSeconds) * 1_000_000_000
            closeIdleClients()
        }
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
        let source = Source(address.address)
        if source != .host, ofSource[source, default: 0] >= maximumOfSource, !makeRoom(of: source) {
            counters.refusedOfOneSource += 1
            return
        }
        if clients.count >= maximumClients, !makeRoom(of: nil) {
            counters.refused += 1
            return
        }
        do {
            let client = try StreamClient(socket, from: address.address, server: self)
            clients[ObjectIdentifier(client)] = client
            if source != .host { ofSource[source, default: 0] += 1 }
            counters.accepted += 1
            scheduleIdleCheck()
        } catch {
            report.systemFailed(error)
        }
    }

    /// At a cap the client that has been idle longest goes, as RFC 7766 §6.2.3 advises, else the one whose half-sent
    /// query or unread answer is oldest; if all wait for answers, the newest is refused.
    /// - Parameter source: whose clients are meant; nil: all.
    private func makeRoom(of source: Source?) -> Bool {
        func oldest(_ clients: [StreamClient]) -> StreamClient? {
            clients.min { $0.lastActivity < $1.lastActivity }
        }
        let those = clients.values.filter { source == nil || $0.source == source }
        guard let client = oldest(those.filter(\.isIdle)) ?? oldest(those.filter(\.isQuiet)) else { return false }
        counters.closedForRoom += 1
        client.close()
        return true
    }

    /// So many octets more, or fewer, are kept for a client.
    func keep(_ change: Int) {
        kept += change
        guard change > 0 else { return }
        while kept > Self.maximumKept, let largest = clients.values.max(by: { $0.kept < $1.kept }) {
            cutOff(largest)
        }
    }

    /// Closes the connection of a client that lets too much gather.
    func cutOff(_ client: StreamClient) {
        counters.cutOff += 1
        client.close()
    }

    /// Takes one message; a reply is in the scratch memory then.
    func receive(_ message: Span<UInt8>, from address: IPAddress, at now: Tick) -> QueryFrontend.Outcome {
        let buffer = unsafe scratch.buffer
        var reply = unsafe buffer.mutableSpan
        frontend.update()
        return frontend.current.receive(
            frontend.current.read(message), message, from: address, at: now, limit: Int(UInt16.max), tally: tally,
            into: &reply)
    }

    func remove(_ client: StreamClient) {
        guard clients.removeValue(forKey: ObjectIdentifier(client)) != nil, client.source != .host else { return }
        let left = ofSource[client.source, default: 1] - 1
        ofSource[client.source] = left > 0 ? left : nil
    }

    private func closeIdleClients() {
        let now = Clock.now()
        for client in clients.values where client.isQuiet && client.lastActivity + idleNanoseconds <= now {
            counters.closedIdle += 1
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
