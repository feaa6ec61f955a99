import Foundation

/// Random numbers that are the same for the same seed (SplitMix64), so that a failure can be repeated.
public struct Chance: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    /// A generator with a new seed for each run, or with the seed of a failure: `TEST_SEED=… swift test`. The seed is
    /// printed under the test's name.
    public static func announced(_ test: String) -> Chance {
        let given = ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) }
        let seed: UInt64 = given ?? .random(in: .min ... .max)
        print("\(test): seed \(seed)")
        return Chance(seed: seed)
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    public mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
}
