import Base
import DNSWire
import Testing

struct SipHashTests {
    /// The authors' vectors.h: key 00 01 … 0f, messages of 0 to 63 octets 00 01 02 …
    private static let published = """
        310e0edd47db6f72 fd67dc93c539f874 5a4fa9d909806c0d 2d7efbd796666785
        b7877127e09427cf 8da699cd64557618 cee3fe586e46c9cb 37d1018bf50002ab
        6224939a79f5f593 b0e4a90bdf82009e f3b9dd94c5bb5d7a a7ad6b22462fb3f4
        fbe50e86bc8f1e75 903d84c02756ea14 eef27a8e90ca23f7 e545be4961ca29a1
        db9bc2577fcc2a3f 9447be2cf5e99a69 9cd38d96f0b3c14b bd6179a71dc96dbb
        98eea21af25cd6be c7673b2eb0cbf2d0 883ea3e395675393 c8ce5ccd8c030ca8
        94af49f6c650adb8 eab8858ade92e1bc f315bb5bb835d817 adcf6b0763612e2f
        a5c91da7acaa4dde 716595876650a2a6 28ef495c53a387ad 42c341d8fa92d832
        ce7cf2722f512771 e37859f94623f3a7 381205bb1ab0e012 ae97a10fd434e015
        b4a31508beff4d31 81396229f0907902 4d0cf49ee5d4dcca 5c73336a76d8bf9a
        d0a704536ba93e0e 925958fcd6420cad a915c29bc8067318 952b79f3bc0aa6d4
        f21df2e41d4535f9 87577519048f53a9 10a56cf5dfcd9adb eb75095ccd986cd0
        51a9cb9ecba312e6 96afadfc2ce666c7 72fe52975a4364ee 5a1645b276d592a1
        b274cb8ebf87870a 6f9bb4203de7b381 eaecb2a30b22a87f 9924a43cc1315724
        bd838d3aafbf8db7 0b1a2a3265d51aea 135079a3231ce660 932b2846e4d70666
        e1915f5cb1eca46c f325965ca16d629f 575ff28e60381be5 724506eb4c328a95
        """

    @Test func publishedVectors() {
        let expected = Self.published.split { $0.isWhitespace }.map { hex(String($0)) }
        #expect(expected.count == 64)
        for (length, octets) in expected.enumerated() {
            let message = (0..<length).map { UInt8($0) }
            #expect(sipHash(message, key: (0..<16).map { UInt8($0) }) == octets, "\(length) octets")
        }
    }

    private func sipHash(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        var hash = SipHash(key: (word(key[..<8]), word(key[8...])))
        let whole = message.count / 8 * 8
        for start in stride(from: 0, to: whole, by: 8) { hash.add(word(message[start..<start + 8])) }
        let value = hash.finish(word(message[whole...]), count: message.count)
        return (0..<8).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
}

/// Little-endian.
private func word(_ octets: some Collection<UInt8>) -> UInt64 {
    octets.enumerated().reduce(0) { $0 | UInt64($1.element) << (8 * $1.offset) }
}

private func secret(_ text: String) -> (UInt64, UInt64) { (word(hex(text)[..<8]), word(hex(text)[8...])) }

private func number(_ text: String) -> UInt64 { UInt64(text, radix: 16)! }

struct CookieTests {
    private let address = IPAddress("198.51.100.100")!
    private let now: UInt32 = 1_559_731_985
    private let cookies = ServerCookies(seed: (0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210))

