import Base
import Cryptography
import DNSCache
import DNSWire
import Forwarding
import Testing

@testable import Upstreams

/// The data that the store can see, and the values from the store that are accepted.
@Suite struct StoreSealTests {
    private static let name = Name("www.example.com")!
    private static let question = SharedQuestion(group: .httpdns, name: name, type: .a, audience: .everyone)
    private static let answer = Answer.addresses(name, type: .a, [.v4(192, 0, 2, 1)], ttl: 60)

    private static func seal(_ identity: [UInt8] = [1], secret: UInt8 = 7) throws -> StoreSeal {
        StoreSeal(
            try FleetSeal(secret: [UInt8](repeating: secret, count: 32)),
            [.httpdns: identity, .fallback: identity + [0]])
    }

    @Test func everythingThatDecidesAnAnswerIsInItsKey() throws {
        let seal = try Self.seal()
        var questions = [Self.question]
        func add(_ change: (inout SharedQuestion) -> Void) {
            var other = Self.question
            change(&other)
            questions.append(other)
        }
        add { $0.name = Name("ww.example.com")! }
        add { $0.type = .aaaa }
        add { $0.group = .fallback }
        add { $0.families = .ipv4 }
        add { $0.families = .both }
        add { $0.refusesPrivate = true }
        for bits in 0..<4 {
            add { $0.audience = .those(dnssecOK: bits & 1 > 0, checkingDisabled: bits & 2 > 0) }
        }
        var keys = questions.map { seal.key(.fresh, of: $0)!.text }
        keys += [StoreSeal.Purpose.stale, .lease].map { seal.key($0, of: Self.question)!.text }
        keys.append(try Self.seal([2]).key(.fresh, of: Self.question)!.text)
        keys.append(try Self.seal(secret: 8).key(.fresh, of: Self.question)!.text)
        seal.generation = 1
        keys.append(seal.key(.fresh, of: Self.question)!.text)
        keys.append(seal.generationKey.text)
        #expect(Set(keys).count == keys.count)
        for key in keys { #expect(key.starts(with: Array("h1:".utf8)) && key.count == 25) }
        seal.generation = 0
        #expect(seal.key(.fresh, of: Self.question)?.text == keys[0])
        var unknown = Self.question
        unknown.group = GroupID(9)
        #expect(seal.key(.fresh, of: unknown) == nil)
    }

    @Test func oneLookupOfAnAccountHasOneLease() throws {
        let seal = try Self.seal()
        for (families, count) in [(Families.both, 1), ([], 2)] {
            let leases = [RecordType.a, .aaaa].map { type in
                var question = Self.question
                (question.type, question.families) = (type, families)
                return seal.key(.lease, of: question)!.text
            }
            #expect(Set(leases).count == count)
        }
    }

    @Test(arguments: [
        SharedContent.noRecord, .answer(Self.answer), .answer(.nxDomain(Self.name, type: .a, negativeTTL: 30)),
    ])
    func whatWasSealedOpens(content: SharedContent) throws {
        let seal = try Self.seal()
        let key = try #require(seal.key(.fresh, of: Self.question))
        let value = try seal.value(content, stored: 1_700_000_000, lifetime: 60, as: key)
        #expect(value.count % StoreSeal.padding == 0)
        var expected = content
        if case .answer(var answer) = content {
            answer.keep = 60
            expected = .answer(answer)
        }
        #expect(
            seal.entry(value, as: key, to: Self.question)
                == SharedEntry(expected, stored: 1_700_000_000, lifetime: 60))
        // The fleet itself has sealed this value, but for another key.
        let other = try #require(seal.key(.stale, of: Self.question))
        #expect(seal.entry(value, as: other, to: Self.question) == nil)
        var question = Self.question
        question.type = .aaaa
        if content != .noRecord { #expect(seal.entry(value, as: key, to: question) == nil) }
        #expect(
            try seal.entry(value, as: key, to: Self.question) != nil
                && Self.seal(secret: 8).entry(value, as: key, to: Self.question) == nil)
    }

    @Test func whatTheCacheCouldNotHoldIsRefusedThoughItIsSealed() throws {
        let seal = try Self.seal()
        let key = try #require(seal.key(.fresh, of: Self.question))
        func opens(_ answer: Answer, lifetime: UInt32 = 60) throws -> Bool {
            let value = try seal.value(.answer(answer), stored: 1, lifetime: lifetime, as: key)
            return seal.entry(value, as: key, to: Self.question) != nil
        }
        #expect(try opens(Self.answer))
        #expect(try !opens(Self.answer, lifetime: 0) && !opens(Self.answer, lifetime: .max))
        for index in Self.answer.body.indices.dropLast() {
            var cut = Self.answer
            cut.body.removeLast(cut.body.count - index)
            #expect(try !opens(cut))
        }
        var counts = Self.answer
        counts.head.answerCount = 2
        #expect(try !opens(counts))
        var failure = Self.answer
        failure.head.responseCode = .servFail
        #expect(try !opens(failure))
        // Arbitrary content, sealed by the test.
        let bare = try FleetSeal(secret: [UInt8](repeating: 7, count: 32))
        for length in [0, 1, 23, 24, 100] {
            let value = try bare.seal([UInt8](repeating: 0xFF, count: length), as: key.name)
            #expect(seal.entry(value, as: key, to: Self.question) == nil)
        }
    }

    @Test func aGenerationIsSealedToo() throws {
        let seal = try Self.seal()
        let value = try seal.value(generation: 77, as: seal.generationKey)
        #expect(seal.generation(value, as: seal.generationKey) == 77)
        #expect(try Self.seal(secret: 8).generation(value, as: seal.generationKey) == nil)
    }
}
