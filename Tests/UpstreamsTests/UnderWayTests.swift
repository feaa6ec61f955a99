import Base
import Forwarding
import TestSupport
import Testing

@testable import Upstreams

/// What is under way is found by its query's id, however numbers collide and whatever has ended before.
struct UnderWayTests {
    final class Subject: ForQuery {
        let id: QueryID
        init(_ id: QueryID) { self.id = id }
    }

    @Test func itHoldsWhatADictionaryHolds() {
        var chance = Chance.announced("itHoldsWhatADictionaryHolds")
        for range in [3, 40, 5000] as [UInt32] {
            var table = UnderWay<Subject>()
            var known: [QueryID: Subject] = [:]
            for _ in 0..<3000 {
                // Far numbers share places with near ones, and the same number in two groups is two queries.
                let number = UInt32.random(in: 0..<range, using: &chance) &* (Bool.random(using: &chance) ? 1 : 1024)
                let id = QueryID(standalone: number, of: Bool.random(using: &chance) ? .httpdns : .fallback)
                if Int.random(in: 0..<5, using: &chance) < 3 {
                    let subject = Subject(id)
                    table.insert(subject)
                    known[id] = subject
                } else {
                    #expect(table.remove(id) === known.removeValue(forKey: id))
                }
                #expect(table[id] === known[id] && table.count == known.count)
            }
            #expect(known.allSatisfy { table[$0] === $1 } && table.all.count == known.count)
            for id in known.keys { #expect(table.remove(id) === known[id]) }
            #expect(table.count == 0 && table.all.isEmpty)
        }
    }
}
