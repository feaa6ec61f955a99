import Base
import DNSWire
import Testing

/// The addresses of answers change their order, and nothing else does.
@Suite struct AddressOrderTests {
    /// By the last octet, the greatest first.
    private static func backwards(_ address: IPAddress) -> Int { -Int(address.low & 0xFF) }

    @Test func theRecordSetBehindAnAliasIsSorted() {
        // `target` stands in the alias's data, and the owners point there, one of them with its name written out.
        let alias = Wire.record(Wire.pointer, .cname, [6] + Array("target".utf8) + [0xC0, 0x10])
        let owner: [UInt8] = [0xC0, UInt8(12 + Wire.asked.wire.count + 4 + 12)]
        let signature = Wire.record(owner, .rrsig, [0, 1] + [UInt8](repeating: 7, count: 20))
        var answer = Wire.answer(
            .a,
            [
                alias, Wire.record(owner, .a, [192, 0, 2, 1], ttl: 1), signature,
                Wire.record(Array("\u{6}TARGET\u{7}example\u{3}com\u{0}".utf8), .a, [192, 0, 2, 3], ttl: 2),
                Wire.record(owner, .a, [192, 0, 2, 2], ttl: 3),
            ], authority: [Wire.record(Wire.pointer, .ns, owner)],
            additional: [Wire.record(owner, .a, [192, 0, 2, 8]), Wire.record(owner, .a, [192, 0, 2, 9])])
        answer.add(.staleAnswer)
        let before = answer
        #expect(answer.addresses.map(\.description) == ["192.0.2.1", "192.0.2.3", "192.0.2.2"])
        var isOther = answer.sortAddresses(by: Self.backwards)
        #expect(isOther)
        #expect(answer.addresses.map(\.description) == ["192.0.2.3", "192.0.2.2", "192.0.2.1"])
        #expect(answer.head == before.head && answer.keep == 60 && answer.body.count == before.body.count)
        #expect(answer.extendedErrors == [.staleAnswer])
        // Each TTL stays at its position, and all else where it was.
        #expect(
            Wire.texts(answer)
                == Wire.texts(before).map {
                    $0.replacing(" 1 IN A 192.0.2.1", with: " 1 IN A 192.0.2.3")
                        .replacing(" 2 IN A 192.0.2.3", with: " 2 IN A 192.0.2.2")
                        .replacing(" 3 IN A 192.0.2.2", with: " 3 IN A 192.0.2.1")
                })
        isOther = answer.sortAddresses(by: Self.backwards)
        #expect(!isOther, "it is in order")
        isOther = answer.sortAddresses { _ in 0 }
        #expect(!isOther, "equal ones stay")
    }

    @Test func addressesOfTheOtherFamilyHaveNoPart() {
        let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 10, 0, 0, 1]
        var answer = Wire.answer(
            .aaaa,
            [
                Wire.record(Wire.pointer, .a, [192, 0, 2, 1]), Wire.record(Wire.pointer, .aaaa, mapped),
                Wire.record(Wire.pointer, .aaaa, [0x20] + [UInt8](repeating: 0, count: 14) + [9]),
            ])
        let isOther = answer.sortAddresses(by: Self.backwards)
        #expect(isOther)
        #expect(answer.records().map(\.rdata.count) == [4, 16, 16] && answer.records()[2].rdata == mapped)
    }

    @Test func whatIsNoAnswerHasNone() {
        let two = [Wire.record(Wire.pointer, .a, [192, 0, 2, 1]), Wire.record(Wire.pointer, .a, [192, 0, 2, 2])]
        let other = Wire.record([1, 0x61, 0xC0, 0x0C], .a, [192, 0, 2, 3])
        var uncacheable = Wire.answer(.a, two)
        uncacheable.isCacheable = false
        for var answer in [
            uncacheable, Wire.answer(.a, two + [other]), Wire.answer(.aaaa, two),
            Wire.answer(.txt, two), Wire.answer(.a, [], additional: two),
            .failure(Wire.asked, type: .a, .servFail, extendedError: nil),
            Answer(head: AnswerHead(responseCode: .noError, answerCount: 9), body: [], keep: 1, isCacheable: true),
        ] {
            let before = answer
            let isOther = answer.sortAddresses(by: Self.backwards)
            #expect(answer.addresses == [] && !isOther && answer == before)
        }
    }

    /// The owner of the last record points into the addresses: where that led to the root, it would lead to a label
    /// that never ends.
    @Test func aNameInsideTheAddressesKeepsThemWhereTheyAre() {
        let first = 12 + Wire.asked.wire.count + 4 + 12
        var answer = Wire.answer(
            .a, [Wire.record(Wire.pointer, .a, [0, 0, 0, 1]), Wire.record(Wire.pointer, .a, [63, 255, 255, 2])],
            additional: [Wire.record([0xC0, UInt8(first)], .txt, [0])])
        let before = answer
        #expect(before.addresses.count == 2)
        let isOther = answer.sortAddresses(by: Self.backwards)
        #expect(!isOther && answer == before)
    }
}
