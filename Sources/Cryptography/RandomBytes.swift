internal import COpenSSL

/// `count` unpredictable bytes from OpenSSL's generator (RAND_bytes). Traps if the system has no randomness, since
/// predictable bytes would be worse than an end of the program.
public func randomBytes(_ count: Int) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        let filled = unsafe RAND_bytes(buffer.baseAddress, Int32(buffer.count))
        precondition(filled == 1, "the system gives no random bytes")
        initialized = count
    }
}
