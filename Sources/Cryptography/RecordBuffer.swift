/// Memory into which the sessions of one context decrypt in turn; each session copies its plaintext out at once.
@safe final class RecordBuffer {
    // Valid as long as the object; its users are confined to one queue.
    let bytes: UnsafeMutableBufferPointer<UInt8>

    init(length: Int) {
        unsafe bytes = .allocate(capacity: length)
        unsafe bytes.initialize(repeating: 0)
    }

    deinit { unsafe bytes.deallocate() }
}
