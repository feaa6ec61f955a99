/// Counts of the connections of one transport since the start.
package struct StreamCounters: Sendable, Equatable {
    /// Connections accepted.
    package var accepted: UInt64 = 0
    /// Connections refused because `listen.tcpClients` were open and all waited for answers.
    package var refused: UInt64 = 0
    /// Connections refused because one source had its share, and all of those waited for answers.
    package var refusedOfOneSource: UInt64 = 0
    /// Connections closed to make room for a new one.
    package var closedForRoom: UInt64 = 0
    /// Connections closed after `listen.tcpIdleSeconds`.
    package var closedIdle: UInt64 = 0
    /// Connections closed because more bytes waited for the client to read than are kept for one client, or for all.
    package var cutOff: UInt64 = 0
    /// Connections whose TLS handshake failed or took too long.
    package var handshakesFailed: UInt64 = 0

    /// Nobody has connected yet.
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
            handshakesFailed += counters.handshakesFailed
        }
    }
}

/// The connections of one transport.
package struct StreamFigures: Sendable {
    package let transport: Tally.Transport
    /// How many are open now.
    package let open: Int
    package let counters: StreamCounters

    package init(_ transport: Tally.Transport, open: Int, _ counters: StreamCounters) {
        (self.transport, self.open, self.counters) = (transport, open, counters)
    }
}
