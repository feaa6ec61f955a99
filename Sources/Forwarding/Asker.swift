public import Base

/// The sender of a question.
public struct Asker: Sendable {
    /// The address of the client, which may be a server; unspecified: it does not matter.
    public let address: IPAddress
    /// The transport of the question.
    public let way: ClientWay
    /// Whether the address is proven: it is this host's, has a connection, or has sent our cookie.
    public let isProven: Bool
    /// The source whose share the question uses.
    public let source: Source

    /// - Parameter source: By ``Links/source(of:)``.
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
