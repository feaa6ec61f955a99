public import Base

/// The address of this machine to which a datagram was sent, and from which the reply must leave.
public struct LocalAddress: Hashable, Sendable {
    public let address: IPAddress
    /// The index of the interface by which the datagram came, for a link-local address: the kernel sends nothing from
    /// such an address unless it knows the interface. 0 for other addresses: routing chooses the way out.
    let interface: UInt32

    public init(_ address: IPAddress, interface: UInt32 = 0) {
        (self.address, self.interface) = (address, address.isIPv6LinkLocal ? interface : 0)
    }
}
