import Testing

@testable import DNSWire

/// Names in Unicode become those that the DNS has.
@Suite struct UnicodeNameTests {
    private func ascii(_ text: String) -> String? {
        let octets = Array(text.utf8)
        return UnicodeName.ascii(octets.span, 0..<octets.count).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Those of RFC 3492 §7.1 that are host names, and names that are in use.
    @Test(
        arguments: [
            ("bücher.example", "xn--bcher-kva.example"), ("münchen.DE", "xn--mnchen-3ya.de"),
            ("BÜCHER.example", "xn--bcher-kva.example"), ("faß.example", "xn--fa-hia.example"),
            ("中国", "xn--fiqs8s"), ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
            ("пример.испытание", "xn--e1afmkfd.xn--80akhbyknj4f"),
            ("www。例え．テスト｡example", "www.xn--r8jz45g.xn--zckzah.example"), ("i❤.ws", "xn--i-7iq.ws"),
            ("ليهمابتكلموشعربي؟", nil), ("ليهمابتكلموشعربي", "xn--mgbcah9ar9a4efegftvvn"),
            ("他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"), ("3年b組金八先生", "xn--3b-ww4c5e180e575a65lsy2b"),
            ("安室奈美恵-with-super-monkeys", "xn---with-super-monkeys-pc58ag80a8qai00g7n9n"),
            ("そのスピードで", "xn--d9juau41awczczp"), ("δυσσεύς", "xn--pxac3bcak3d"),
            ("plain.example", "plain.example"), ("a_b.bücher", "a_b.xn--bcher-kva"),
            ("xn--bcher-kva.ü", "xn--bcher-kva.xn--tda"),
            ("\u{10FFFD}.example", nil), ("a b.ü", nil), ("ü/x", nil), ("„ü“.example", nil), ("ü\u{200B}.example", nil),
        ] as [(String, String?)])
    func forms(_ row: (text: String, ascii: String?)) { #expect(ascii(row.text) == row.ascii) }

    @Test func whatIsNoText() {
        for octets in [[0xFF, 0xFE, 0x61], [0x61, 0xC3], [0xED, 0xA0, 0x80]] as [[UInt8]] {
            #expect(UnicodeName.ascii(octets.span, 0..<octets.count) == nil)
        }
        #expect(ascii(String(repeating: "ü", count: 513)) == nil)
        #expect(ascii(String(repeating: "ü", count: 512)) != nil)
    }
}
