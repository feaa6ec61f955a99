public import Base

/// Who asks.
public struct Asker: Sendable {
    /// That of a client, which may be a server; unspecified: it is no matter.
    public let address: IPAddress
    /// What the question came over.
    public let way: ClientWay
    /// Whether it is sure that this address has asked: it is this host's, has a connection, or has sent our cookie.
    public let isProven: Bool
    /// Whose share it has of what all clients share.
    public let source: Source

    /// - Parameter source: by ``Links/source(of:)``.
    public init(_ address: IPAddress, over way: ClientWay, isProven: Bool, source: Source) {
        (self.address, self.way, self.isProven, self.source) = (address, way, isProven, source)
    }

    init(_ source: Source, isProven: Bool = true) {
        self.init(IPAddress(v6: 0, 0), over: .udp, isProven: isProven, source: source)
    }

    /// A program of this machine.
    public static var host: Asker { Asker(.host) }
    static var daemon: Asker { Asker(.daemon) }
}
