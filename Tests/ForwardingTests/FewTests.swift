import TestSupport
import Testing

@testable import Forwarding

@Suite struct FewTests {
    /// After any operations, the list has the same elements as an array.
    @Test func isAList() {
        var chance = Chance.announced("few")
        for _ in 0..<200 {
            var (few, array) = (SmallList<Int>(), [Int]())
            for _ in 0..<12 {
                if chance.below(4) > 0 {
                    let number = chance.below(3)
                    few.append(number)
                    array.append(number)
                } else {
                    let number = chance.below(3)
                    few.removeAll { $0 == number }
                    array.removeAll { $0 == number }
                }
                #expect(few.allSatisfy { $0 > 0 } == array.allSatisfy { $0 > 0 })
                #expect(Array(few.map { $0 + 1 }) == array.map { $0 + 1 })
                #expect(Array(few) == array && few.count == array.count && few.isEmpty == array.isEmpty)
            }
        }
        #expect(Array(SmallList(7)) == [7])
    }
}
