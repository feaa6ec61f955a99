import Base
import Glibc
import Log
import Upstreams

@testable import Configuration
@testable import DNSCache
@testable import DNSWire
@testable import Daemon
@testable import Forwarding
@testable import Streams
@testable import Transport

extension Target {
    /// What a TCP client sends, through a real connection: in whatever pieces it comes, the replies are those to its
    /// whole messages, in their order.
    static let stream = Target(name: "stream") { bytes in
        let server = Server.shared
        // A connection is what costs most here, so each input has one.
        let pieces = splits(of: bytes)[min(1, choice(bytes, of: 4, salt: 2))]
        var expected = server.expectedReplies(bytes)
        var replies = server.replies(to: pieces)
        if replies != expected {
            // A second has begun in between: TTLs and the time in cookies are others.
            expected = server.expectedReplies(bytes)
            replies = server.replies(to: pieces)
        }
        check(replies == expected, "\(replies.count) octets of replies in place of \(expected.count)")
    }
}

/// A stream server that nobody but one thread runs. Whatever is not in its cache gets SERVFAIL at once.
private final class Server: @unchecked Sendable {
    static let shared: Server = {
        do { return try Server() } catch { fatalError("\(error)") }
    }()

    private let server: StreamServer
    /// Made once: large blocks are what costs most under a sanitizer.
    private var scratch = [UInt8](repeating: 0, count: 65_536)

    init() throws {
        let cache = DNSCache(bytes: 16 << 20, seed: (1, 2))
        let now = Tick(nanoseconds: Clock.now()).seconds
        let name = Name("www.example.com")!
        cache.store(
            .addresses(name, type: .a, [.v4(192, 0, 2, 1)], ttl: 600_000), to: name, type: .a, for: .everyone, at: now)
        // Five of these are more than may wait for a client that does not read.
        let label = String(repeating: "x", count: 63)
        let targets = (0..<200).map { Name("\(label).\(label).host-\($0)")! }
        cache.store(.pointers(name, targets, ttl: 600_000), to: name, type: .ptr, for: .everyone, at: now)
        let frontend = QueryFrontend(cache: cache, Settings.Listen(), queue: MissQueue(maximum: 0))
        let loop = try EventLoop(label: "fuzz")
        let report = Report(log: Logger(.error) { _ in })
        let forwarderLoop = ForwarderLoop(
            loop: loop, cache: cache, local: LocalServers(listening: [], loop: loop, report: report),
            lookup: ServerLookup(loop: loop), report: report)
        server = try StreamServer(
            StreamServer.Listeners(transport: .tcp, listeners: [], certificate: nil), Settings.Listen(),
            frontend: CurrentFrontend(frontend), forwarderLoop: forwarderLoop, report: report)
    }

    private static let client = IPAddress.v4(127, 0, 0, 1)

    func expectedReplies(_ bytes: [UInt8]) -> [UInt8] {
        let now = Tick(nanoseconds: Clock.now())
        var replies: [UInt8] = []
        var offset = 0
        while bytes.count - offset >= 2 {
            let end = offset + 2 + Int(bytes[offset]) << 8 + Int(bytes[offset + 1])
            guard end <= bytes.count else { break }
            let message = Array(bytes[offset + 2..<end])
            switch server.receive(message.span, from: Self.client, at: now) {
            case .silence: break
            case .reply(let length):
                replies += [UInt8(length >> 8), UInt8(length & 0xFF)] + server.replies.first(length)
            case .ask, .replyAndRefresh: fatalError("there is nobody to ask")
            }
            offset = end
        }
        return replies
    }

    func replies(to pieces: [ArraySlice<UInt8>]) -> [UInt8] {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &ends) == 0 else {
            fatalError("socketpair: \(errno)")
        }
        defer { close(ends[1]) }
        let socket = StreamSocket(adopting: Descriptor(adopting: ends[0]))
        guard let client = try? StreamClient(socket, from: Self.client, of: .host, server: server) else {
            fatalError("a client")
        }
        var replies: [UInt8] = []
        for piece in pieces {
            var piece = Array(piece)
            while !piece.isEmpty {
                let sent = send(ends[1], piece, piece.count, Int32(MSG_NOSIGNAL))
                check(sent > 0, "cannot be sent: \(errno)")
                piece.removeFirst(sent)
                _ = turn(client, ends[1], &replies)
            }
        }
        shutdown(ends[1], Int32(SHUT_WR))
        check(turn(client, ends[1], &replies), "the client is not closed")
        client.close()
        return replies
    }

    /// What the loop does as long as there is something to do.
    /// - Returns: whether the other end is closed.
    private func turn(_ client: StreamClient, _ other: Int32, _ replies: inout [UInt8]) -> Bool {
        while true {
            client.link.stream?.ready([.readable, .writable])
            let count = recv(other, &scratch, scratch.count, 0)
            if count == 0 { return true }
            // Closed with octets that it has not read.
            if count < 0, errno == ECONNRESET { return true }
            guard count > 0 else { return false }
            replies += scratch[..<count]
        }
    }
}
