/// The settings of sockets that decide the way out of this machine.
public struct Egress: Sendable, Hashable {
    /// The sockets' address; nil: the kernel chooses one by its routes. Servers of the other family cannot be reached.
    public var source: IPAddress?
    /// The network device to which they are bound (SO_BINDTODEVICE, socket(7)); empty: none.
    public var device = ""
    /// The sockets' mark, for rules of firewall and routes (SO_MARK, socket(7)); 0: none.
    public var mark: UInt32 = 0

    public init() {}

    /// The most octets of a device's name (IFNAMSIZ, without the zero at its end).
    public static let maximumDeviceLength = 15
}
