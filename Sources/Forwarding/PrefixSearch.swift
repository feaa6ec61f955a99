public import Base

/// When a network is asked for its NAT64 prefix, and which prefix is used (RFC 7050).
///
/// | event | action |
/// | --- | --- |
/// | a network without IPv4 begins or has changed; its resolvers change | ask at once; the former prefix stays until they have answered |
/// | no route leads out of this machine any more | as in the former network |
/// | a network with IPv4 begins, and clients get no made addresses there | forget the prefix |
/// | the answer has a prefix | use it; ask again when the record's time is over, but not before ``shortest`` nor after ``longest`` |
/// | the answer has several (RFC 7050 §3) | use the present one, if it is among them, else the first |
/// | the answer has none: there is no translator | use none; ask again after ``longest`` |
/// | no answer | no change; ask again after ``retry``, doubled each time, up to ``longest`` |
public struct PrefixSearch: Sendable {
    /// The prefix of the last answer; nil if it had none.
    public private(set) var prefix: NAT64Prefix?
    /// When the resolvers are asked again; nil if they are not asked before a change.
    public private(set) var nextDeadline: Tick?
    /// Whether the network reaches IPv4 only through a translator, or clients want made addresses in any case.
    private var isWanted = false
    /// Whether an answer is awaited.
    private var isAsking = false
    private var hasAnswered = false
    private var failures = 0

    /// The shortest and the longest time between two questions, in seconds.
    static let shortest = 60
    static let longest = 600
    static let retry = 1

    /// Whether no resolver has answered since the search began, and none has failed.
    public var isAwaited: Bool { isWanted && failures == 0 && !hasAnswered }

    /// A search that has not begun.
    public init() {}

    /// The network or its resolvers have changed.
    /// - Parameter isWanted: Whether a prefix would be used.
    public mutating func begin(isWanted: Bool, at now: Tick) {
        self.isWanted = isWanted
        (isAsking, hasAnswered, failures) = (false, false, 0)
        nextDeadline = isWanted ? now : nil
        if !isWanted { prefix = nil }
    }

    /// Whether the resolvers are to be asked now; then an answer is awaited.
    public mutating func takeDue(at now: Tick) -> Bool {
        guard let due = nextDeadline, due <= now, !isAsking else { return false }
        (isAsking, nextDeadline) = (true, nil)
        return true
    }

    /// The resolvers have answered.
    /// - Parameters:
    ///   - addresses: The addresses of ``Name/ipv4Only``; nil if there was no answer, or a failure.
    ///   - seconds: The TTL of the addresses.
    public mutating func answered(_ addresses: [IPAddress]?, for seconds: UInt32, at now: Tick) {
        guard isWanted, isAsking else { return }
        isAsking = false
        guard let addresses else {
            let wait = min(Self.retry << min(failures, 16), Self.longest)
            failures += 1
            nextDeadline = now.advanced(milliseconds: wait * 1000)
            return
        }
        (failures, hasAnswered) = (0, true)
        let found = NAT64Prefix.found(in: addresses)
        if prefix.map({ !found.contains($0) }) ?? true { prefix = found.first }
        let wait = prefix == nil ? Self.longest : min(max(Int(seconds), Self.shortest), Self.longest)
        nextDeadline = now.advanced(milliseconds: wait * 1000)
    }
}

/// How this machine reaches IPv4 addresses.
public struct IPv4Reach: Sendable, Equatable {
    /// Whether there is a route to the Internet of each family.
    public var hasIPv4 = true
    public var hasIPv6 = true
    /// The prefix of the network's translator (NAT64); nil if none is known or wanted.
    public var prefix: NAT64Prefix?
    /// Whether clients get addresses under the prefix (DNS64).
    public var isSynthesizing = false

    /// Whether IPv4 addresses can be reached through the translator.
    public var leadsToIPv4: Bool { prefix != nil && (!hasIPv4 || isSynthesizing) }

    /// Both families are reached directly.
    public init() {}

    /// The difference from most networks, as a sentence without its end; nil if there is none.
    public var words: String? {
        switch (hasIPv4, prefix) {
        case (false, let prefix?) where hasIPv6:
            "this network has no IPv4: servers with IPv4 addresses are asked by way of its translator under \(prefix)"
                + (isSynthesizing ? ", and clients get AAAA records made of A records" : "")
        case (false, nil) where hasIPv6:
            "this network has no IPv4, and no translator to it is known: servers that have IPv4 addresses alone cannot be asked"
        case (true, let prefix?) where isSynthesizing: "clients get AAAA records under \(prefix) made of A records"
        default: nil
        }
    }
}
