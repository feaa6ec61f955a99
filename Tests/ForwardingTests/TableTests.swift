import TestSupport
import Testing

@testable import Forwarding

@Suite struct TableTests {
    @Test func aNumberIsNeverUsedTwice() {
        var table = Table<String>()
        let first = table.insert("a")
        #expect(table[first] == "a")
        #expect(table.remove(first) == "a")
        let second = table.insert("b")
        #expect(second != first)
        #expect(table[first] == nil)
        #expect(table.remove(first) == nil)
        #expect(table[second] == "b")
        #expect(table.count == 1)
    }

    @Test func aNumberOfNoTableFindsNothing() {
        var table = Table<String>()
        table.insert("a")
        for number: UInt32 in 0...2 {
            #expect(!table.contains(TableID(standalone: number)) && table[TableID(standalone: number)] == nil)
        }
    }

    @Test(arguments: [UInt64(1), 2]) func itAgreesWithADictionary(seed: UInt64) {
        print("seed \(seed)")
        var chance = Chance(seed: seed)
        var table = Table<Int>()
        var model: [TableID: Int] = [:]
        var removed: [TableID] = []
        for step in 0..<20_000 {
            switch chance.below(5) {
            case 0...1:
                let next = table.nextID
                let id = table.insert(step)
                #expect(id == next)
                #expect(model.updateValue(step, forKey: id) == nil)
            case 2:
                guard let id = model.keys.randomElement(using: &chance) else { continue }
                #expect(table.remove(id) == model.removeValue(forKey: id))
                removed.append(id)
            case 3:
                guard let id = model.keys.randomElement(using: &chance) else { continue }
                #expect(table[id] == model[id])
            default:
                guard let id = removed.randomElement(using: &chance) else { continue }
                #expect(table[id] == nil)
                #expect(table.remove(id) == nil)
            }
            #expect(table.count == model.count)
        }
        for (id, value) in model { #expect(table[id] == value) }
    }

    @Test func itTakesNoMoreRoomThanItEverHeldAtOnce() {
        var table = Table<Int>()
        let ids = (0..<100_000).map { number in
            let id = table.insert(number)
            table.remove(id)
            return id
        }
        #expect(Set(ids).count == 100_000)
        #expect(table.slotCount == 1)
    }
}

extension Table {
    fileprivate var slotCount: Int {
        (Mirror(reflecting: self).descendant("elements") as? [Element?])?.count ?? -1
    }
}
