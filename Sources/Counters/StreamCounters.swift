/// Counts of TCP connections since the start.
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

    /// Nobody has connected yet.
    package init() {}
}
