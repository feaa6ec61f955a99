import Base
import DNSWire
import Testing

/// RFC 7830, RFC 8467 §4.1.
struct PaddingTests {
    private let head = "1234 0100 0001 0000 0000 0001 0161 00 0001 0001"

    private func isAsked(_ message: [UInt8]) -> Bool { Padding.isAsked(message.span) }

    @Test(
        arguments: [
            ("00 0029 04d0 00000000 0004 000c0000", true), ("00 0029 04d0 00000000 0006 000c0002 0000", true),
            // Behind another option; none; of another version; an option that is longer than its record.
            ("00 0029 04d0 00000000 000a fde90002 0102 000c0000", true), ("00 0029 04d0 00000000 0000", false),
            ("00 0029 04d0 00010000 0004 000c0000", false), ("00 0029 04d0 00000000 0008 fde9ffff 000c0000", false),
            ("00 0029 04d0 00000000 0003 000c00", false), ("00 0029 04d0 00000000 00ff 000c0000", false), ("", false),
        ])
    func whoIsPadded(_ row: (opt: String, isAsked: Bool)) {
        #expect(isAsked(hex(head + row.opt)) == row.isAsked)
    }

    @Test func nothingIsReadPastTheEnd() {
        let whole = hex(head + "00 0029 04d0 00000000 0006 000c0002 0000")
        for length in 0..<whole.count {
            #expect(!isAsked(Array(whole.prefix(length))))
            var reply = Array(whole.prefix(length))
            Padding.add(to: &reply)
            #expect(reply == Array(whole.prefix(length)))
        }
    }

    @Test(arguments: [1, 400, 429, 430, 431, 434, 435, 436, 65_000, 65_496, 65_500, 65_501, 65_505])
    func repliesBecomeAMultipleOfTheBlock(_ length: Int) throws {
        // A record of some length before the OPT.
        var reply = hex("1234 8180 0001 0001 0000 0001 0161 00 0001 0001 c00c 0010 0001 00000000")
        guard reply.count + 2 + length + 11 <= 65_535 else { return }
        reply +=
            [UInt8(length >> 8), UInt8(length & 0xFF)] + [UInt8](repeating: 7, count: length)
            + hex("00 0029 04d0 00000000 0000")
        let before = reply
        Padding.add(to: &reply)
        if before.count + 4 > 65_535 {
            #expect(reply == before)
        } else {
            #expect(
                reply.count % Padding.block == 0 && reply.count - before.count < Padding.block + 4
                    || reply.count == 65_535)
            #expect(isAsked(reply))
            #expect(reply[..<(before.count - 2)] == before[..<(before.count - 2)])
        }
    }

    @Test func aReplyWithoutOPTStaysAsItIs() {
        var reply = hex("1234 8180 0001 0000 0000 0000 0161 00 0001 0001")
        let before = reply
        Padding.add(to: &reply)
        #expect(reply == before)
    }
}
