internal import CLinux
internal import Glibc

/// Unpredictable numbers from the kernel, read in pools so that most cost no system call.
public struct Random: ~Copyable, Sendable {
    /// Bytes in a pool: 128 query IDs per getrandom(2), which returns a request of at most 256 bytes in full.
    private static let poolSize = 256

    private var pool: [UInt8] = []
    private var used = 0

    public init() {}

    /// A random number, for query IDs (RFC 5452 §9.2).
    public mutating func uint16() -> UInt16 { UInt16(truncatingIfNeeded: take(2)) }

    public mutating func uint64() -> UInt64 { take(8) }

    private mutating func take(_ count: Int) -> UInt64 {
        if used + count > pool.count {
            pool = [UInt8](repeating: 0, count: Random.poolSize)
            guard case .done(Random.poolSize) = SystemCall.attempt({ unsafe getrandom(&pool, Random.poolSize, 0) })
            else {
                // Without random bytes each ID could be guessed: it is better to run no daemon.
                fatalError("the kernel gives no random bytes")
            }
            used = 0
        }
        var value: UInt64 = 0
        for index in used..<used + count { value = value << 8 | UInt64(pool[index]) }
        used += count
        return value
    }
}
