import HTTP

extension Target {
    /// What a server, or whoever is in its place, sends on one HTTP/2 connection.
    static let http2 = Target(name: "http2") { bytes in
        let ways = splits(of: bytes)
        switch choice(bytes, of: 4, salt: 2) {
        case 0: _ = HTTP2Conversation(takesOutput: false).run(ways[1])
        case 1: _ = HTTP2Conversation(isLively: true).run(ways[1])
        default:
            let (whole, pieces) = (HTTP2Conversation().run(ways[0]), HTTP2Conversation().run(ways[1]))
            let areAlike = pieces.answers.allSatisfy { whole.answers[$0.key, default: $0.value] == $0.value }
            check(areAlike, "an answer is another in pieces")
            // When a server breaks the rules, how much is read behind that depends on what had been sent by then. nghttp2
            // counts the pieces of a CONTINUATION, too, so that it may see a flood in pieces alone.
            guard !whole.endedByServer, !pieces.endedByServer else { return }
            check(whole.answers == pieces.answers, "it depends on the pieces: \(pieces), \(whole)")
        }
    }
}

private struct HTTP2Outcome {
    var answers: [UInt64: HTTPResponse] = [:]
    /// Nil: it was still open behind the last octet.
    var end: HTTP2Error?

    /// Whether the server was found to flood or to break the rules.
    var endedByServer: Bool {
        switch end {
        case .flood, .violation: true
        default: false
        }
    }
}

/// An owner that has three requests open at first. A lively one sends another for each that is answered and cancels some,
/// which may both depend on the pieces.
private final class HTTP2Conversation {
    static let bodyLimit = 5000
    static let request = {
        var request = HTTP2Request(.post, authority: "dns.example", path: "/dns-query")!
        request.body = [UInt8](repeating: 1, count: 300)
        return request
    }()

    private let session: HTTP2Session
    private let takesOutput: Bool
    private let isLively: Bool
    private var next: UInt64 = 0
    private var open: Set<UInt64> = []
    private var outcome = HTTP2Outcome()
    private var isOver = false

    init(takesOutput: Bool = true, isLively: Bool = false) {
        guard let session = try? HTTP2Session(bodyLimit: Self.bodyLimit) else { fatalError("no memory") }
        (self.session, self.takesOutput, self.isLively) = (session, takesOutput, isLively)
    }

    func run(_ pieces: [ArraySlice<UInt8>]) -> HTTP2Outcome {
        for _ in 0..<3 { ask() }
        for piece in pieces {
            let bytes = Array(piece)
            session.receive(bytes.span)
            turn()
            if isLively, bytes[0] & 3 == 0, let id = open.min() {
                session.cancel(id)
                open.remove(id)
                ask()
            }
        }
        let end = outcome.end
        session.endOfStream()
        turn()
        check(isOver && open.isEmpty, "requests without an end: \(open)")
        check(session.room == 0 && !session.open(Self.request, as: next), "a request behind the end")
        outcome.end = end
        return outcome
    }

    private func ask() {
        let room = session.room
        check(0...HTTP2Session.requestLimit ~= room, "room for \(room)")
        let isOpen = session.open(Self.request, as: next)
        check(isOpen == (room > 0), "room for \(room), and \(isOpen)")
        if isOpen { open.insert(next) }
        next += 1
        take()
    }

    private func turn() {
        take()
        while let event = session.nextEvent() {
            check(!isOver, "\(event) behind the end")
            switch event {
            case .answered(let id, let response):
                check(open.remove(id) != nil, "\(id) is answered and not open")
                check(200...999 ~= response.status, "status \(response.status)")
                check(response.body.count <= Self.bodyLimit, "a body of \(response.body.count)")
                outcome.answers[id] = response
                if isLively { ask() }
            case .failed(let id, _):
                check(open.remove(id) != nil, "\(id) fails and is not open")
            case .goingAway:
                check(session.room == 0, "room behind the farewell")
            case .ended(let error):
                outcome.end = error
                isOver = true
            }
        }
    }

    private func take() {
        while takesOutput {
            let output = session.takeOutput()
            check(output.count <= HTTP2Session.backlogLimit + 16_384 + 9, "an output of \(output.count)")
            if output.isEmpty { return }
        }
    }
}
