import Base

/// A step of a flight that looks into the store before its group is asked. The desk knows the flight by its number only.
struct StoreSubject {
    let flight: TableID
    let step: Int
    /// What the flight is asked, for the cache.
    let key: Flight.Key
    /// See ``Flight/bases``.
    var bases = AnswerBases()
    /// What the store is asked.
    let question: SharedQuestion
    /// Whether the group carries addresses: only then can it have "no record".
    let isAccount: Bool
}

/// What the store says to a step, or what its silence means.
struct StoreFinding {
    let subject: StoreSubject
    let news: News

    enum News: Equatable {
        /// A fresh entry, so many seconds old. `isDue`: it is to be refreshed.
        case fresh(SharedContent, elapsed: UInt32, isDue: Bool)
        /// What comes too late for the flight, or is past its time: it is only put into the cache.
        case known(SharedContent, elapsed: UInt32)
        /// The store has nothing, or has not said so in time. The group was asked before.
        case nothing
        /// The step goes on without the store: the group is to be asked.
        case askGroup
        /// Another daemon refreshes the entry: its answer will be in the store when a client asks.
        case leaseLost
    }
}

/// A read, or a claim of the lease, that the store has not answered.
struct StoreRead {
    let subject: StoreSubject
    /// It takes the lease of a refresh.
    let isClaim: Bool
    let sent: Tick
    /// When the group is asked if the store has not answered by then; nil: it was asked already.
    var groupAskedAt: Tick?
    /// Until when clients wait for it at all, as they do when the group has failed meanwhile.
    var clientsWaitUntil: Tick
    /// The rules have changed since: by the new ones this may not be the answer.
    var isOutdated = false

    /// - Parameters: `wait` and `clientsWait`: in milliseconds.
    init(_ subject: StoreSubject, isClaim: Bool, wait: Int, clientsWait: Int, at now: Tick) {
        (self.subject, self.isClaim, sent) = (subject, isClaim, now)
        groupAskedAt = wait > 0 ? now.advanced(milliseconds: wait) : nil
        clientsWaitUntil = now.advanced(milliseconds: clientsWait)
    }

    var failsAt: Tick { sent.advanced(milliseconds: StoreDesk.readTime) }

    /// When it is to be looked at again.
    func next(after now: Tick) -> Tick {
        if let groupAskedAt { return min(groupAskedAt, failsAt) }
        return clientsWaitUntil > now ? clientsWaitUntil : failsAt
    }
}

/// What a flight that has looked into the store may still wait for it.
struct StorePatience {
    /// Whether a client has asked.
    var isWanted = false
    /// Milliseconds for which its clients have waited.
    private var spent = 0

    /// In milliseconds.
    var left: Int { max(0, StoreDesk.mostWait - spent) }

    mutating func waited(since begin: Tick, _ now: Tick) {
        if isWanted { spent += Int((now.nanoseconds &- begin.nanoseconds + 999_999) / 1_000_000) }
    }
}
