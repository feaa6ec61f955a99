import DNSWire
import Testing

/// Letters' case chosen by chance in what we ask, and found again in the answer.
struct SpellingTests {
    private let name = Name("www.example.com")!

    private func query(_ name: Name, bits: [UInt64]) -> (message: [UInt8], isMixed: Bool, calls: Int) {
        var message = Query.message(id: 0x1234, name, type: .a, dnssecOK: false, checkingDisabled: false)
        var calls = 0
        let isMixed = Query.mixCase(of: &message) {
            defer { calls += 1 }
            return bits[calls % bits.count]
        }
        return (message, isMixed, calls)
    }

    private func repeats(_ message: [UInt8], _ query: [UInt8]) -> Bool? {
        let (message, query) = (message, query)
        return Response.repeatsQuestion(message.span, of: query.span)
    }

    @Test func eachLetterHasABitOfItsOwn() {
        let plain = Query.message(id: 0x1234, name, type: .a, dnssecOK: false, checkingDisabled: false)
        func changed(_ bits: UInt64) -> [Int] {
            let (message, isMixed, calls) = query(name, bits: [bits])
            #expect(calls == 1)
            let changed = plain.indices.filter { message[$0] != plain[$0] }
            #expect(isMixed == !changed.isEmpty)
            #expect(changed.allSatisfy { message[$0] == plain[$0] ^ 0x20 })
            return changed
        }
        let letters = (12..<28).filter { plain[$0] >= 0x61 }
        #expect(changed(0) == [] && changed(.max) == letters && letters.count == 13)
        let byBit = (0..<64).map { changed(1 << $0) }
        #expect(byBit.allSatisfy { $0.count <= 1 } && byBit.flatMap(\.self).sorted() == letters)
        #expect(changed(0x5555_5555_5555_5555) == byBit.enumerated().flatMap { $0 % 2 == 0 ? $1 : [] }.sorted())
    }

    /// Whatever the length of a name, and so the offset of its last eight octets, no other octet changes.
    @Test(arguments: 1...63) func namesOfAllLengths(_ length: Int) {
        let name = Name(String(repeating: "x", count: length) + ".y")!
        let (message, _, _) = query(name, bits: [.max])
        let plain = Query.message(id: 0x1234, name, type: .a, dnssecOK: false, checkingDisabled: false)
        let expected = plain.indices.map { $0 < 16 + length && plain[$0] >= 0x61 ? plain[$0] ^ 0x20 : plain[$0] }
        #expect(message == expected)
    }

    /// Length octets, digits and what differs from a letter by the same bit stay: "@[`{" and 0x00.
    @Test func onlyLettersChange() {
        let odd = Name("\\000\\@\\[\\`\\{0-_.\\065\\097.\\255")!
        let (message, isMixed, _) = query(odd, bits: [.max])
        #expect(isMixed)
        #expect(Array(message[12..<27]) == hex("08 00405b607b302d5f 02 4141 01 ff 00"))
        let (digits, wasMixed, calls) = query(Name("1.2.3")!, bits: [.max])
        #expect(!wasMixed && calls == 0 && Array(digits[12..<19]) == hex("01310132013300"))
        let (root, _, rootCalls) = query(.root, bits: [.max])
        #expect(rootCalls == 0 && root[12] == 0)
    }

    @Test func theLongestNameTakesFourNumbers() throws {
        let longest = try nameAsked(Vectors.longestName)
        let (message, _, calls) = query(longest, bits: [.max, 0, .max, 0])
        #expect(calls == 4)
        let upper = message[12..<267].indices { $0 >= 0x41 && $0 <= 0x5A }.ranges.map { $0.count }.reduce(0, +)
        // Of the octets 0 to 63 and 128 to 191 all are letters but the lengths of two labels.
        #expect(upper == 126)
    }

    @Test func anAnswerRepeatsTheQuestionOrNot() {
        let (sent, _, _) = query(name, bits: [0b1010_1010_1010_1010])
        var answer = sent
        answer[2] |= 0x80
        #expect(repeats(answer, sent) == true)
        for index in 13..<28 where sent[index] & 0xDF >= 0x41 {
            var other = answer
            other[index] ^= 0x20
            #expect(repeats(other, sent) == false, "octet \(index)")
        }
        #expect(repeats(hex("1234 8182 0000 0000 0000 0000"), sent) == nil)
        for length in 0..<29 {
            #expect(repeats(Array(answer[..<length]), sent) != true)
        }
    }
}
