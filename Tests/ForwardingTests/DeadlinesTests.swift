import Base
import TestSupport
import Testing

@testable import Forwarding

@Suite struct DeadlinesTests {
    @Test(arguments: [UInt64(1), 2, 3]) func theyComeInTheirOrderAsASortedListHasThem(seed: UInt64) {
        print("seed \(seed)")
        var chance = Chance(seed: seed)
        var deadlines = Deadlines<Int>()
        var model: [(tick: Tick, subject: Int)] = []
        var now: UInt64 = 0
        for step in 0..<20_000 {
            switch chance.below(20) {
            case 0..<12:
                let tick = Tick(nanoseconds: now + UInt64(chance.below(1000)))
                deadlines.insert(step, at: tick)
                model.append((tick, step))
            case 12..<19:
                now += UInt64(chance.below(60))
                let due = Tick(nanoseconds: now)
                var popped: [Int] = []
                while let subject = deadlines.popDue(at: due) { popped.append(subject) }
                // Equal moments have no order of their own.
                #expect(Set(popped) == Set(model.filter { $0.tick <= due }.map(\.subject)))
                let ticks = Dictionary(uniqueKeysWithValues: model.map { ($0.subject, $0.tick) })
                #expect(popped.compactMap { ticks[$0] } == popped.compactMap { ticks[$0] }.sorted())
                model.removeAll { $0.tick <= due }
            default:
                deadlines.compact { $0 % 3 != 0 }
                model.removeAll { $0.subject % 3 == 0 }
            }
            #expect(deadlines.count == model.count)
            #expect(deadlines.next == model.map(\.tick).min())
        }
    }

    @Test func nothingIsDueBeforeItsMoment() {
        var deadlines = Deadlines<Int>()
        #expect(deadlines.next == nil)
        #expect(deadlines.popDue(at: Tick(nanoseconds: .max)) == nil)
        deadlines.insert(1, at: Tick(nanoseconds: 10))
        #expect(deadlines.popDue(at: Tick(nanoseconds: 9)) == nil)
        #expect(deadlines.popDue(at: Tick(nanoseconds: 10)) == 1)
    }
}
