import Streams

extension Target {
    /// What a client of DNS over HTTPS sends: behind an octet that is even over HTTP/1.1, in whatever pieces it comes; else over
    /// HTTP/2, behind the preface. What is kept stays within its limits, and each message is answered once.
    static let doh = Target(name: "doh") { bytes in
        guard let first = bytes.first else { return }
        let isHTTP2 = first % 2 == 1
        let ways = splits(of: Array(bytes.dropFirst()))
        guard isHTTP2 else {
            let outcomes = ways.map { Client(isHTTP2: false).converse($0) }
            return check(outcomes[0] == outcomes[1], "it depends on the pieces")
        }
        let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]
        _ = Client(isHTTP2: true).converse([preface[...]] + ways[min(1, choice(bytes, of: 4, salt: 2))])
    }
}

/// Answers with what it is asked, every second time later.
private final class Client: MessageOwner {
    struct Outcome: Equatable {
        var asked: [[UInt8]] = []
        var sent: [UInt8] = []
    }

    private var http: ServerHTTP!
    private let isHTTP2: Bool
    private var outcome = Outcome()
    private var later: [(id: RequestID, message: [UInt8])] = []

    var takesMessages: Bool { later.count < http.mostAtOnce && http.unsent < 100_000 }

    init(isHTTP2: Bool) {
        self.isHTTP2 = isHTTP2
        http = ServerHTTP(owner: self)
        http.opened(isHTTP2 ? "h2" : nil)
    }

    func asked(_ message: Span<UInt8>, as id: RequestID) {
        let octets = message.indices.map { message[$0] }
        check(octets.count <= 65_535, "a message of \(octets.count) octets")
        outcome.asked.append(octets)
        if outcome.asked.count % 2 == 1 {
            http.answer(octets.count < 12 ? nil : message, to: id)
        } else {
            later.append((id, octets))
        }
    }

    func converse(_ pieces: [ArraySlice<UInt8>]) -> Outcome {
        for piece in pieces {
            receive(Array(piece))
            while !later.isEmpty || http.mayGoOn {
                for (id, message) in exchange(&later, with: []) {
                    http.answer(message.count < 12 ? nil : message.span, to: id)
                }
                receive([])
            }
        }
        check(http.underWay == 0, "\(http.underWay) are under way")
        return outcome
    }

    private func receive(_ bytes: [UInt8]) {
        var events: [ConversationEvent] = []
        do throws(ConversationFailure) { try http.receive(bytes.span, into: &events) } catch {
            check(false, "\(error)")
        }
        check(events.isEmpty, "\(events)")
        // What HTTP/2 keeps beside bodies are a hundred heads and the answers; HTTP/1.1 keeps one request and what was read.
        check(http.held - http.unsent <= (isHTTP2 ? 300_000 : 200_000), "\(http.held) octets are kept")
        var output = http.takeOutput()
        while !output.isEmpty {
            outcome.sent += output
            output = http.takeOutput()
        }
    }
}
