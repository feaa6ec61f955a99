/// The keys of a store whose entries were to be forgotten, and since when: a store that lies could give back what it had
/// confirmed to be gone.
struct ForgottenKeys {
    private var since: [[UInt8]: UInt64] = [:]

    /// Beyond it the oldest is left out: its entry may have ended by then, and a store must lie for it to matter.
    static let most = 2048

    /// - Parameter wall: seconds since 1970.
    mutating func add(_ key: [UInt8], at wall: UInt64) {
        since[key] = wall
        guard since.count > Self.most, let oldest = since.min(by: { $0.value < $1.value }) else { return }
        since[oldest.key] = nil
    }

    /// Whether an entry was written before its key was to be forgotten.
    /// - Parameter stored: by the writer's clock, in seconds since 1970.
    func holds(_ key: [UInt8], stored: UInt64) -> Bool { since[key].map { stored < $0 } ?? false }
}
