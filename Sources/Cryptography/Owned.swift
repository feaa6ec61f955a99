internal import COpenSSL

/// Owns one OpenSSL object and frees it exactly once: the value cannot be copied, so no references are counted.
@safe struct Owned: ~Copyable {
    /// The object, valid for as long as this value lives.
    let pointer: OpaquePointer
    private let free: @convention(c) (OpaquePointer?) -> Void

    /// Takes over `pointer`; nil: OpenSSL returned no object.
    init?(_ pointer: OpaquePointer?, freedBy free: @escaping @convention(c) (OpaquePointer?) -> Void) {
        guard let pointer = unsafe pointer else { return nil }
        unsafe self.pointer = pointer
        unsafe self.free = free
    }

    deinit { unsafe free(pointer) }

    /// An empty memory BIO.
    static func memoryBIO() -> Owned? { unsafe Owned(BIO_new(BIO_s_mem()), freedBy: BIO_free_all) }

    /// A memory BIO with a copy of `bytes`.
    static func memoryBIO(holding bytes: [UInt8]) -> Owned? {
        guard let count = Int32(exactly: bytes.count), let bio = memoryBIO(),
            unsafe bytes.isEmpty || BIO_write(bio.pointer, bytes, count) == count
        else { return nil }
        return bio
    }
}

/// Appends all bytes of a memory BIO to `bytes` and empties it.
func drain(_ bio: OpaquePointer, into bytes: inout [UInt8]) {
    var data: UnsafeMutablePointer<CChar>?
    let count = unsafe copenssl_BIO_get_mem_data(bio, &data)
    guard count > 0, let data = unsafe data else { return }
    // Sound: `data` points at `count` bytes that stay until the BIO is used again, which is after the copy.
    unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(start: data, count: count))
    unsafe copenssl_BIO_reset(bio)
}

/// OpenSSL stores its errors in a queue for each thread. Each call whose errors are read begins with an empty queue, so
/// that the error of one session is never taken for another's.
func withClearErrors<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
) throws(Failure) -> Result {
    // Clearing walks over the queue's sixteen entries, peeking does not, and there is rarely an error.
    if ERR_peek_error() != 0 { ERR_clear_error() }
    return try body()
}
