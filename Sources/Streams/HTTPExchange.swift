package import Base
import Cryptography
package import HTTP
package import Transport

/// One HTTP/1.1 request and its response on a connection of their own, plain or through TLS: for requests so rare that
/// no connection stays open for them. Its owner sets the deadline.
package final class HTTPExchange {
    package typealias Outcome = Result<HTTPResponse, LinkEnd>

    private let done: (HTTPExchange, Outcome) -> Void
    private var link: StreamLink!

    /// The most octets that wait for the server to read: the longest requests are batches of reports.
    private static let maximumQueued = 2 * TLSSession.earlyLimit
    private static let maximumRead = 16_384

    /// Begins to connect. Call on the loop.
    /// - Parameter done: Called once, later, unless ``close()`` was called before; all is closed then.
    package init(
        _ request: [UInt8], to server: Endpoint, by egress: Egress = Egress(), _ security: Security, loop: EventLoop,
        done: @escaping (HTTPExchange, Outcome) -> Void
    ) throws(LinkEnd) {
        self.done = done
        link = StreamLink(client: HTTP1(), owner: self)
        let tls = try security.session(to: server, at: WallClock.unixSeconds())
        link.open(request, as: 0)
        try link.begin(
            Stream(
                to: server, by: egress, tls: tls, limit: Self.maximumQueued, scratch: Scratch(Self.maximumRead),
                loop: loop, owner: link))
    }

    /// Ends the exchange without calling `done`.
    package func close() { link.close() }
}

extension HTTPExchange: LinkOwner {
    package func happened(_ event: ConversationEvent, on link: StreamLink) {
        guard case .answered(_, .http(let response)) = event else { return }
        link.close()
        done(self, .success(response))
    }

    package func ended(_ link: StreamLink, _ end: LinkEnd) { done(self, .failure(end)) }
}
