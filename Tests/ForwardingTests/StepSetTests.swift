import Testing

@testable import Forwarding

@Suite struct StepSetTests {
    @Test(arguments: [0, 1, 5, StepSet.capacity - 1]) func aStepIsInIt(step: Int) {
        var set = StepSet()
        #expect(set.isEmpty)
        set.insert(step)
        for other in 0..<StepSet.capacity {
            #expect(set.contains(other) == (other == step))
            #expect(set.containsAny(before: other) == (step < other))
            #expect(set.containsAny(after: other) == (step > other))
        }
        #expect(!set.isEmpty)
        set.remove(step)
        #expect(set.isEmpty)
    }
}
