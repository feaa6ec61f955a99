/// The deleted keys of a store, with the time of deletion: a malicious store could return an entry whose deletion it
/// had confirmed.
struct ForgottenKeys {
    private var since: [[UInt8]: UInt64] = [:]

    /// Beyond this number the oldest key is dropped: its entry may have expired, and only a malicious store returns it.
    static let most = 2048

    /// - Parameter wall: The time in seconds since 1970.
    mutating func add(_ key: [UInt8], at wall: UInt64) {
        since[key] = wall
        guard since.count > Self.most, let oldest = since.min(by: { $0.value < $1.value }) else { return }
        since[oldest.key] = nil
    }

    /// Whether an entry was written before its key was to be deleted.
    /// - Parameter stored: When the entry was written, by the writer's clock, in seconds since 1970.
    func holds(_ key: [UInt8], stored: UInt64) -> Bool { since[key].map { stored < $0 } ?? false }
}
