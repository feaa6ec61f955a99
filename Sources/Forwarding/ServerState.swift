public import Base

/// One server of a group, and how it is.
public struct ServerState: Sendable, Equatable {
    public let server: Server
    public internal(set) var health: ServerHealth
    /// Requests and messages under way to it.
    var underWay = 0
    /// With ``UpstreamGroup/Choice/inPreference(nextWithin:)``: it has failed, and the others are asked before it.
    private(set) var setAside: SetAside?
    /// It has failed, or refused several questions in a row: others of its group are asked before it.
    public var isSetAside: Bool { setAside != nil }
    /// Answers such as SERVFAIL in a row.
    private var refusals = 0
    /// `concurrency` after it has said that it is asked too often, and until when that counts; nil: as configured.
    private var limit: (most: Int, until: Tick)?

    /// For how long a server is left out.
    struct SetAside: Equatable, Sendable {
        /// Seconds, doubled each time it fails again.
        var pause: Int
        /// When it is asked beside a live question next.
        var until: Tick
        /// It is being asked so.
        var isTried = false
    }

    /// Seconds.
    private static let firstPause = 1
    private static let longestPause = 60
    /// After so many answers such as SERVFAIL in a row it is set aside: that of one may be the name's fault.
    private static let mostRefusals = 3
    /// Milliseconds for which a halved limit holds.
    private static let limitTime = 10_000

    public init(_ server: Server, health: ServerHealth) {
        (self.server, self.health) = (server, health)
    }

    public static func == (a: ServerState, b: ServerState) -> Bool {
        a.server == b.server && a.health == b.health && a.underWay == b.underWay && a.setAside == b.setAside
    }

    /// - Parameter configured: `concurrency`; 0: no limit.
    func hasRoom(_ configured: Int, at now: Tick) -> Bool {
        guard configured > 0 else { return true }
        guard let limit, now < limit.until else { return underWay < configured }
        return underWay < limit.most
    }

    /// It was asked too often: half as much at once is allowed for a while.
    mutating func halveLimit(_ configured: Int, at now: Tick) {
        guard configured > 0 else { return }
        var most = configured
        // What was under way together is told off together.
        if let limit, now < limit.until {
            guard underWay >= limit.most else { return }
            most = limit.most
        }
        limit = (max(1, most / 2), now.advanced(milliseconds: Self.limitTime))
    }

    /// Whether to ask it now to see whether it answers again.
    func isDue(at now: Tick) -> Bool { setAside.map { !$0.isTried && $0.until <= now } ?? false }

    mutating func isTried() { setAside?.isTried = true }

    mutating func isBack() { (setAside, refusals) = (nil, 0) }

    /// It has answered with SERVFAIL or the like.
    mutating func refused(at now: Tick) {
        refusals += 1
        if refusals >= Self.mostRefusals { putAside(at: now) }
    }

    /// It has failed: see ``SetAside``. Of what fails together, or before it is tried again, the first counts.
    mutating func putAside(at now: Tick) {
        guard let before = setAside else {
            setAside = SetAside(pause: Self.firstPause, until: now.advanced(milliseconds: Self.firstPause * 1000))
            return
        }
        guard before.isTried || before.until <= now else { return }
        let pause = min(2 * before.pause, Self.longestPause)
        setAside = SetAside(pause: pause, until: now.advanced(milliseconds: pause * 1000))
    }
}
