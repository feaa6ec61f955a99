import Base
import Configuration
import Counters
import DNSCache
import DNSWire
import Forwarding
import ShellTestSupport
import Testing

@testable import Daemon

@Suite struct QueryFrontendTests {
    private let cache = DNSCache(bytes: 1 << 20, seed: (1, 2))
    private let tally = Tally(.udp)
    private let now = Tick(nanoseconds: 1_000_000_000_000)
    private static let host = IPAddress.v4(127, 0, 0, 1)
    private static let stranger = IPAddress.v4(192, 0, 2, 7)

    private enum Outcome: Equatable {
        case silence, asked
        case replied([UInt8])
        case refreshed([UInt8])

        var reply: [UInt8] {
            switch self {
            case .silence, .asked: []
            case .replied(let bytes), .refreshed(let bytes): bytes
            }
        }
    }

    private func frontend(_ settings: Settings.Listen = Settings().listen, room: Int = 8) -> QueryFrontend {
        QueryFrontend(cache: cache, settings, queue: MissQueue(maximum: room))
    }

    @Test func clientsThatMayNotAskAreCountedAndSaidOnce() {
        let said = Arrivals<IPAddress>()
        let strangers = Strangers { client, _ in said.append(client) }
        var settings = Settings().listen
        settings.allow = [Network("127.0.0.0/8")!]
        var frontend = QueryFrontend(
            cache: cache, settings, queue: MissQueue(maximum: 8), strangers: strangers)
        #expect(receive(query(example), frontend) == .asked && tally[.notAllowed] == 0)
        for _ in 0..<3 { #expect(receive(query(example), from: Self.stranger, frontend).reply[3] & 15 == 5) }
        _ = receive(query(example), from: .v4(192, 0, 2, 8), isStream: true, frontend)
        #expect(tally[.notAllowed] == 4 && said.next() == Self.stranger)
        // Settings with the same list are no news; with another one the next client that may not ask is said.
        frontend.apply(settings)
        _ = receive(query(example), from: .v4(192, 0, 2, 9), frontend)
        settings.allow.append(Network("198.51.100.0/24")!)
        frontend.apply(settings)
        _ = receive(query(example), from: .v4(192, 0, 2, 10), frontend)
        #expect(said.next() == .v4(192, 0, 2, 10) && tally[.notAllowed] == 6)
    }

    private func store(ttl: UInt32 = 300) {
        let answer = Answer.addresses(example, type: .a, [.v4(192, 0, 2, 1)], ttl: ttl)
        cache.store(answer, to: example, type: .a, for: .everyone, at: now.seconds)
    }

    private func receive(
        _ message: [UInt8], from client: IPAddress = host, at later: UInt32 = 0, isStream: Bool = false,
        _ frontend: QueryFrontend
    ) -> Outcome {
        var room = [UInt8](repeating: 0, count: isStream ? 65_535 : Reply.maximumUDPSize)
        var span = room.mutableSpan
        let outcome = frontend.receive(
            frontend.read(message.span), message.span, from: client,
            at: now.advanced(milliseconds: Int(later) * 1000), limit: isStream ? 65_535 : nil, tally: tally, into: &span
        )
        switch outcome {
        case .silence: return .silence
        case .ask: return .asked
        case .reply(let length): return .replied(Array(room[..<length]))
        case .replyAndRefresh(let length, _): return .refreshed(Array(room[..<length]))
        }
    }

    @Test func whatTheCacheKnowsIsAnsweredWithTheClientsIDAndSpelling() {
        store()
        var asked = query(example, id: 0xBEEF)
        asked[14] = UInt8(ascii: "W")
        let reply = receive(asked, at: 100, frontend()).reply
        #expect(Array(reply[0..<2]) == [0xBE, 0xEF])
        #expect(reply[12..<33].elementsEqual(asked[12..<33]))
        // A TTL of 300 that has counted down for 100 s, and the address.
        #expect(reply.suffix(10) == [0, 0, 0, 200, 0, 4, 192, 0, 2, 1])
    }

    @Test func whatItDoesNotKnowIsAskedFor() {
        #expect(receive(query(example), frontend()) == .asked)
        store()
        #expect(receive(query(example, .aaaa), frontend()) == .asked)
        #expect(receive(query(example), at: 301, frontend()) == .asked)
    }

    @Test func anEntryThatIsWantedNearItsEndIsRefreshed() {
        cache.apply(staleSeconds: 0, prefetchAt: 75)
        store(ttl: 100)
        let frontend = frontend()
        let (early, late) = (receive(query(example), at: 10, frontend), receive(query(example), at: 80, frontend))
        #expect(early == .replied(early.reply) && late == .refreshed(late.reply))
        #expect(tally[.refreshed] == 1)
    }

    @Test func aRefreshWithoutRoomInTheQueueIsLeftOutAndNoRefusal() {
        cache.apply(staleSeconds: 0, prefetchAt: 75)
        store(ttl: 100)
        let answered = receive(query(example), at: 80, frontend(room: 0))
        #expect(answered == .replied(answered.reply) && responseCode(answered.reply) == 0)
        #expect(tally[.refreshed] == 0 && tally[.noRoom] == 0)
    }

    @Test func withoutRoomInTheQueueTheAnswerIsServFail() {
        let full = frontend(room: 0)
        #expect(responseCode(receive(query(example), full).reply) == 2 && tally[.noRoom] == 1)
        store()
        #expect(responseCode(receive(query(example), full).reply) == 0)
    }

    @Test func whoIsNotAllowedIsRefusedAndToldSo() {
        store()
        var frontend = frontend()
        #expect(responseCode(receive(query(example), from: Self.stranger, frontend).reply) == 5)
        let reply = receive(query(example, additional: opt()), from: Self.stranger, frontend).reply
        // RFC 8914 §4.19: Prohibited.
        #expect(reply.suffix(6) == [0, 15, 0, 2, 0, 18])
        var settings = Settings().listen
        settings.allow = [Network("192.0.2.0/24")!]
        frontend.apply(settings)
        #expect(responseCode(receive(query(example), from: Self.stranger, frontend).reply) == 0)
        #expect(responseCode(receive(query(example), frontend).reply) == 5)
    }

    @Test(
        "a client of IPv4 is one, also where a socket for both families gives its address mapped into IPv6",
        arguments: [
            ("::/0", false), ("0.0.0.0/0", true), ("192.0.2.0/24", true), ("::ffff:0:0/96", true),
            ("::ffff:192.0.2.1", true), ("::ffff:192.0.2.2", false), ("2001:db8::/32", false),
        ])
    func mappedClients(_ network: String, isAllowed: Bool) throws {
        var frontend = frontend()
        var settings = Settings().listen
        settings.allow = [try #require(Network(network))]
        frontend.apply(settings)
        for text in ["192.0.2.1", "::ffff:192.0.2.1"] {
            #expect(frontend.isAllowed(try #require(IPAddress(text))) == isAllowed, "\(text)")
        }
        let ofIPv6 = try #require(IPAddress("2001:db8::1"))
        #expect(frontend.isAllowed(ofIPv6) == network.contains("2001") || network == "::/0")
    }

    @Test(
        "what is no question for a resolver gets its code",
        arguments: [
            (query(example, .axfr), 5), (query(example, .ixfr), 5), (query(example, recordClass: 3), 5),
            // OPT, the first and last types of what stands for no data, TKEY, TSIG, MAILB, MAILA.
            (query(example, .opt), 1), (query(example, RecordType(rawValue: 128)), 1),
            (query(example, RecordType(rawValue: 248)), 1), (query(example, RecordType(rawValue: 249)), 1),
            (query(example, .tsig), 1),
            (query(example, RecordType(rawValue: 253)), 1), (query(example, RecordType(rawValue: 254)), 1),
            // Opcodes STATUS and NOTIFY.
            (query(example, flags: 0x1000), 4), (query(example, flags: 0x2000), 4),
            (query(example, additional: [1, 2, 3]), 1), (Array(query(example).dropLast()), 1),
        ] as [([UInt8], UInt8)])
    func refused(_ message: [UInt8], _ code: UInt8) {
        store()
        #expect(responseCode(receive(message, frontend()).reply) == code)
    }

    @Test func responsesAndPiecesOfHeadersGetNothing() {
        #expect(receive(query(example, flags: 0x8180), frontend()) == .silence)
        #expect(receive([], frontend()) == .silence)
        #expect(receive(Array(query(example).prefix(11)), frontend()) == .silence)
    }

    @Test func howLongAConnectionIsKeptIsSaidOnOneAlone() {
        store()
        let asked = query(example, additional: opt([0, 11, 0, 0]))
        var settings = Settings().listen
        settings.tcpIdleSeconds = 10
        let frontend = frontend(settings)
        // RFC 7828 §3.1: in units of 100 ms.
        #expect(receive(asked, isStream: true, frontend).reply.suffix(6) == [0, 11, 0, 2, 0, 100])
        #expect(receive(asked, frontend).reply.suffix(2) == [0, 0])
    }

    /// Of long replies a hundred a second go to one address without a cookie of ours; then it is to ask over TCP.
    @Test func whoHasNotProvenHimselfGetsFewLongReplies() {
        let long = Answer.addresses(example, type: .aaaa, (0..<40).map { IPAddress(v6: 1 << 61, $0) }, ttl: 300)
        cache.store(long, to: example, type: .aaaa, for: .everyone, at: now.seconds)
        store()
        var settings = Settings().listen
        settings.allow.append(Network("192.0.2.0/24")!)
        let frontend = frontend(settings)
        let client: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        func ask(from address: IPAddress, cookie: [UInt8] = [], at later: UInt32 = 0, isStream: Bool = false) -> [UInt8]
        {
            let options = cookie.isEmpty ? [] : [0, 10, 0, UInt8(cookie.count)] + cookie
            let asked = query(example, .aaaa, additional: opt(options))
            return receive(asked, from: address, at: later, isStream: isStream, frontend).reply
        }
        func isTruncated(_ reply: [UInt8]) -> Bool { reply[2] & 2 != 0 }
        let first = ask(from: Self.stranger, cookie: client)
        let given = Array(first[first.count - 24..<first.count])
        #expect(first.count > 512 && given.starts(with: client))
        for _ in 1..<100 { #expect(!isTruncated(ask(from: Self.stranger))) }
        let truncated = ask(from: Self.stranger)
        #expect(isTruncated(truncated) && responseCode(truncated) == 0)
        // A header that counts no answer, the question and an OPT.
        #expect(truncated.count == query(example, .aaaa, additional: opt()).count && truncated[7] == 0)
        #expect(isTruncated(ask(from: Self.stranger, cookie: client)), "anybody makes that up")
        #expect(isTruncated(ask(from: Self.stranger, cookie: client + given.suffix(16).map { $0 ^ 1 })))
        #expect(!isTruncated(ask(from: Self.stranger, cookie: given)))
        #expect(!isTruncated(ask(from: Self.stranger, isStream: true)))
        let short = receive(query(example, additional: opt()), from: Self.stranger, frontend).reply
        #expect(!isTruncated(short) && responseCode(short) == 0)
        #expect(!isTruncated(ask(from: .v4(192, 0, 2, 8))), "another address")
        for _ in 0..<300 { #expect(!isTruncated(ask(from: Self.host))) }
        #expect(!isTruncated(ask(from: Self.stranger, at: 1)), "the next second")
    }

    @Test func aCookieIsGoodForItsAddressAlone() {
        let frontend = frontend()
        let client: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        let first = receive(query(example, flags: 0x0100, additional: opt([0, 10, 0, 8] + client)), frontend)
        #expect(first == .asked)
        store()
        let given = Array(receive(query(example, additional: opt([0, 10, 0, 8] + client)), frontend).reply.suffix(24))
        #expect(given.first == 1 && given.count == 24)
        // Without a question a bad cookie gets BADCOOKIE (RFC 7873 §5.4), whose upper bits stand in the OPT.
        func ask(from address: IPAddress) -> [UInt8] {
            let header: [UInt8] = [0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
            return receive(header + opt([0, 10, 0, 24] + given), from: address, frontend).reply
        }
        #expect(responseCode(ask(from: Self.host)) == 0)
        #expect(responseCode(ask(from: .v4(127, 0, 0, 2))) == 7)
    }
}
