import Base
import DNSWire
import Testing

/// Answers of which some addresses are unwanted: here those of 10/8, and fd00:: followed by anything.
@Suite struct AddressFilterTests {
    private static let target = [6] + Array("target".utf8) + [0xC0, 0x10]

    private static func isUnwanted(_ address: IPAddress) -> Bool {
        address.isIPv4 ? address.low >> 24 == 10 : address.high >> 48 == 0xFD00
    }

    private static func signature(of type: RecordType, _ owner: [UInt8] = Wire.pointer) -> [UInt8] {
        Wire.record(
            owner, .rrsig, [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF)] + [UInt8](repeating: 7, count: 20))
    }

    @Test func whatHasNoneStaysAsItIs() {
        let answer = Wire.answer(
            .a, [Wire.record(Wire.pointer, .a, [192, 0, 2, 1]), Self.signature(of: .a)],
            additional: [Wire.record(Wire.pointer, .txt, [4, 10, 0, 0, 1])])
        #expect(answer.without(Self.isUnwanted) == nil)
        #expect(answer.answersToTheType == 1)
    }

    @Test func anAliasStaysAndWhatItLeadsToGoesWithItsSignature() throws {
        // `target` stands in the alias's data, and what comes behind points there.
        let alias = Wire.record(Wire.pointer, .cname, Self.target)
        let offset = UInt8(12 + Wire.asked.wire.count + 4 + 12)
        let owner: [UInt8] = [0xC0, offset]
        let answer = Wire.answer(
            .a,
            [
                alias, Wire.record(owner, .a, [10, 0, 0, 1]), Self.signature(of: .a, owner),
                Wire.record(owner, .a, [192, 0, 2, 1]), Self.signature(of: .cname),
            ], authority: [Wire.record(owner, .ns, Wire.pointer)],
            additional: [
                Wire.record(owner, .aaaa, [0xFD] + [UInt8](repeating: 0, count: 15)), Self.signature(of: .aaaa, owner),
                Wire.record(owner, .a, [10, 9, 9, 9]),
            ])
        let rest = try #require(answer.without(Self.isUnwanted))
        let signature = try #require(answer.records().last { $0.type == .rrsig && $0.section == .answer })
        #expect(
            Wire.texts(rest) == [
                "answer www.example.com. 60 IN CNAME target.example.com.",
                "answer target.example.com. 60 IN A 192.0.2.1", "answer \(signature)",
                "authority target.example.com. 60 IN NS www.example.com.",
            ])
        #expect(!rest.head.authenticData && rest.keep == 60 && rest.isCacheable)
        #expect(rest.answersToTheType == 1)
        // It is what a snapshot of the cache would take back.
        let message = [UInt8](repeating: 0, count: 12) + rest.body
        #expect(try StoredAnswer.check(message.span, rest.head).type == .a)
    }

    @Test(
        "the record whose hints name one goes, and one that cannot be read",
        arguments: [
            ([0, 4, 0, 4, 10, 0, 0, 1] as [UInt8], true), ([0, 4, 0, 8, 192, 0, 2, 1, 10, 0, 0, 1], true),
            ([0, 4, 0, 4, 192, 0, 2, 1], false), ([0, 1, 0, 3, 2, 0x68, 0x32], false),
            ([0, 6, 0, 16, 0xFD] + [UInt8](repeating: 0, count: 15), true),
            ([0, 6, 0, 16, 0x20] + [UInt8](repeating: 0, count: 15), false), ([], false),
            ([0, 4, 0, 3, 10, 0, 0], true),
            ([0, 4, 0, 9, 10, 0, 0, 1], true), ([0, 4, 0], true),
        ])
    func hints(_ parameters: [UInt8], _ goes: Bool) {
        for type in [RecordType.https, .svcb] {
            for name: [UInt8] in [[0], [3, 0x66, 0x6F, 0x6F, 0]] {
                let answer = Wire.answer(
                    type, [Wire.record(Wire.pointer, type, [0, 1] + name + parameters), Self.signature(of: type)])
                let rest = answer.without(Self.isUnwanted)
                #expect((rest != nil) == goes)
                if let rest { #expect(rest.records().isEmpty && rest.answersToTheType == 0) }
            }
        }
        let cut = Wire.answer(.https, [Wire.record(Wire.pointer, .https, [0, 1, 9, 1])])
        #expect(cut.without(Self.isUnwanted)?.records() == [])
    }

    /// Written in full, the names of a small answer are longer than any message.
    @Test func whatIsLeftIsCompressed() throws {
        let label = [63] + [UInt8](repeating: 0x61, count: 63)
        let long = Wire.record(Wire.pointer, .ns, label + label + label + Wire.pointer)
        let offset = UInt8(12 + Wire.asked.wire.count + 4 + 12)
        let owner: [UInt8] = [0xC0, offset]
        let many = (0..<1000).map { _ in Wire.record(owner, .txt, [0]) }
        let unwanted = Wire.record(Wire.pointer, .a, [10, 0, 0, 1])
        let first = Wire.answer(
            .a, [unwanted, Wire.record(Wire.pointer, .a, [192, 0, 2, 1])], authority: [], additional: [])
        #expect(first.without(Self.isUnwanted)?.answersToTheType == 1)
        let inAdditional = Wire.answer(
            .ns, [long, Wire.record(Wire.pointer, .a, [10, 0, 0, 1])], additional: many)
        #expect(try #require(inAdditional.without(Self.isUnwanted)).records().count == 1001)
        let inAnswer = Wire.answer(.ns, [long] + many + [unwanted])
        #expect(try #require(inAnswer.without(Self.isUnwanted)).records().count == 1001)
    }

    /// Extended errors stand behind the records, and stay there.
    @Test func extendedErrorsStay() throws {
        var answer = Wire.answer(
            .a, [Wire.record(Wire.pointer, .a, [10, 0, 0, 1]), Wire.record(Wire.pointer, .a, [192, 0, 2, 1])])
        answer.add(.staleAnswer)
        answer.add(.blocked)
        var rest = try #require(answer.without(Self.isUnwanted))
        #expect(rest.extendedErrors == [.blocked, .staleAnswer])
        #expect(rest.records().map { "\($0.rdata)" } == ["[192, 0, 2, 1]"])
        rest.add(.networkError)
        #expect(rest.extendedErrors == [.networkError, .blocked, .staleAnswer])
        #expect(rest.records().count == 1)
        // And where nothing is left of it.
        var errorsAlone = Wire.answer(.a, [Wire.record(Wire.pointer, .a, [10, 0, 0, 1])])
        errorsAlone.add(.blocked)
        let none = try #require(errorsAlone.without(Self.isUnwanted))
        #expect(none.records().isEmpty && none.extendedErrors == [.blocked])
    }
}
