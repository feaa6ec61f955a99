import Addresses
import Foundation
import Glibc

/// glibc's own reading and writing of addresses: the independent judge of ours.
enum Judge {
    static func octets(_ text: String) -> [UInt8]? {
        var v4 = [UInt8](repeating: 0, count: 4)
        if inet_pton(AF_INET, text, &v4) == 1 { return v4 }
        var v6 = [UInt8](repeating: 0, count: 16)
        return inet_pton(AF_INET6, text, &v6) == 1 ? v6 : nil
    }

    static func text(_ octets: [UInt8]) -> String {
        var buffer = [CChar](repeating: 0, count: 64)
        _ = inet_ntop(octets.count == 4 ? AF_INET : AF_INET6, octets, &buffer, socklen_t(buffer.count))
        return buffer.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }
}

/// SplitMix64: the same seed gives the same test, and a failing test says its seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// A new seed for each run, or the one of a failure to look at: `TEST_SEED=… swift test`.
func testSeed() -> UInt64 {
    ProcessInfo.processInfo.environment["TEST_SEED"].flatMap(UInt64.init) ?? .random(in: .min ... .max)
}

// A span cannot pass through the macros of Testing.

func addressFrom(octets: [UInt8]) -> IPAddress? { IPAddress(bytes: octets.span) }

func addressFrom(parsing bytes: [UInt8]) -> IPAddress? { IPAddress(parsing: bytes.span) }
