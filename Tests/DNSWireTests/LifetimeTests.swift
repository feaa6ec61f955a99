import Base
import DNSWire
import Testing

/// How long an HTTP cache may keep a reply (RFC 8484 §5.1).
@Suite struct LifetimeTests {
    private static let head = "0000 8180 0001 0001 0001 0001 0161 00 0001 0001"
    private static let address = "c00c 0001 0001 0000003c 0004 01020304"
    /// Its last number is 32.
    private static let startOfAuthority =
        "00 0006 0001 00000e10 0016 00 00 00000001 00000002 00000003 00000004 00000020"
    private static let opt = "00 0029 04d0 00000000 0000"

    private static func of(_ parts: String...) -> UInt32 { Reply.lifetime(hex(parts.joined()).span) }

    @Test("the least TTL, or a zone's own number, and nothing of OPT")
    func lifetimes() {
        let (head, address, zone, opt) = (Self.head, Self.address, Self.startOfAuthority, Self.opt)
        #expect(Self.of(head, address, zone, opt) == 32)
        #expect(Self.of(head, address, zone.replacing("00000e10", with: "00000010"), opt) == 16)
        #expect(Self.of(head, address, address.replacing("0000003c", with: "00000007"), opt) == 7)
        #expect(Self.of("0000 8180 0001 0001 0000 0001 0161 00 0001 0001", address, opt) == 60)
    }

    /// With and without an OPT, and without a question.
    @Test func whatSaysOnlyThatSomethingFailedIsNotKept() {
        #expect(Self.of("0000 8182 0001 0000 0000 0001 0161 00 0001 0001", Self.opt) == 0)
        #expect(Self.of("0000 8182 0001 0000 0000 0000 0161 00 0001 0001") == 0)
        #expect(Self.of("0000 8181 0000 0000 0000 0000") == 0)
    }

    @Test func nothingIsReadPastTheEnd() {
        let whole = hex(Self.head + Self.address + Self.startOfAuthority + Self.opt)
        for length in 0..<whole.count { #expect(Reply.lifetime(Array(whole.prefix(length)).span) == 0) }
    }
}
