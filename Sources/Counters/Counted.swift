package import Base

/// What a tally counts beside questions and answers.
///
/// The rows are the one list of these counts: `status`, its JSON, the page and the metrics show them, in this order. A
/// new count is a case here with its row, and a call of ``Tally/count(_:)`` where it happens.
package enum Counted: Int, CaseIterable, Sendable {
    /// Answers from the cache whose entries were being refreshed.
    case refreshed
    /// Questions refused because their source had its share of those that wait for the forwarder's loop.
    case noRoom
    /// Questions of clients that `listen.allow` excludes.
    case notAllowed
    /// Connections that are open now.
    case open
    /// Connections accepted.
    case accepted
    /// Connections refused while `listen.tcpClients` were open and all waited for answers.
    case refused
    /// Connections refused because one source had its share of connections, all of which waited for answers.
    case refusedOfOneSource
    /// Connections closed after `listen.tcpIdleSeconds`.
    case closedIdle
    /// Connections closed to make room for a new one.
    case closedForRoom
    /// Connections closed because more bytes than allowed for one client, or for all, waited for the client to read.
    case cutOff
    /// Connections refused, or closed by a reload, because the client is not in `listen.allow`.
    case closedNotAllowed
    /// Connections whose TLS handshake failed or took too long, for any of the reasons that follow.
    case handshakeFailed
    /// The handshake took too long.
    case handshakeTimedOut
    /// The client closed the connection without giving a reason.
    case handshakeLeft
    /// The octets are not TLS.
    case handshakeNotTLS
    /// The client has no TLS version from 1.2 on.
    case handshakeVersion
    /// The client has no cipher suite in common.
    case handshakeCipher
    /// The client offers none of the protocols that are served there (ALPN).
    case handshakeProtocol
    /// The client does not accept the certificate.
    case handshakeCertificate
    /// The handshake failed for another reason.
    case handshakeOther
    /// ICMP errors that quote no query of the port, or do not report that the resolver's port is closed. This and the
    /// messages that follow came while an answer was awaited and were not that answer: an attacker guesses, or a
    /// resolver is broken. They are ignored, and the wait goes on.
    case mismatchICMP
    /// Messages with another ID, or about another question than the query's.
    case mismatchOtherQuery
    /// Messages that cannot be read.
    case mismatchMalformed
    /// Answers that differ only in the case of letters (0x20).
    case mismatchOtherCase

    package var row: Row {
        switch self {
        case .refreshed, .noRoom: Row()
        case .notAllowed:
            Row(
                metric: Metric(
                    "httpdnsd_not_allowed_total", .questions,
                    "Questions of clients that listen.allow does not have, which are refused"),
                key: "notAllowed", words: ("question", "refused: listen.allow does not have the client's address."))
        case .open:
            Row(
                metric: Metric(
                    "httpdnsd_tcp_clients", .connections,
                    "Open TCP connections of clients, by what is spoken on them"),
                key: "tcpClients")
        case .accepted:
            Row(
                metric: Metric(
                    "httpdnsd_tcp_accepted_total", .connections, "TCP connections of clients that were accepted"))
        case .refused, .refusedOfOneSource: Row(key: "refusedTcpClients")
        case .closedIdle: Row(metric: .closed, reason: "idle")
        case .closedForRoom: Row(metric: .closed, reason: "room")
        case .cutOff: Row(metric: .closed, reason: "unread")
        case .closedNotAllowed:
            Row(
                metric: .closed, reason: "not_allowed", key: "notAllowedTcpClients",
                words: ("connection", "closed: listen.allow does not have the client's address."))
        case .handshakeFailed: Row(metric: .closed, reason: "handshake")
        case .handshakeTimedOut: Row(metric: .handshakes, reason: "timeout")
        case .handshakeLeft: Row(metric: .handshakes, reason: "left")
        case .handshakeNotTLS: Row(metric: .handshakes, reason: "not_tls")
        case .handshakeVersion: Row(metric: .handshakes, reason: "version")
        case .handshakeCipher: Row(metric: .handshakes, reason: "cipher")
        case .handshakeProtocol: Row(metric: .handshakes, reason: "protocol")
        case .handshakeCertificate:
            Row(
                metric: .handshakes, reason: "certificate",
                words: ("TLS handshake", "failed: the client does not accept the certificate."))
        case .handshakeOther: Row(metric: .handshakes, reason: "other")
        case .mismatchICMP: Row(metric: .mismatches, reason: "icmp", key: "mismatches")
        case .mismatchOtherQuery: Row(metric: .mismatches, reason: "other_query", key: "mismatches")
        case .mismatchMalformed: Row(metric: .mismatches, reason: "malformed", key: "mismatches")
        case .mismatchOtherCase: Row(metric: .mismatches, reason: "other_case", key: "mismatches")
        }
    }

    /// How a count is shown. What is nil is shown elsewhere, together with figures that no tally has, or not at all.
    package struct Row: Sendable {
        package var metric: Metric?
        /// The value of the label `reason`, if other counts have the same metric.
        fileprivate var reason: String?
        /// The key in `limits` of `status --json`, which adds up the counts with the same key.
        package var key: String?
        /// The noun in the singular, and the rest of the sentence about a count above 0.
        package var words: (noun: String, rest: String)?

        /// The values of the metric's labels, but for the transport.
        package var labels: [String] { reason.map { [$0] } ?? [] }
    }

    /// A metric of one or more counts.
    package struct Metric: Sendable, Equatable {
        package let name: String
        package let subject: Subject
        /// One line for an operator.
        package let help: String

        fileprivate init(_ name: String, _ subject: Subject, _ help: String) {
            (self.name, self.subject, self.help) = (name, subject, help)
        }

        fileprivate static let closed = Metric(
            "httpdnsd_tcp_closed_total", .connections, "TCP connections of clients that the daemon closed")
        fileprivate static let handshakes = Metric(
            "httpdnsd_tls_handshakes_failed_total", .connections, "TLS handshakes of clients that failed, by reason")
        fileprivate static let mismatches = Metric(
            "httpdnsd_mismatches_total", .servers,
            "Datagrams to the port of a query that were not its answer, as when an attacker guesses answers")
    }

    /// What a metric is about, which decides where it is among the metrics.
    package enum Subject: Sendable {
        case servers, questions
        /// Each transport with connections has samples of its own, with the label `proto`.
        case connections
    }

    /// The counts of messages that were not the awaited answer.
    package static let mismatches = allCases.filter { $0.row.metric == .mismatches }

    /// Whether listeners of a transport count this, of what is counted about connections.
    package func isCounted(over transport: ClientWay) -> Bool {
        self == .handshakeFailed || row.metric == .handshakes ? transport.isEncrypted : transport != .udp
    }
}
