import Base
import TestSupport
import Testing

@testable import Forwarding

/// The names that a fleet is billed for, compared with one daemon that gets the same questions.
@Suite struct FleetEconomyTests {
    /// The questions of a thousand daemons: 10 minutes, 5,000 names by Zipf's law.
    private static let questions: [(at: UInt64, node: Int, name: Int)] = {
        let perSecond = 100
        var chance = Chance(seed: 9)
        var sum = 0.0
        let distribution = (1...5000).map { rank in
            sum += 1 / Double(rank)
            return sum
        }
        return (0..<600 * perSecond).map { number in
            let point = Double.random(in: 0..<sum, using: &chance)
            var (low, high) = (0, distribution.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if distribution[middle] < point { low = middle + 1 } else { high = middle }
            }
            return (UInt64(number) * 1_000_000_000 / UInt64(perSecond), chance.below(1000), low)
        }
    }()

    /// - Parameter counts: The daemons whose questions are asked; all other daemons stay silent.
    private static func billed(daemons: Int, isShared: Bool, counts: Range<Int> = 0..<1000) -> Int {
        let world = FleetWorld(nodes: daemons, names: 5000, isShared: isShared)
        let begin = world.now
        for question in questions where counts.contains(question.node) {
            world.run(until: begin + question.at)
            world.ask(question.node % daemons, question.name)
        }
        world.run(milliseconds: 5000)
        return world.billed
    }

    @Test("a thousand daemons are billed for hardly more lookups than one")
    func thousandDaemons() {
        let alone = Self.billed(daemons: 1, isShared: false)
        let fleet = Self.billed(daemons: 1000, isShared: true)
        // Without a store each is on its own, so a few stand for all.
        let unshared = 20 * Self.billed(daemons: 50, isShared: false, counts: 0..<50)
        print("lookups billed: one daemon \(alone), 1,000 with a store \(fleet), without some \(unshared)")
        #expect(Double(fleet) <= 1.05 * Double(alone))
        #expect(unshared > 3 * alone)
    }

    @Test("of daemons that ask for a name together, those are billed that asked before the first had its answer")
    func together() {
        let world = FleetWorld(nodes: 20, names: 1)
        // One every 2 ms. The first lookup begins after a look into the store, which takes 0.4 ms, and takes 30 ms.
        for node in 0..<20 {
            world.ask(node, 0, andWait: 2)
        }
        world.run(milliseconds: 100)
        #expect(world.billed == 16)
        #expect(world.nodes.allSatisfy { $0.forwarder.store.counters.reads == 1 })
    }
}