    /// RFC 9018, appendix A.
    @Test(arguments: [
        (
            "A.1", "2464c4abcf10c957", "010000005cf79f11", "1f8130c3eee29480", "198.51.100.100",
            "e5e973e5a6b2a43f48e7dc849e37bfcf", true
        ),
        (
            "A.2", "2464c4abcf10c957", "010000005cf7a871", "d4a564a1442aca77", "198.51.100.100",
            "e5e973e5a6b2a43f48e7dc849e37bfcf", true
        ),
        (
            "A.3, the cookie sent: reserved octets as they are", "fc93fc62807ddb86", "01abcdef5cf78f71",
            "a314227b6679ebf5", "203.0.113.203", "e5e973e5a6b2a43f48e7dc849e37bfcf", false
        ),
        (
            "A.3", "fc93fc62807ddb86", "010000005cf7a9ac", "f73a7810aca2381e", "203.0.113.203",
            "e5e973e5a6b2a43f48e7dc849e37bfcf", true
        ),
        (
            "A.4, the cookie sent: the former secret", "22681ab97d52c298", "010000005cf7c579", "26556bd0934c72f8",
            "2001:db8:220:1:59de:d0f4:8769:82b8", "dd3bdf9344b678b185a6f5cb60fca715", true
        ),
        (
            "A.4", "22681ab97d52c298", "010000005cf7c609", "a6bb79d16625507a", "2001:db8:220:1:59de:d0f4:8769:82b8",
            "445536bcd2513298075a5d379663c962", true
        ),
    ])
    func interoperableForm(
        example: String, client: String, head: String, hash: String, address: String, key: String, isMade: Bool
    ) throws {
        let address = try #require(IPAddress(address))
        let cookie = Cookie(client: number(client), head: number(head), hash: number(hash))
        #expect(cookie.isOurs(address: address, secret: secret(key)))
        #expect(!cookie.isOurs(address: .v4(198, 51, 100, 101), secret: secret(key)))
        #expect(!cookie.isOurs(address: address, secret: secret("00000000000000000000000000000000")))
        let later = Cookie(client: number(client), head: number(head) + 1, hash: number(hash))
        #expect(!later.isOurs(address: address, secret: secret(key)))
        let other = Cookie(client: number(client) ^ 1, head: number(head), hash: number(hash))
        #expect(!other.isOurs(address: address, secret: secret(key)))
        if isMade {
            let time = UInt32(truncatingIfNeeded: number(head))
            #expect(Cookie(client: number(client), at: time, address: address, secret: secret(key)) == cookie)
        }
    }

    /// A query for the root with these options.
    private func query(_ options: String) -> [UInt8] {
        let data = hex(options)
        return hex("1234 0100 0001 0000 0000 0001 00 0006 0001 00 0029 04d0 00000000")
            + [UInt8(data.count >> 8), UInt8(data.count & 0xFF)] + data
    }

    /// What a client that sends `cookie` gets back, in the reply's own octets.
    private func reply(
        to cookie: [UInt8], from address: IPAddress? = nil, at now: UInt32
    ) throws -> (cookie: [UInt8], standing: ServerCookies.Standing) {
        let message = query("000a00" + digits([UInt8(cookie.count)]) + digits(cookie))
        var question = try question(message)
        let edns = try #require(question.edns)
        let made = try made(edns, message, address ?? self.address, now)
        question.replyOptions = ReplyOptions(cookie: made.cookie)
        let reply = refused(.noError, question, message)
        #expect(Array(reply.suffix(39).dropLast(24)) == hex("00 0029 04d0 00000000 001c 000a 0018"))
        return (Array(reply.suffix(24)), made.standing)
    }

    private func made(
        _ edns: EDNS, _ message: [UInt8], _ address: IPAddress, _ now: UInt32
    ) throws -> (cookie: Cookie, standing: ServerCookies.Standing) {
        guard let made = cookies.cookie(for: edns, in: message.span, from: address, at: now) else {
            throw NotAQuestion()
        }
        return made
    }

