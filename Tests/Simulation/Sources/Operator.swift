import TestSupport

/// A user of the control socket, who sends one request, and reads the answer to its end.
final class Operator: FarEnd {
    /// The requests, with `NAME` instead of a name.
    static let requests = [
        "GET /status", "GET /status?format=json", "GET /metrics", "GET /", "GET /healthz", "GET /readyz",
        "POST /flush?under=.", "POST /flush?name=NAME", "GET /explain?name=NAME",
        "GET /explain?name=NAME&type=AAAA&format=json",
        "GET /watch", "GET /watch?name=NAME",
    ]
    static let socket = "/d/control"

    private let request: String
    private let name: String
    private let begun = kernel.now
    private let slept = kernel.slept
    private let era = judge.era
    private let answered = judge.figures.answered
    private let wasCalm = judge.isCalmAt < kernel.now
    private weak var link: Link?
    private var response: [UInt8] = []
    private var isOver = false
    /// Whether the allowed number of watchers was there when it came.
    private let isOneTooMany: Bool

    /// Longer than any request takes.
    private static let patience: UInt64 = 10_000_000_000

    private init(_ request: String, _ name: String) {
        (self.request, self.name) = (request, name)
        isOneTooMany = Self.watching >= Self.mostWatching
    }

    static func ask(_ request: String, _ name: String) {
        // Whether it is accepted depends on the shortage, or on earlier users.
        guard kernel.hasDescriptors, underWay < 12 else { return }
        let asker = Operator(request, name)
        guard let link = kernel.network.connect(asker, toPath: socket) else {
            // So does the creation of the socket.
            return
        }
        asker.link = link
        underWay += 1
        if asker.watches, !asker.isOneTooMany {
            watching += 1
            // The daemon needs a moment to notice the end of a connection.
            kernel.after(patience + 1_000_000_000) { watching -= 1 }
        }
        if request.hasPrefix("POST") { judge.lastFlush = kernel.now }
        if request.hasPrefix("GET /explain") { judge.explains(name) }
        let words = request.replacing("NAME", with: name).split(separator: " ")
        link.sendToNear(Array("\(words[0]) \(words[1]) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        kernel.after(patience) { asker.judged() }
    }

    /// The number of requests without a verdict so far.
    nonisolated(unsafe) private static var underWay = 0
    nonisolated(unsafe) private static var watching = 0
    static func begin() { (underWay, watching) = (0, 0) }
    /// The most watchers at a time, as httpdnsd(8) says.
    private static let mostWatching = 4

    private var watches: Bool { request.hasPrefix("GET /watch") }

    func received(_ bytes: [UInt8]) {
        response += bytes
        // The lines of `watch` are read for a while.
        if !watches, isWhole { link?.endByFar() }
    }

    func ended() {
        isOver = true
        guard request.hasPrefix("POST /flush"), isWhole else { return }
        judge.forgot(request.hasSuffix("NAME") ? name : nil, askedAt: begun)
    }

    private var text: String { String(decoding: response, as: UTF8.self) }

    private var isWhole: Bool {
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2,
            let field = parts[0].split(separator: "\r\n").first(where: { $0.hasPrefix("Content-Length: ") })
        else { return false }
        return Int(field.dropFirst(16)) == parts[1].utf8.count
    }

    /// The daemon's numbers of questions are those of the clients.
    private func checkFigures() {
        let fields = text.split(separator: "\"questions\":{", maxSplits: 1)
        let number = fields.last.flatMap { Int($0.drop { !$0.isNumber }.prefix { $0.isNumber }) }
        guard let number else { return judge.fault("the status has no number of questions") }
        if number < answered || number > judge.figures.asked {
            judge.fault("the status has \(number) questions, of \(answered) to \(judge.figures.asked)")
        }
    }

    private func judged() {
        Self.underWay -= 1
        defer { link?.endByFar() }
        guard slept == kernel.slept, era == judge.era, !kernel.lackedDescriptors(within: 2 * Self.patience) else {
            return
        }
        let code = text.split(separator: " ").dropFirst().first.map(String.init) ?? "nothing"
        // It need not be ready while there is any trouble, and does not explain all names at once.
        let mayRefuse =
            request.hasSuffix("readyz") && !wasCalm || request.hasPrefix("GET /explain") || watches && isOneTooMany
        if code != "200", !(mayRefuse && code == "503") {
            judge.fault("the operator asks \(request), and is told \(code)")
        }
        if code == "200", request == "GET /status?format=json" { checkFigures() }
        if !watches, !isWhole { judge.fault("the operator asks \(request), and is not told all of it") }
    }
}
