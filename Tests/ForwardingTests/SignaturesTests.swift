import Base
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

@Suite struct SignaturesTests {
    /// Signatures that a resolver sends unasked reach only clients with DO.
    @Test(arguments: [Audience.plain, .validating]) func signaturesAreForClientsWithDO(_ audience: Audience) {
        let now = Tick(nanoseconds: 1_000_000_000_000)
        let name = Name("www.example.com")!
        var signed = Answer.addresses(name, type: .a, [.v4(192, 0, 2, 1)], ttl: 60)
        signed.body += [0xC0, 0x0C, 0, 46, 0, 1, 0, 0, 0, 60, 0, 20, 0, 1] + [UInt8](repeating: 0, count: 18)
        signed.head.answerCount += 1
        var upstreams = TestUpstreams()
        upstreams.hasService = false
        var forwarder = upstreams.forwarder(DNSCache(bytes: 1 << 20, seed: (1, 2)))
        forwarder.receive(name, .a, for: audience, from: 1, at: now)
        forwarder.endTurn(at: now)
        for case .ask(let id, _, _) in forwarder.takeActions() { forwarder.settle(id, .answer(signed), at: now) }
        let replies = forwarder.takeActions().compactMap { action -> Answer? in
            if case .reply(_, let answer, _, by: _, way: _) = action { answer } else { nil }
        }
        #expect(replies.map(\.isSigned) == [audience == .validating])
        #expect(replies.first?.addresses == [.v4(192, 0, 2, 1)])
    }
}
