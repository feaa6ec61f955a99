import Testing

@testable import Upstreams

/// The deleted keys whose entries a store must not bring back.
@Suite struct ForgottenKeysTests {
    @Test("of too many the oldest are dropped, be they seconds old or of one second", arguments: [1, 0])
    func tooMany(_ seconds: Int) {
        var forgotten = ForgottenKeys()
        func key(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }
        let count = ForgottenKeys.most + 1
        for number in 0..<count { forgotten.add(key(number), at: UInt64(100 + number * seconds)) }
        let held = [0, count - ForgottenKeys.most / 4, count - 1].map { forgotten.holds(key($0), stored: 99) }
        #expect(held == [false, true, true])
        #expect(!forgotten.holds(key(count - 1), stored: UInt64(100 + count)))
    }
}