    private func digits(_ octets: [UInt8]) -> String {
        octets.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test func aClientGetsACookieAndIsKnownByIt() throws {
        let client = hex("0102030405060708")
        let first = try reply(to: client, at: now)
        #expect(first.standing == .new)
        #expect(first.cookie.starts(with: client + hex("01000000 5cf79f11")))
        #expect(try reply(to: client, at: now).cookie == first.cookie)
        // The same again for half an hour, another one then, good for an hour.
        for (age, standing, isKept) in [
            (0, .good, true), (1800, .good, true), (1801, .good, false), (3600, .good, false), (3601, .bad, false),
            (1 << 30, .bad, false), (-1, .good, true), (-300, .good, true), (-301, .bad, false),
        ] as [(Int, ServerCookies.Standing, Bool)] {
            let next = try reply(to: first.cookie, at: UInt32(Int(now) + age))
            #expect(next.standing == standing, "\(age) s")
            #expect((next.cookie == first.cookie) == isKept, "\(age) s")
        }
    }

    @Test func aCookieIsForOneAddressAndOneClient() throws {
        let cookie = try reply(to: hex("0102030405060708"), at: now).cookie
        #expect(try reply(to: cookie, from: .v4(198, 51, 100, 101), at: now).standing == .bad)
        #expect(try reply(to: cookie, from: IPAddress("::ffff:198.51.100.100"), at: now).standing == .bad)
        for index in cookie.indices {
            var forged = cookie
            forged[index] ^= 0x10
            let answer = try reply(to: forged, at: now)
            #expect(answer.standing == .bad, "octet \(index)")
            #expect(answer.cookie.starts(with: forged[..<8]))
        }
    }

    /// 16 to 40 octets, of which we make 24.
    @Test func foreignCookiesAreBadAndReplaced() throws {
        for length in 16...40 {
            let answer = try reply(to: (0..<UInt8(length)).map { $0 }, at: now)
            #expect(answer.standing == .bad)
            #expect(answer.cookie.starts(with: hex("0001020304050607 01000000 5cf79f11")))
        }
    }

    @Test func aNewDayHasANewSecretAndStillTakesTheFormer() throws {
        let midnight: UInt32 = 1_559_779_200  // a multiple of 86400
        let client = hex("0102030405060708")
        let before = try reply(to: client, at: midnight - 1)
        let after = try reply(to: client, at: midnight)
        #expect(try reply(to: before.cookie, at: midnight + 1200) == (before.cookie, .good))
        #expect(try reply(to: before.cookie, at: midnight + 3599).standing == .good)
        #expect(try reply(to: before.cookie, at: midnight + 3600).standing == .bad)
        // What the former secret would make of today's time is not taken.
        let days = (0..<3).map { UInt32(midnight + 86400 * $0) }
        let hashes = try days.map { try reply(to: client, at: $0).cookie.suffix(8) }
        #expect(Set(hashes).count == 3)
        #expect(after.cookie.suffix(8) == hashes[0])
    }

    @Test func anotherProcessKnowsNoneOfOurs() throws {
        let cookie = try reply(to: hex("0102030405060708"), at: now).cookie
        let message = query("000a 0018" + digits(cookie))
        let edns = try #require(try question(message).edns)
        let other = ServerCookies(seed: (1, 2)).cookie(for: edns, in: message.span, from: address, at: now)
        #expect(other?.standing == .bad)
    }

    @Test func lengthsThatNoCookieHas() throws {
        for length in 0...64 {
            let message = query("000a 00" + digits([UInt8(length)]) + String(repeating: "ab", count: length))
            let isSound = length == 8 || (16...40).contains(length)
            #expect(outcome(message) == (isSound ? "question" : "FORMERR with question"), "\(length) octets")
        }
        // The first of several counts (RFC 7873 §5.2).
        let twice = try question(query("000a 0008 0102030405060708 000a 0001 ff"))
        #expect(twice.edns?.cookieLength == 8)
        #expect(outcome(query("000a 0001 ff 000a 0008 0102030405060708")) == "FORMERR with question")
        // None in a version that we do not know.
        var other = query("000a 0001 ff")
        other[23] = 1
        #expect(outcome(other) == "BADVERS with question")
    }

    /// RFC 7873 §5.4: no question, a COOKIE alone.
    @Test func cookieQueries() throws {
        let header = "1234 0100 0000 0000 0000 0001"
        let opt = "00 0029 04d0 00000000"
        let message = hex(header + opt + "000c 000a 0008 0102030405060708")
        guard case .cookieQuery(var question) = Question.read(message.span) else {
            Issue.record("\(outcome(message))")
            return
        }
        #expect(question.isEmpty && question.end == 12)
        let edns = try #require(question.edns)
        let made = try made(edns, message, address, now)
        question.replyOptions = ReplyOptions(cookie: made.cookie)
        let reply = refused(.badCookie, question, message)
        #expect(reply.count == 12 + 11 + 28)
        #expect(
            Array(reply[..<35])
                == hex("1234 8187 0000 0000 0000 0001 00 0029 04d0 01000000 001c 000a 0018 0102030405060708"))
        #expect(outcome(hex(header + opt + "0000")) == "FORMERR with question")
        #expect(outcome(hex("1234 0100 0000 0000 0000 0000")) == "FORMERR with question")
        #expect(outcome(hex(header + opt + "000c 000a 0008 0102030405060708 00")) == "FORMERR with question")
    }
}

struct ReplyOptionsTests {
    private let name = Name("www.example.com")!
    private let cookie = Cookie(client: 0x0102_0304_0506_0708, head: 0x0100_0000_5CF7_9F11, hash: 0xF1F2_F3F4_F5F6_F7F8)

