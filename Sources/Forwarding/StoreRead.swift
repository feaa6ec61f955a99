import Base

/// A step of a flight that reads the store before its group is asked. The desk knows only the flight's number.
struct StoreSubject {
    let flight: TableID
    let step: Int
    /// The flight's question, for the cache.
    let key: Flight.Key
    /// See ``Flight/bases``.
    var bases = AnswerBases()
    /// The question to the store.
    let question: SharedQuestion
    /// Whether the group carries addresses: only then can it have "no record".
    let isAccount: Bool
}

/// The store's reply to a step, or the meaning of its silence.
struct StoreFinding {
    let subject: StoreSubject
    let news: News

    enum News: Equatable {
        /// A fresh entry, so many seconds old. `isDue`: it is to be refreshed.
        case fresh(SharedContent, elapsed: UInt32, isDue: Bool)
        /// An entry that comes too late for the flight, or has expired: it is only cached.
        case known(SharedContent, elapsed: UInt32)
        /// The store has no entry, or has not replied in time. The group was asked before.
        case nothing
        /// The step goes on without the store: its group is to be asked.
        case askGroup
        /// Another daemon refreshes the entry: its answer will be in the store when a client asks.
        case leaseLost
    }
}

/// A read, or a claim of the lease, that the store has not answered.
struct StoreRead {
    let subject: StoreSubject
    /// Whether it takes the lease of a refresh.
    let isClaim: Bool
    let sent: Tick
    /// When the group is asked if the store has not replied; nil: it was asked already.
    var groupAskedAt: Tick?
    /// Until when clients wait for the store, as they do when the group has failed meanwhile.
    var clientsWaitUntil: Tick
    /// The rules have changed since: the entry may not be the answer any more.
    var isOutdated = false

    /// - Parameters: `wait` and `clientsWait`: In milliseconds.
    init(_ subject: StoreSubject, isClaim: Bool, wait: Int, clientsWait: Int, at now: Tick) {
        (self.subject, self.isClaim, sent) = (subject, isClaim, now)
        groupAskedAt = wait > 0 ? now.advanced(milliseconds: wait) : nil
        clientsWaitUntil = now.advanced(milliseconds: clientsWait)
    }

    var failsAt: Tick { sent.advanced(milliseconds: StoreDesk.readTime) }

    /// When it is to be checked again.
    func next(after now: Tick) -> Tick {
        if let groupAskedAt { return min(groupAskedAt, failsAt) }
        return clientsWaitUntil > now ? clientsWaitUntil : failsAt
    }
}

/// How long a flight may still wait for the store.
struct StorePatience {
    /// Whether a client has asked.
    var isWanted = false
    /// Milliseconds that its clients have waited.
    private var spent = 0

    /// In milliseconds.
    var left: Int { max(0, StoreDesk.mostWait - spent) }

    mutating func waited(since begin: Tick, _ now: Tick) {
        if isWanted { spent += Int((now.nanoseconds &- begin.nanoseconds + 999_999) / 1_000_000) }
    }
}
