package import Base
package import Configuration
package import Counters
package import DNSWire
import Forwarding
import HTTP
package import Log
package import Transport

/// Serves operators on the unix socket and monitoring on the metrics address, over HTTP/1.1.
///
/// It has a loop of its own and asks the other queues only for small copies, a few times a second at most, so that a
/// slow or hostile client here cannot slow DNS down.
package final class ControlServer: @unchecked Sendable {
    // Unchecked: everything but `loop` is used only on the loop, or before the loop starts.
    let loop: EventLoop
    /// The memory into which clients' octets are read.
    let scratch = Scratch(4096)
    private let unix: UnixListener?
    private let metrics: StreamListener?
    private let hosts: ServedHosts
    private let observer: Observer
    private let report: Report
    /// Explains a question; may be called on any thread. `done` gets nil if too many explanations are under way.
    private let explain: @Sendable (Explained.Question, _ done: @escaping @Sendable (Explained?) -> Void) -> Void
    /// Removes the answers of some names, and reports the number of removed answers; may be called on any thread.
    private let flush: @Sendable ([NameScope], _ done: @escaping @Sendable (Int) -> Void) -> Void
    /// Reloads the configuration; may be called on any thread. Nil if there is no configuration.
    private let reload: Reload?

    /// Reloads the configuration.
    package typealias Reload = @Sendable (_ done: @escaping @Sendable (ReloadOutcome) -> Void) -> Void

    private var connections: [ObjectIdentifier: ControlConnection] = [:]
    let watchers: Watchers
    private var history = History(at: Clock.now())
    private let historyFile: HistoryFile?
    /// Whether the history's file was read, so that the file may be written.
    private var isHistoryRead = false
    private let observations = Coalescer<Observation>()
    private let lives = Coalescer<Bool>()

    /// The most connections at once on each of the two sockets, so that monitoring cannot exclude operators; watchers
    /// have a limit of their own.
    private static let maximumConnections = 16

    /// The control socket, if it is configured and can be made. The daemon runs without the socket too, and logs that.
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
        flush: @escaping @Sendable ([NameScope], _ done: @escaping @Sendable (Int) -> Void) -> Void,
        reload: Reload?
    ) throws(SystemError) {
        // A container's probe and the end of the daemon wait for this loop, on a busy machine, too.
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

    /// The address of the metrics; nil if metrics are not served.
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
    /// - Returns: False if all connections wait for their answers.
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

    // MARK: Time

    private var nextDeadline: UInt64? {
        [
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

    /// - Parameter done: Called on the loop; with nil if a queue of the daemon is stuck.
    private func overview(_ done: @escaping (Overview?) -> Void) {
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
}

extension Report {
    func noControlSocket(_ error: SystemError) {
        log.warning("no control socket, so no command reaches this daemon: \(error)")
    }

    package func metrics(on endpoint: Endpoint) {
        log.notice("metrics and status page on http://\(endpoint)/")
    }

    func flushed(_ answers: Int) { log.notice("flushed: \(counted(answers, "answer")) forgotten") }
}

/// The requests, by method and path.
extension ControlServer {
    /// - Parameters:
    ///   - isOperator: Whether the request came over the unix socket, so that it may read everything and change state.
    ///   - done: Called once, on the loop.
    func answer(_ request: HTTPRequest, isOperator: Bool, _ done: @escaping @Sendable (ControlResponse) -> Void) {
        guard isOperator || hosts.contains(request.host) else {
            return done(ControlResponse(.misdirectedRequest, "Ask by address, or name this host in control.host.\n"))
        }
        let target = RequestTarget(request.target)
        guard let route = ControlRoute(rawValue: target.path), isOperator || !route.isForOperators else {
            return done(ControlResponse(.notFound, "There is no such page.\n"))
        }
        guard
            request.method == .get || request.method == .head
                ? !route.changes : request.method == .post && route.changes
        else {
            var response = ControlResponse(.methodNotAllowed, "That cannot be done here.\n")
            response.fields = "Allow: \(route.changes ? "POST" : "GET, HEAD")\r\n"
            return done(response)
        }
        let asJSON = target.values("format") == ["json"]
        switch route {
        case .flush: flush(target, done)
        case .reload:
            guard let reload else { return done(ControlResponse(nil)) }
            reload { [loop] outcome in loop.submit { done(ControlResponse(outcome)) } }
        case .explain: explain(target, asJSON: asJSON, done)
        case .watch: watch(target, done)
        case .health:
            // Callers that ask at the same time share one check.
            lives.ask(at: Clock.now()) { [observer] in
                done($0 ?? false ? ControlResponse(.ok, "alive\n") : .stuck(observer))
            }
        case .ready:
            observer.checkReadiness()
            overview { [observer] overview in
                guard let overview else { return done(.stuck(observer)) }
                done(ControlResponse(overview.isReady ? .ok : .serviceUnavailable, overview.headline + "\n"))
            }
        case .page:
            give(done) { overview in
                let isStill = !target.values("still").isEmpty
                let page = StatusPage(overview, host: Machine.hostName, isStill: isStill)
                var response = ControlResponse(.ok, page.html.text, type: "text/html; charset=utf-8")
                response.fields = page.fields
                return response
            }
        case .metrics:
            give(done) { overview in
                var overview = overview
                overview.process = .now()
                return ControlResponse(.ok, overview.metrics, type: MetricsText.type)
            }
        case .status:
            give(done) { asJSON ? .json($0.json) : ControlResponse(.ok, $0.text) }
        }
    }

    private func give(
        _ done: @escaping (ControlResponse) -> Void, _ make: @escaping (Overview) -> ControlResponse
    ) {
        overview { [observer] in done($0.map(make) ?? .stuck(observer)) }
    }

    /// Removes the cached answers of names, of all types. For `under` the names under the name count, too.
    private func flush(_ target: RequestTarget, _ done: @escaping @Sendable (ControlResponse) -> Void) {
        let given =
            target.values("name").map { ($0, NameScope.only) } + target.values("under").map { ($0, NameScope.under) }
        var scopes: [NameScope] = []
        for (text, scope) in given {
            guard let name = Name(text) else {
                return done(ControlResponse(.badRequest, "\(text) is not a domain name\n"))
            }
            scopes.append(scope(name))
        }
        guard !scopes.isEmpty else {
            return done(ControlResponse(.badRequest, "say which names are to be forgotten\n"))
        }
        flush(scopes) { [self] count in
            report.flushed(count)
            loop.submit { done(ControlResponse(.ok, "\(counted(count, "answer")) forgotten\n")) }
        }
    }

    private func explain(_ target: RequestTarget, asJSON: Bool, _ done: @escaping @Sendable (ControlResponse) -> Void) {
        let names = target.values("name")
        guard names.count == 1, let name = Name(names[0]) else {
            return done(ControlResponse(.badRequest, "give one domain name\n"))
        }
        guard let type = RecordType(parsing: target.values("type").first ?? "A") else {
            return done(ControlResponse(.badRequest, "that is not a record type\n"))
        }
        explain((name: name, type: type, asksAccounts: target.values("ask") == ["accounts"])) { [loop] explained in
            loop.submit {
                guard let explained else {
                    let words = "too much is being explained at once; ask again in a moment\n"
                    return done(ControlResponse(.serviceUnavailable, words))
                }
                done(asJSON ? .json(explained.json) : ControlResponse(.ok, explained.text + "\n"))
            }
        }
    }

    private func watch(_ target: RequestTarget, _ done: @escaping (ControlResponse) -> Void) {
        guard let filter = WatchFilter(target),
            let form = WatchText.Form(rawValue: target.values("form").first ?? WatchText.Form.json.rawValue)
        else {
            return done(ControlResponse(.badRequest, "what is to be seen cannot be read\n"))
        }
        guard !filter.by.isEmpty else { return done(watch(filter, form)) }
        overview { [self] overview in
            guard let overview else { return done(.stuck(observer)) }
            let words = Watched.By.words + overview.groups.map(\.name)
            if let other = filter.by.first(where: { !words.contains($0) }) {
                let line = "--by \(other) is not known here; give one of \(words.joined(separator: ", "))\n"
                return done(ControlResponse(.badRequest, line))
            }
            done(watch(filter, form))
        }
    }

    private func watch(_ filter: WatchFilter, _ form: WatchText.Form) -> ControlResponse {
        guard !watchers.isFull else {
            return ControlResponse(
                .serviceUnavailable, "\(Watchers.most) watch already, which is the most; end one of them\n")
        }
        var response = ControlResponse(
            .ok, "", type: form == .json ? "application/x-ndjson" : "text/plain; charset=utf-8")
        response.watch = (filter, form)
        return response
    }
}

/// The requests to a running daemon, by their paths.
package enum ControlRoute: String, Sendable {
    case status = "/status"
    case flush = "/flush"
    case reload = "/reload"
    case explain = "/explain"
    case watch = "/watch"
    case page = "/"
    case metrics = "/metrics"
    case health = "/healthz"
    case ready = "/readyz"

    /// What is not listed here is for the unix socket alone.
    var isForOperators: Bool { ![.page, .metrics, .health, .ready].contains(self) }

    /// Whether the request changes the daemon's state.
    var changes: Bool { self == .flush || self == .reload }

    /// How long a command waits for the response, in nanoseconds; nil: without end.
    var patience: UInt64? {
        switch self {
        case .watch: nil
        // Long lists of names take a while to read, and a big file of the cache to write.
        case .reload, .flush: ControlConnection.longestAnswering
        default: 5_000_000_000
        }
    }

    /// The target of a request with these names and values of parameters.
    func target(_ parameters: [(String, String)]) -> [UInt8] {
        let pairs = parameters.map { "\($0)=\(RequestTarget.encoded($1))" }
        return Array((rawValue + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&"))).utf8)
    }
}

extension ControlResponse {
    fileprivate init(_ outcome: ReloadOutcome?) {
        switch outcome {
        case .done(let text): self.init(.ok, text + "\n")
        case .wrong(let text): self.init(.unprocessableContent, text + "\n")
        case .unreadable(let text): self.init(.internalServerError, text + "\n")
        case nil: self.init(.serviceUnavailable, "this daemon has no configuration that could be read again\n")
        }
    }

    /// The response without an answer of a queue, which may have ended with the daemon.
    fileprivate static func stuck(_ observer: Observer) -> ControlResponse {
        ControlResponse(
            .serviceUnavailable,
            observer.isStopping
                ? "the daemon is stopping\n"
                : "a queue of the daemon stands still, and its questions with it: restart it\n")
    }

    fileprivate static func json(_ value: JSON) -> ControlResponse {
        ControlResponse(.ok, value.text + "\n", type: "application/json")
    }
}

/// The result of a reload of the configuration, each with lines for a person.
public enum ReloadOutcome: Sendable, Equatable {
    /// The settings are in effect.
    case done(String)
    /// The configuration is wrong. The former settings stay in effect.
    case wrong(String)
    /// The configuration could not be read. The former settings stay in effect.
    case unreadable(String)
}
