/// The settings of sockets that decide the way out of this machine.
public struct Egress: Sendable, Hashable {
    /// The sockets' address; nil: the kernel chooses by its routes. No server of the other family can be reached.
    public var source: IPAddress?
    /// The network device to which the sockets are bound (SO_BINDTODEVICE, socket(7)); empty for none. Its name has at
    /// most ``Zone/maximumLength`` octets.
    public var device = ""
    /// The sockets' mark, for rules of firewall and routes (SO_MARK, socket(7)); 0 for none.
    public var mark: UInt32 = 0

    public init() {}
}
