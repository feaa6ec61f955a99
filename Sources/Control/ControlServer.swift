package import Base
package import Configuration
package import Counters
package import DNSWire
import HTTP
package import Log
package import Transport

/// Serves operators on the unix socket and monitoring on the metrics address, over HTTP/1.1.
///
/// It has a loop of its own and asks the other queues only for small copies, a few times a second at most, so that a
/// slow or hostile client here cannot slow DNS down.
package final class ControlServer: @unchecked Sendable {
    // Unchecked: all but `loop` is used only on the loop, or before it starts.
    let loop: EventLoop
    /// The memory into which clients' octets are read.
    let scratch = Scratch(4096)
    private let unix: UnixListener?
    private let metrics: StreamListener?
    private let hosts: ServedHosts
    private let observer: Observer
    private let report: Report
    /// Explains a question; may be called on any thread. `done` gets nil if too many explanations are under way.
    let explain: @Sendable (Explained.Question, _ done: @escaping @Sendable (Explained?) -> Void) -> Void
    /// Removes the answers of some names, and reports the number of removed answers; may be called on any thread.
    private let flush: @Sendable (NameScope, _ done: @escaping @Sendable (Int) -> Void) -> Void
    /// Reloads the configuration; may be called on any thread. Nil: there is none.
    private let reload: Reload?

    /// Reloads the configuration.
    package typealias Reload = @Sendable (_ done: @escaping @Sendable (ReloadOutcome) -> Void) -> Void

    private var connections: [ObjectIdentifier: ControlConnection] = [:]
    private let watchers: Watchers
    private var history = History(at: Clock.now())
    private let historyFile: HistoryFile?
    /// Whether the file was read, so that it may be written.
    private var isHistoryRead = false
    private let observations = Coalescer<Observation>()
    private let lives = Coalescer<Bool>()

    /// The most connections at once on each of the two sockets, so that monitoring cannot exclude operators; watchers
    /// have a limit of their own.
    private static let maximumConnections = 16

    /// The control socket, if it is configured and can be made; the daemon runs without it too, and logs that.
    package static func listen(_ settings: Settings.Control, _ report: Report) -> UnixListener? {
        guard !settings.socket.isEmpty else { return nil }
        do throws(SystemError) {
            return try UnixListener.listen(settings.socket)
        } catch {
            report.noControlSocket(error)
            return nil
        }
    }

    package init(
        _ unix: UnixListener?, metrics: StreamListener?, host: Name?, observer: Observer, history: HistoryFile?,
        watched: [WatchNotes], report: Report,
        explain: @escaping @Sendable (Explained.Question, _ done: @escaping @Sendable (Explained?) -> Void) -> Void,
        flush: @escaping @Sendable (NameScope, _ done: @escaping @Sendable (Int) -> Void) -> Void,
        reload: Reload?
    ) throws(SystemError) {
        // A container's probe and the end of the daemon wait for it, on a machine that is busy, too.
        loop = try EventLoop(label: "httpdnsd.control", share: .lower)
        (self.unix, self.metrics, hosts) = (unix, metrics, ServedHosts(host))
        (self.observer, self.report, self.explain) = (observer, report, explain)
        (self.flush, self.reload) = (flush, reload)
        watchers = Watchers(watched)
        historyFile = history
        observations.begin = { [unowned self] round in
            observer.observe { [self] observation in
                loop.submit { [self] in observations.arrived(observation, in: round) }
            }
        }
        lives.begin = { [unowned self] round in
            observer.liveness { [self] isAlive in loop.submit { [self] in lives.arrived(isAlive, in: round) } }
        }
    }

    /// The address of the metrics; nil: there is none.
    package var metricsEndpoint: Endpoint? { metrics?.local }

    package func start() throws(SystemError) {
        try unix?.start(in: loop, failed: report.systemFailed("a command was turned away at the control socket")) {
            [unowned self] in accept($0, isOperator: true)
        }
        try metrics?.start(in: loop, failed: report.systemFailed("a request was turned away at the metrics address")) {
            [unowned self] socket, _ in
            accept(socket, isOperator: false)
        }
        loop.deadlineReached = { [unowned self] in expire() }
        loop.turnEnded = { [unowned self] in loop.setDeadline(nextDeadline) }
        loop.setDeadline(nextDeadline)
        loop.start()
        historyFile?.read { [self] known in
            loop.submit { [self] in
                history.takeOver(known)
                isHistoryRead = true
            }
        }
    }

    package func stop(_ stopped: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            unix?.stop()
            metrics?.stop()
            for connection in connections.values { connection.close() }
            loop.stop(stopped)
        }
    }

    private func accept(_ socket: consuming StreamSocket, isOperator: Bool) {
        guard makeRoom(isOperator: isOperator) else { return }
        // A connection that the loop cannot watch is closed, which its client notices.
        guard let connection = try? ControlConnection(socket, isOperator: isOperator, server: self) else { return }
        connections[ObjectIdentifier(connection)] = connection
    }

    /// At the limit, closes the oldest connection that was answered, else the oldest without a whole request, so that
    /// idle connections, however fast they are opened, cannot exclude a client with a request.
    /// - Returns: false: all connections wait for their answers.
    private func makeRoom(isOperator: Bool) -> Bool {
        func alike() -> [ControlConnection] {
            connections.values.filter { $0.isOperator == isOperator && $0.phase != .watching }
        }
        guard alike().count >= Self.maximumConnections else { return true }
        // Connections accepted in this turn of the loop have not been read yet.
        for connection in alike() where connection.phase == .reading { connection.read() }
        let left = alike()
        guard left.count >= Self.maximumConnections else { return true }
        func oldest(_ phase: ControlConnection.Phase) -> ControlConnection? {
            left.filter { $0.phase == phase }.min { $0.begun < $1.begun }
        }
        guard let victim = oldest(.ending) ?? oldest(.reading) ?? oldest(.writing) else { return false }
        victim.close()
        return true
    }

    func remove(_ connection: ControlConnection) {
        connections.removeValue(forKey: ObjectIdentifier(connection))
        unix?.connectionEnded()
        watchers.remove(connection)
    }

    /// Whether there is room for one more watcher.
    var hasRoomToWatch: Bool { !watchers.isFull }

    /// - Parameter connection: The head of its response was sent.
    func watch(_ connection: ControlConnection, _ watch: (filter: WatchFilter, form: WatchText.Form)) {
        watchers.add(connection, watch.filter, watch.form, at: Clock.now())
    }

    // MARK: Time

    private var nextDeadline: UInt64? {
        return [
            connections.values.lazy.compactMap(\.end).min(), history.next, observations.nextDeadline,
            lives.nextDeadline, watchers.nextDeadline,
        ]
        .compactMap { $0 }.min()
    }

    private func expire() {
        let now = Clock.now()
        for connection in connections.values where connection.end.map({ $0 <= now }) ?? false {
            connection.close()
        }
        watchers.expire(at: now)
        if history.isOver(at: now) { overview { _ in } }
        observations.expire(at: now)
        lives.expire(at: now)
    }

    // MARK: Requests

    /// Whether a request is addressed to this server; on the unix socket each request is.
    func serves(_ request: HTTPRequest, isOperator: Bool) -> Bool { isOperator || hosts.contains(request.host) }

    /// - Parameter done: Called on the loop; nil: a queue of the daemon is stuck.
    func overview(_ done: @escaping (Overview?) -> Void) {
        observations.ask(at: Clock.now()) { [unowned self] observation in
            guard let observation else { return done(nil) }
            // The minute may have ended during the observation.
            _ = history.isOver(at: observation.at.nanoseconds)
            if history.take(observation), isHistoryRead { historyFile?.save(history.past(observation)) }
            done(Overview(observation, history.hour(observation), history.past(observation)))
        }
    }

    /// Writes the present history. Call before the other queues end.
    /// - Parameter done: Called once, on any thread, when the data was passed to the writer.
    package func keepHistory(_ done: @escaping @Sendable () -> Void) {
        guard let historyFile else { return done() }
        loop.submit { [self] in
            overview { overview in
                if let overview, self.isHistoryRead { historyFile.save(overview.past) }
                done()
            }
        }
    }

    /// See ``Observer/checkReadiness()``.
    func checkReadiness() { observer.checkReadiness() }

    /// Whether each queue makes progress; callers that ask at the same time share one check.
    func liveness(_ done: @escaping (Bool) -> Void) {
        lives.ask(at: Clock.now()) { done($0 ?? false) }
    }

    func forget(_ names: NameScope, _ done: @escaping (Int) -> Void) {
        let reply = OnLoop(done)
        flush(names) { [self] count in
            report.flushed(count)
            loop.submit { reply.value(count) }
        }
    }

    /// - Parameter done: Called with nil: there is no configuration.
    func reload(_ done: @escaping (ReloadOutcome?) -> Void) {
        guard let reload else { return done(nil) }
        let reply = OnLoop(done)
        reload { [self] outcome in loop.submit { reply.value(outcome) } }
    }

    func explained(_ question: Explained.Question, _ done: @escaping (Explained?) -> Void) {
        let reply = OnLoop(done)
        explain(question) { [self] explained in loop.submit { reply.value(explained) } }
    }

    /// A closure of the loop that other queues return to the loop without using it.
    private final class OnLoop<Value>: @unchecked Sendable {
        // Unchecked: made on the loop and called on the loop.
        let value: (Value) -> Void
        init(_ value: @escaping (Value) -> Void) { self.value = value }
    }
}

extension Report {
    func noControlSocket(_ error: SystemError) {
        log.warning("no control socket, so no status, reload, flush, explain and watch: \(error)")
    }

    package func metrics(on endpoint: Endpoint) {
        log.notice("metrics and status page on http://\(endpoint)/")
    }

    func flushed(_ answers: Int) {
        log.notice("flushed: \(counted(answers, "answer")) forgotten")
    }
}
