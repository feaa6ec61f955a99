import Base
import DNSWire
import HTTP
import Transport

/// DNS messages over HTTP, on the answering side (RFC 8484): over HTTP/2 if ALPN has chosen it, else over HTTP/1.1.
package final class ServerHTTP: ServerConversation {
    /// The protocols for ALPN, the preferred protocol first.
    package static let protocols = [ApplicationProtocol.http2, ApplicationProtocol.http1]

    /// Set before any octets are received.
    package unowned var owner: (any MessageOwner)!
    private let clock: HTTPClock
    /// Nil if there is no memory for the server.
    private var server: (any HTTPServer)?
    private var isOpened = false
    /// Whether the client sends no more, not even how much it can receive.
    private var hasEnded = false
    package private(set) var underWay = 0

    package init(owner: (any MessageOwner)? = nil, clock: HTTPClock = HTTPClock()) {
        (self.owner, self.clock) = (owner, clock)
    }

    package func opened(_ applicationProtocol: String?) {
        isOpened = true
        server =
            applicationProtocol == ApplicationProtocol.http2
            ? try? HTTP2Server(bodyLimit: DNSOverHTTP.longestMessage)
            : HTTP1Server(bodyLimit: DNSOverHTTP.longestMessage)
    }

    package var mostAtOnce: Int { server?.mostAtOnce ?? 0 }
    package var held: Int { (server?.held ?? 0) + unsent }
    package var unsent: Int { server?.unsent ?? 0 }
    package var mustListen: Bool { server?.mustListen ?? true }
    package var isFinished: Bool { server?.isFinished ?? isOpened }
    package var isAnswering: Bool {
        underWay > 0 || server?.hasRequest ?? false || unsent > 0 && !hasEnded && !isFinished
    }
    package var mayGoOn: Bool { server?.hasRequest ?? false && owner.takesMessages }

    package func receive(_ bytes: Span<UInt8>, into events: inout [ConversationEvent]) throws(ConversationFailure) {
        guard let server else { return }
        server.receive(bytes)
        while owner.takesMessages, let request = server.nextRequest() {
            do throws(DNSOverHTTP.Refused) {
                let message = try DNSOverHTTP.message(in: request)
                underWay += 1
                owner.asked(message.span, as: RequestID(request.stream))
            } catch {
                let allow = error.status == .methodNotAllowed ? DNSOverHTTP.methods : nil
                server.answer(request.stream, HTTPAnswer(error.status, allow: allow, date: clock.date))
            }
        }
    }

    package func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) { hasEnded = true }

    package func answer(_ reply: Span<UInt8>?, to id: RequestID) {
        underWay -= 1
        guard let reply else {
            server?.answer(Int32(id), HTTPAnswer(.badRequest, date: clock.date))
            return
        }
        var body: [UInt8] = []
        body.append(reply)
        server?.answer(
            Int32(id),
            HTTPAnswer(
                .ok, contentType: DNSMediaType.name, maximumAge: Reply.lifetime(reply), date: clock.date, body: body
            ))
    }

    package func announceEnd() { server?.announceEnd() }

    package func takeOutput() -> [UInt8] { server?.takeOutput() ?? [] }
}

/// The time of day for the connections of one queue, formatted once a second.
package final class HTTPClock {
    private let now: () -> UInt64
    private var second: UInt64?
    private var text: [UInt8] = []

    /// - Parameter now: Returns the seconds since 1970.
    package init(_ now: @escaping () -> UInt64 = WallClock.unixSeconds) { self.now = now }

    package var date: [UInt8] {
        let now = now()
        if now != second { (second, text) = (now, HTTPDate.text(now)) }
        return text
    }
}
