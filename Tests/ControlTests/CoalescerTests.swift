import Testing

@testable import Control

@Suite struct CoalescerTests {
    @Test("what many ask for is fetched once, and not too often")
    func coalescer() {
        let coalescer = Coalescer<Int>()
        var rounds: [UInt64] = []
        var told: [Int?] = []
        coalescer.begin = { rounds.append($0) }
        coalescer.ask(at: 1_000_000_000) { told.append($0) }
        coalescer.ask(at: 1_000_000_001) { told.append($0) }
        #expect(rounds == [1])
        coalescer.arrived(5, in: 1)
        #expect(told == [5, 5] && coalescer.nextDeadline == nil)
        coalescer.ask(at: 1_010_000_000) { told.append($0) }
        #expect(rounds == [1] && coalescer.nextDeadline == 1_050_000_000)
        coalescer.expire(at: 1_050_000_000)
        #expect(rounds == [1, 2])
        coalescer.expire(at: 3_050_000_000)
        #expect(told == [5, 5, nil])
        // Too late, and of another round.
        coalescer.arrived(6, in: 2)
        coalescer.ask(at: 4_000_000_000) { told.append($0) }
        coalescer.arrived(6, in: 2)
        #expect(told == [5, 5, nil])
        coalescer.arrived(7, in: 3)
        #expect(told == [5, 5, nil, 7])
    }
}
