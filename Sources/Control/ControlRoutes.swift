import Base
import Counters
import DNSWire
import HTTP
import Transport

/// The requests of the control server, by method and path.
extension ControlServer {
    /// - Parameters:
    ///   - isOperator: The request came over the unix socket, so it may read everything and change state.
    ///   - done: Called once, on the loop.
    func answer(_ request: HTTPRequest, isOperator: Bool, _ done: @escaping (ControlResponse) -> Void) {
        guard serves(request, isOperator: isOperator) else {
            return done(ControlResponse(.misdirectedRequest, "Ask by address, or name this host in control.host.\n"))
        }
        let target = RequestTarget(request.target)
        guard let route = Route(target.path), isOperator || !route.isForOperators else {
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
        case .reload: reload { done(ControlResponse($0)) }
        case .explain: explain(target, asJSON: asJSON, done)
        case .watch: watch(target, done)
        case .health:
            liveness { isAlive in
                done(isAlive ? ControlResponse(.ok, "alive\n") : .stuck)
            }
        case .ready:
            checkReadiness()
            overview { overview in
                guard let overview else { return done(.stuck) }
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
        overview { done($0.map(make) ?? .stuck) }
    }

    /// Removes the cached answers of names: for `name` of all types, for `under` also of the names under it.
    private func flush(_ target: RequestTarget, _ done: @escaping (ControlResponse) -> Void) {
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
        func next(_ place: Int, _ sum: Int) {
            guard place < scopes.count else {
                return done(ControlResponse(.ok, "\(counted(sum, "answer")) forgotten\n"))
            }
            forget(scopes[place]) { next(place + 1, sum + $0) }
        }
        next(0, 0)
    }

    private func explain(_ target: RequestTarget, asJSON: Bool, _ done: @escaping (ControlResponse) -> Void) {
        let names = target.values("name")
        guard names.count == 1, let name = Name(names[0]) else {
            return done(ControlResponse(.badRequest, "give one domain name\n"))
        }
        guard let type = RecordType(parsing: target.values("type").first ?? "A") else {
            return done(ControlResponse(.badRequest, "that is not a record type\n"))
        }
        explained(Explained.Question(name, type, asksAccounts: target.values("ask") == ["accounts"])) {
            guard let explained = $0 else {
                return done(
                    ControlResponse(.serviceUnavailable, "too much is being explained at once; ask again in a moment\n")
                )
            }
            let type = asJSON ? "application/json" : "text/plain; charset=utf-8"
            done(ControlResponse(.ok, explained.printed(asJSON: asJSON) + "\n", type: type))
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
            guard let overview else { return done(.stuck) }
            let words = Watched.By.words + overview.groups.map(\.name)
            if let other = filter.by.first(where: { !words.contains($0) }) {
                let line = "--by \(other) is not known here; give one of \(words.joined(separator: ", "))\n"
                return done(ControlResponse(.badRequest, line))
            }
            done(watch(filter, form))
        }
    }

    private func watch(_ filter: WatchFilter, _ form: WatchText.Form) -> ControlResponse {
        guard hasRoomToWatch else {
            return ControlResponse(
                .serviceUnavailable, "\(Watchers.most) watch already, which is the most; end one of them\n")
        }
        var response = ControlResponse(
            .ok, "", type: form == .json ? "application/x-ndjson" : "text/plain; charset=utf-8")
        response.watch = (filter, form)
        return response
    }

    private enum Route: String {
        case status = "/status"
        case flush = "/flush"
        case reload = "/reload"
        case explain = "/explain"
        case watch = "/watch"
        case page = "/"
        case metrics = "/metrics"
        case health = "/healthz"
        case ready = "/readyz"

        init?(_ path: String) { self.init(rawValue: path) }

        var isForOperators: Bool {
            switch self {
            case .status, .flush, .reload, .explain, .watch: true
            case .page, .metrics, .health, .ready: false
            }
        }

        var changes: Bool { self == .flush || self == .reload }
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

    fileprivate static var stuck: ControlResponse {
        ControlResponse(
            .serviceUnavailable, "a queue of the daemon stands still, and its questions with it: restart it\n")
    }

    fileprivate static func json(_ value: JSON) -> ControlResponse {
        ControlResponse(.ok, value.text + "\n", type: "application/json")
    }
}
