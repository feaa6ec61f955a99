internal import CLinux
internal import Glibc

/// Unpredictable numbers from the kernel, read in pools so that most cost no system call.
public struct Random: ~Copyable, Sendable {
    /// Bytes in a pool: 256 query IDs a system call.
    private static let poolSize = 512

    private var pool: [UInt8] = []
    private var used = 0

    public init() {}

    /// A random number, for query IDs (RFC 5452 §9.2).
    public mutating func uint16() -> UInt16 {
        UInt16(truncatingIfNeeded: take(2))
    }

    public mutating func uint64() -> UInt64 {
        take(8)
    }

    /// `count` bytes straight from the kernel, for keys.
    public static func bytes(_ count: Int) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                // Sound: the rest of the buffer begins at `filled`. At most 256 bytes a call are never interrupted
                // and never short (getrandom(2)); the loop serves larger counts.
                let rest = unsafe buffer.baseAddress! + filled
                let wanted = min(count - filled, 256)
                guard case .done(let got) = SystemCall.attempt({ unsafe getrandom(rest, wanted, 0) }) else {
                    // Without random bytes each ID could be guessed: better no daemon.
                    fatalError("the kernel gives no random bytes")
                }
                filled += got
            }
        }
    }

    private mutating func take(_ count: Int) -> UInt64 {
        if used + count > pool.count {
            pool = Random.bytes(Random.poolSize)
            used = 0
        }
        var value: UInt64 = 0
        for index in used..<used + count { value = value << 8 | UInt64(pool[index]) }
        used += count
        return value
    }
}
