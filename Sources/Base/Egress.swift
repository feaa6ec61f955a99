/// How sockets leave this machine.
public struct Egress: Sendable, Hashable {
    /// Their address; nil: one that the kernel chooses by its routes. Servers of the other family cannot be reached.
    public var source: IPAddress?
    /// The network device that they are bound to (SO_BINDTODEVICE, socket(7)); empty: none.
    public var device = ""
    /// Their mark, for rules of firewall and routes (SO_MARK, socket(7)); 0: none.
    public var mark: UInt32 = 0

    public init() {}

    /// The most octets of a device's name (IFNAMSIZ, without the zero at its end).
    public static let maximumDeviceLength = 15
}
