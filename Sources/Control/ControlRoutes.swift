import Base
import DNSWire
import HTTP
import Transport

/// The requests of the control server, by method and path.
extension ControlServer {
    /// - Parameters:
    ///   - isOperator: the request came over the unix socket, so it may read everything and change state.
    ///   - done: called once, on the loop.
    func answer(_ request: HTTPRequest, isOperator: Bool, _ done: @escaping (ControlResponse) -> Void) {
        guard serves(request, isOperator: isOperator) else {
            return done(ControlResponse(.misdirected, "Ask by address, or name this host in control.host.\n"))
        }
        let target = RequestTarget(request.target)
        guard let route = Route(target.path), isOperator || !route.isForOperators else {
            return done(ControlResponse(.notFound, "There is no such page.\n"))
        }
        guard
            request.method == .get || request.method == .head
                ? !route.changes : request.method == .post && route.changes
        else { return done(ControlResponse(.methodNotAllowed, "That cannot be done here.\n")) }
        let asJSON = target.values("format") == ["json"]
        switch route {
        case .flush: flush(target.values("name"), done)
        case .explain: explain(target, asJSON: asJSON, done)
        case .health:
            liveness { isAlive in
                done(isAlive ? ControlResponse(.ok, "alive\n") : ControlResponse(.unavailable, "a queue is stuck\n"))
            }
        case .ready:
            overview { overview in
                guard let overview else { return done(.stuck) }
                done(ControlResponse(overview.isReady ? .ok : .unavailable, overview.headline + "\n"))
            }
        case .page:
            give(done) { overview in
                let page = StatusPage(overview)
                var response = ControlResponse(.ok, page.html, type: "text/html; charset=utf-8")
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
        case .cache:
            give(done) { asJSON ? .json($0.cacheJSON) : ControlResponse(.ok, $0.cacheText) }
        }
    }

    private func give(
        _ done: @escaping (ControlResponse) -> Void, _ make: @escaping (Overview) -> ControlResponse
    ) {
        overview { done($0.map(make) ?? .stuck) }
    }

    /// Forgets the answers of all names, or of the given ones: all types of each, but not the names under it.
    private func flush(_ texts: [String], _ done: @escaping (ControlResponse) -> Void) {
        var names: [Name] = []
        for text in texts {
            guard let name = Name(text) else {
                return done(ControlResponse(.badRequest, "\(text) is not a domain name\n"))
            }
            names.append(name)
        }
        func say(_ count: Int) {
            done(ControlResponse(.ok, "\(count) \(count == 1 ? "answer" : "answers") forgotten\n"))
        }
        guard !names.isEmpty else { return forget(nil, say) }
        func next(_ place: Int, _ sum: Int) {
            guard place < names.count else { return say(sum) }
            forget(names[place]) { next(place + 1, sum + $0) }
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
        explained(Explained.Question(name: name, type: type, asksAccounts: target.values("ask") == ["accounts"])) {
            guard let explained = $0 else {
                return done(
                    ControlResponse(.unavailable, "too much is being explained at once; ask again in a moment\n"))
            }
            let type = asJSON ? "application/json" : "text/plain; charset=utf-8"
            done(ControlResponse(.ok, explained.printed(asJSON: asJSON) + "\n", type: type))
        }
    }

    private enum Route: String {
        case status = "/status"
        case cache = "/cache"
        case flush = "/flush"
        case explain = "/explain"
        case page = "/"
        case metrics = "/metrics"
        case health = "/healthz"
        case ready = "/readyz"

        init?(_ path: String) { self.init(rawValue: path) }

        var isForOperators: Bool {
            switch self {
            case .status, .cache, .flush, .explain: true
            case .page, .metrics, .health, .ready: false
            }
        }

        var changes: Bool { self == .flush }
    }
}

extension ControlResponse {
    fileprivate static var stuck: ControlResponse { ControlResponse(.unavailable, "a queue is stuck\n") }

    fileprivate static func json(_ value: JSON) -> ControlResponse {
        ControlResponse(.ok, value.text + "\n", type: "application/json")
    }
}

/// A request's path and the parameters behind it (RFC 3986 §3.3, §3.4).
struct RequestTarget {
    let path: String
    private let parameters: [(name: String, value: String)]

    init(_ target: [UInt8]) {
        let parts = target.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        path = Self.decoded(parts[0])
        guard parts.count == 2 else {
            parameters = []
            return
        }
        parameters = parts[1].split(separator: UInt8(ascii: "&")).map { pair in
            let sides = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return (Self.decoded(sides[0]), sides.count == 2 ? Self.decoded(sides[1]) : "")
        }
    }

    func values(_ name: String) -> [String] { parameters.filter { $0.name == name }.map(\.value) }

    /// A text that cannot be decoded stays as it is.
    private static func decoded(_ octets: ArraySlice<UInt8>) -> String {
        var decoded: [UInt8] = []
        var rest = octets
        while let octet = rest.popFirst() {
            let digits = rest.prefix(2)
            if octet == UInt8(ascii: "%"), digits.count == 2,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                decoded.append(value)
                rest = rest.dropFirst(2)
            } else {
                decoded.append(octet)
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    /// A value with the escapes that a target needs.
    static func encoded(_ text: String) -> String {
        text.utf8.map { octet -> String in
            switch octet {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                return String(UnicodeScalar(octet))
            default:
                let digits = String(octet, radix: 16, uppercase: true)
                return "%" + (digits.count == 1 ? "0" : "") + digits
            }
        }.joined()
    }
}
