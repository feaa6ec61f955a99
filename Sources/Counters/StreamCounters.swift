/// Counts of the connections of one transport since the start.
package struct StreamCounters: Sendable, Equatable {
    /// Connections accepted.
    package var accepted: UInt64 = 0
    /// Connections refused while `listen.tcpClients` were open and all waited for answers.
    package var refused: UInt64 = 0
    /// Connections refused because one source had its share of connections, all of which waited for answers.
    package var refusedOfOneSource: UInt64 = 0
    /// Connections closed to make room for a new one.
    package var closedForRoom: UInt64 = 0
    /// Connections closed after `listen.tcpIdleSeconds`.
    package var closedIdle: UInt64 = 0
    /// Connections closed because more bytes than allowed for one client, or for all, waited for the client to read.
    package var cutOff: UInt64 = 0
    /// Connections refused, or closed by a reload, because the client is not in `listen.allow`.
    package var notAllowed: UInt64 = 0
    /// Connections whose TLS handshake failed or took too long, by ``HandshakeFailure``.
    package var handshakesFailed = [UInt64](repeating: 0, count: HandshakeFailure.allCases.count)

    /// All counts are 0.
    package init() {}

    /// The sum of several transports.
    package init(of figures: [StreamFigures]) {
        for counters in figures.map(\.counters) {
            accepted += counters.accepted
            refused += counters.refused
            refusedOfOneSource += counters.refusedOfOneSource
            closedForRoom += counters.closedForRoom
            closedIdle += counters.closedIdle
            cutOff += counters.cutOff
            notAllowed += counters.notAllowed
            for reason in HandshakeFailure.allCases {
                handshakesFailed[reason.rawValue] += counters.handshakesFailed[reason.rawValue]
            }
        }
    }
}

/// The reason for a client's failed TLS handshake.
package enum HandshakeFailure: Int, CaseIterable, Sendable {
    /// The handshake took too long.
    case timeout
    /// The client closed the connection without giving a reason.
    case left
    /// The octets are not TLS.
    case notTLS
    /// The client has no TLS version from 1.2 on.
    case version
    /// The client has no cipher suite in common.
    case cipher
    /// The client offers none of the protocols that are served there (ALPN).
    case `protocol`
    /// The client does not accept the certificate.
    case certificate
    case other

    /// The name in metrics.
    package var name: String { self == .notTLS ? "not_tls" : "\(self)" }
}

/// The connections of one transport.
package struct StreamFigures: Sendable {
    package let transport: Tally.Transport
    /// The number of open connections.
    package let open: Int
    package let counters: StreamCounters

    package init(_ transport: Tally.Transport, open: Int, _ counters: StreamCounters) {
        (self.transport, self.open, self.counters) = (transport, open, counters)
    }
}
