internal import CLinux
internal import Glibc

/// Reports when this machine's addresses, routing or links have changed, so that an existing connection may lead
/// nowhere.
///
/// It needs no privileges. Repetitions (for example a router's advertisement that renews a lifetime) are not reported.
///
/// `@unchecked Sendable`: made on the loop, or passed to it before it starts; from then on used only by the loop.
public final class NetworkWatch: EventHandler, @unchecked Sendable {
    private let changed: () -> Void
    private weak var loop: EventLoop?
    private var socket: Descriptor
    private var registration: Registration?
    private var state = NetworkState()

    /// The most datagrams read in one turn; the rest are read in the next.
    private static let turnLimit = 64
    /// The most datagrams dropped after an overflow: more than fit into a usual receive buffer.
    private static let backlogLimit = 4096
    private static let groups =
        UInt32(
            RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV4_RULE | RTMGRP_IPV6_IFADDR
                | RTMGRP_IPV6_ROUTE) | 1 << (RTNLGRP_IPV6_RULE.rawValue - 1)

    /// Begins to watch. Call on the loop, or before the loop starts.
    ///
    /// - Parameter changed: Called on the loop, once for all changes until the loop reads them.
    public init(in loop: EventLoop, changed: @escaping () -> Void) throws(SystemError) {
        self.changed = changed
        self.loop = loop
        socket = try Descriptor.socket(AF_NETLINK, .raw)
        var name = sockaddr_nl()
        name.nl_family = sa_family_t(AF_NETLINK)
        name.nl_groups = NetworkWatch.groups
        let length = socklen_t(MemoryLayout<sockaddr_nl>.size)
        try SystemCall.require("bind", "netlink") {
            // Sound: sockaddr is the head that every address in memory begins with; the kernel reads `length` bytes.
            unsafe withUnsafeBytes(of: &name) {
                unsafe bind(socket.raw, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), length)
            }
        }
        // The state is asked for after the subscription, so that no change is missed between the two.
        learn()
        registration = try loop.register(socket, .readable, self)
    }

    /// Stops watching. Call on the loop.
    public func stop() {
        if let registration { loop?.unregister(registration) }
        registration = nil
        socket.close()
    }

    public func ready(_ readiness: Readiness) {
        var isChanged = false
        for _ in 0..<NetworkWatch.turnLimit {
            do throws(SystemError) {
                guard let isNews = try receive(from: socket) else { break }
                isChanged = isNews || isChanged
            } catch {
                // ENOBUFS, the only possible error: the buffer overflowed and messages were lost. The messages still
                // queued are older than the state that is fetched now, and must not be applied after it.
                for _ in 0..<NetworkWatch.backlogLimit where (try? receive(from: socket)) == nil { break }
                learn()
                isChanged = true
            }
        }
        if isChanged { changed() }
    }

    /// Applies a datagram to the state; nil if there is none. Without CAP_NET_ADMIN only the kernel can send one.
    private func receive(from socket: borrowing Descriptor) throws(SystemError) -> Bool? {
        // The memory is allocated each time, since on a quiet network it is rarely needed.
        var buffer = [UInt8](repeating: 0, count: Netlink.messageLimit)
        var room = buffer.mutableSpan
        guard case .bytes(let count) = try socket.receive(into: &room) else { return nil }
        buffer.removeLast(buffer.count - count)
        return state.apply(buffer.span)
    }

    /// Asks the kernel for the present state. If the kernel does not answer, the first repetition of each object counts
    /// as a change.
    private func learn() {
        state = NetworkState(defaultLinks: Routes.linksOfDefaultRoutes() ?? [])
        for request in [RTM_GETLINK, RTM_GETADDR] {
            Routes.dump(request) { type, body in _ = state.apply(type, replaces: false, body) }
        }
    }
}
