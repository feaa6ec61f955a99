public import Base

/// When a network is asked for the prefix of its translator, and which prefix is used (RFC 7050).
///
/// | what happens | what is done |
/// | --- | --- |
/// | a network without IPv4 begins, or has changed; its resolvers are others | they are asked at once; the prefix of before stays until they have answered |
/// | one with IPv4 begins, and clients get no made addresses there | the prefix is forgotten |
/// | a prefix is told | it is used; asked again when the record's time is over, but not before ``shortest`` nor after ``longest`` |
/// | several are told (RFC 7050 §3) | the one in use, if it is among them, else the first |
/// | none is told: no translator is there | none is used; asked again after ``longest`` |
/// | no answer | as before; asked again after ``retry``, each time twice as long, up to ``longest`` |
public struct PrefixSearch: Sendable {
    /// The prefix that was told; nil: none.
    public private(set) var prefix: NAT64Prefix?
    /// When it is to be asked (again); nil: not before something changes.
    public private(set) var nextDeadline: Tick?
    /// Whether the network leads to IPv4 by a translator alone, or clients want made addresses in any case.
    private var isWanted = false
    /// Whether an answer is awaited.
    private var isAsking = false
    private var hasAnswered = false
    private var failures = 0

    /// Seconds.
    static let shortest = 60
    static let longest = 600
    static let retry = 1

    /// Whether no resolver has answered since the search began, however it ended.
    public var isAwaited: Bool { isWanted && failures == 0 && !hasAnswered }

    /// Nothing is searched for yet.
    public init() {}

    /// The network has changed, or its resolvers have.
    /// - Parameter isWanted: whether a prefix would be used.
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
    ///   - addresses: those of ``Name/ipv4Only``; nil: there was no answer, or a failure.
    ///   - seconds: for how long they hold.
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