    @Test func theyStandInTheOPT() throws {
        let opt = "00 0029 04d0 00008000"
        let cookieOption = "000a 0018 0102030405060708 010000005cf79f11 f1f2f3f4f5f6f7f8"
        let answer = Answer.failure(name, type: .a, .servFail, extendedError: .networkError)
        for (options, rdata) in [
            (ReplyOptions(), "0006 000f 0002 0017"),
            (ReplyOptions(cookie: cookie), "0022" + cookieOption + "000f 0002 0017"),
            (ReplyOptions(keepAlive: 100), "000c 000b 0002 0064 000f 0002 0017"),
            (ReplyOptions(cookie: cookie, keepAlive: 0xFFFF), "0028" + cookieOption + "000b 0002 ffff 000f 0002 0017"),
        ] {
            let message = try reply(answer, to: Vectors.ednsQuery, options: options)
            #expect(Array(message[33...]) == hex(opt + rdata))
            #expect(Array(message[10..<12]) == [0, 1])
        }
    }

    @Test func noneWithoutOPT() throws {
        let answer = Answer.addresses(name, type: .a, [.v4(192, 0, 2, 1)], ttl: 60)
        let options = ReplyOptions(cookie: cookie, keepAlive: 1)
        #expect(try reply(answer, to: Vectors.query, options: options) == reply(answer, to: Vectors.query))
    }

    /// They count against the client's size.
    @Test func theyNeedRoom() throws {
        let answer = Answer.addresses(name, type: .a, (0..<29).map { .v4(192, 0, 2, $0) }, ttl: 60)
        let options = ReplyOptions(cookie: cookie)
        let whole = 33 + 29 * 16 + 11 + 28
        #expect(try reply(answer, to: Vectors.ednsQuery, limit: whole, room: whole, options: options).count == whole)
        let cut = try reply(answer, to: Vectors.ednsQuery, limit: whole - 1, room: whole - 1, options: options)
        #expect(cut.count == 33 + 11 + 28 && cut[2] & 2 != 0)
    }

    @Test func keepAliveIsReadWithoutATimeOnly() throws {
        for (options, expected) in [("000b 0000", true), ("000b 0002 0064", false), ("000c 0000", false)] {
            let data = hex(options)
            var message = hex("1234 0100 0001 0000 0000 0001 00 0006 0001 00 0029 04d0 00000000 00")
            message += [UInt8(data.count)] + data
            #expect(try question(message).edns?.asksForKeepAlive == expected)
        }
    }

    @Test func theLongestRefusal() throws {
        var query = Vectors.longestName + hex("00 0029 04d0 00000000 0000")
        query[11] = 1
        var question = try question(query)
        question.replyOptions = ReplyOptions(cookie: cookie, keepAlive: 100)
        let reply = refused(.refused, question, query, error: .prohibited)
        #expect(reply.count == Reply.maximumRefusalLength)
    }
}
