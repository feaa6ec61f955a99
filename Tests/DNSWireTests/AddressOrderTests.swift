import Base
import DNSWire
import Testing

/// The addresses of answers change their order, and nothing else does.
@Suite struct AddressOrderTests {
    private static let asked = Name("www.example.com")!
    /// Of the question's name, at octet 12.
    private static let pointer: [UInt8] = [0xC0, 0x0C]

    private static func record(_ owner: [UInt8], _ type: RecordType, _ data: [UInt8], ttl: UInt8 = 60) -> [UInt8] {
        owner + [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1, 0, 0, 0, ttl, 0, UInt8(data.count)]
            + data
    }

    private static func answer(
        _ type: RecordType, _ answers: [[UInt8]], authority: [[UInt8]] = [], additional: [[UInt8]] = [],
        isCacheable: Bool = true
    ) -> Answer {
        let head = AnswerHead(
            responseCode: .noError, authenticData: true, answerCount: UInt16(answers.count),
            authorityCount: UInt16(authority.count), additionalCount: UInt16(additional.count))
        let question = asked.wire + [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1]
        return Answer(
            head: head, body: question + (answers + authority + additional).flatMap { $0 }, keep: 60,
            isCacheable: isCacheable)
    }

    private static func texts(_ answer: Answer) -> [String] { answer.records().map { "\($0.section) \($0)" } }

    /// By the last octet, the greatest first.
    private static func backwards(_ address: IPAddress) -> Int { -Int(address.low & 0xFF) }

    @Test func theRecordSetBehindAnAliasIsSorted() {
        // `target` stands in the alias's data, and the owners point there, one of them with its name written out.
        let alias = Self.record(Self.pointer, .cname, [6] + Array("target".utf8) + [0xC0, 0x10])
        let owner: [UInt8] = [0xC0, UInt8(12 + Self.asked.wire.count + 4 + 12)]
        let signature = Self.record(owner, .rrsig, [0, 1] + [UInt8](repeating: 7, count: 20))
        var answer = Self.answer(
            .a,
            [
                alias, Self.record(owner, .a, [192, 0, 2, 1], ttl: 1), signature,
                Self.record(Array("\u{6}TARGET\u{7}example\u{3}com\u{0}".utf8), .a, [192, 0, 2, 3], ttl: 2),
                Self.record(owner, .a, [192, 0, 2, 2], ttl: 3),
            ], authority: [Self.record(Self.pointer, .ns, owner)],
            additional: [Self.record(owner, .a, [192, 0, 2, 8]), Self.record(owner, .a, [192, 0, 2, 9])])
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
            Self.texts(answer)
                == Self.texts(before).map {
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
        var answer = Self.answer(
            .aaaa,
            [
                Self.record(Self.pointer, .a, [192, 0, 2, 1]), Self.record(Self.pointer, .aaaa, mapped),
                Self.record(Self.pointer, .aaaa, [0x20] + [UInt8](repeating: 0, count: 14) + [9]),
            ])
        let isOther = answer.sortAddresses(by: Self.backwards)
        #expect(isOther)
        #expect(answer.records().map(\.rdata.count) == [4, 16, 16] && answer.records()[2].rdata == mapped)
    }

    @Test func whatIsNoAnswerHasNone() {
        let two = [Self.record(Self.pointer, .a, [192, 0, 2, 1]), Self.record(Self.pointer, .a, [192, 0, 2, 2])]
        let other = Self.record([1, 0x61, 0xC0, 0x0C], .a, [192, 0, 2, 3])
        for var answer in [
            Self.answer(.a, two, isCacheable: false), Self.answer(.a, two + [other]), Self.answer(.aaaa, two),
            Self.answer(.txt, two), Self.answer(.a, [], additional: two),
            .failure(Self.asked, type: .a, .servFail, extendedError: nil),
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
        let first = 12 + Self.asked.wire.count + 4 + 12
        var answer = Self.answer(
            .a, [Self.record(Self.pointer, .a, [0, 0, 0, 1]), Self.record(Self.pointer, .a, [63, 255, 255, 2])],
            additional: [Self.record([0xC0, UInt8(first)], .txt, [0])])
        let before = answer
        #expect(before.addresses.count == 2)
        let isOther = answer.sortAddresses(by: Self.backwards)
        #expect(!isOther && answer == before)
    }
}
