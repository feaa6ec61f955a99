/// The events that a descriptor is watched for, or is ready for.
public struct Readiness: OptionSet, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let readable = Readiness(rawValue: 1)
    public static let writable = Readiness(rawValue: 2)
}

/// Receives the readiness of its descriptor.
public protocol EventHandler: AnyObject {
    /// Called on the loop, again and again while the descriptor is ready. An error or a hang-up is reported as
    /// readiness for the whole interest; the read or write that follows gives the error.
    func ready(_ readiness: Readiness)
}

/// A registration of a descriptor. A registration that has ended is never confused with a later one.
public struct Registration: Equatable, Sendable {
    let slot: UInt32
    let generation: UInt32

    /// Generation and slot in one number, for epoll.
    var token: UInt64 { UInt64(generation) << 32 | UInt64(slot) }
}

extension Registration {
    /// A token that no registration has.
    static let mailboxToken = UInt64.max
    static let timerToken = UInt64.max - 1
    static let givingWayToken = UInt64.max - 2

    init(token: UInt64) {
        slot = UInt32(truncatingIfNeeded: token)
        generation = UInt32(truncatingIfNeeded: token >> 32)
    }
}
