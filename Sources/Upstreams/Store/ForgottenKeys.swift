/// The deleted keys of a store, with the time of deletion: a malicious store could return an entry whose deletion it
/// had confirmed.
struct ForgottenKeys {
    /// By key, the time of its latest deletion, and how many deletions there were until then.
    private var since: [[UInt8]: (wall: UInt64, number: Int)] = [:]
    private var added = 0

    /// Beyond this number the oldest keys are dropped: their entries may have expired, and only a malicious store
    /// returns them.
    static let most = 2 * StoreUpstream.maximumDeletions

    /// - Parameter wall: The time in seconds since 1970.
    mutating func add(_ key: [UInt8], at wall: UInt64) {
        added += 1
        since[key] = (wall, added)
        guard since.count > Self.most else { return }
        let middle = since.values.map { $0.number }.sorted()[Self.most / 2]
        since = since.filter { $0.value.number > middle }
    }

    /// Whether an entry was written before its key was to be deleted.
    /// - Parameter stored: When the entry was written, by the writer's clock, in seconds since 1970.
    func holds(_ key: [UInt8], stored: UInt64) -> Bool { since[key].map { stored < $0.wall } ?? false }
}
