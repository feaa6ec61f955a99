import Base
import Glibc
import TestSupport

/// The network between the simulated machine and all others: sent data arrives later, or never.
final class Network {
    var chance = Chance(seed: 0)
    private(set) var hosts: [IPAddress: Host] = [:]
    /// The content of the store.
    private(set) var shelf = Shelf()
    /// The receivers of replies that leave from a port on which the daemon listens.
    var clients: [Endpoint: ([UInt8]) -> Void] = [:]
    /// Whether any route leads out of the machine.
    private(set) var isUp = true
    /// Whether a route leads to IPv6 addresses.
    private var hasIPv6 = true
    /// The last moment without such a route.
    var hadNoIPv6: UInt64 { isUp && hasIPv6 ? lostIPv6Until : kernel.now }
    private var lostIPv6Until: UInt64 = 0
    /// The same of IPv4, which is reached then under ``prefix``.
    private var hasIPv4 = true
    var hadNoIPv4: UInt64 { isUp && hasIPv4 ? lostIPv4Until : kernel.now }
    private var lostIPv4Until: UInt64 = 0
    /// The prefixes of translators, which always exist: the one of the network, and another one.
    static let prefixes = ["2001:db8:64::/96", "2001:db8:46::/96"].map { NAT64Prefix(Base.Network($0)!)! }
    /// The prefix that the resolvers show.
    private(set) var prefix = prefixes[0]
    /// When what arrives now was sent; nil: nothing arrives.
    private(set) var sentAt: UInt64?
    /// Former addresses of hosts, and the end of the time in which the hosts there now do not answer.
    private var left: [IPAddress: UInt64] = [:]
    private var bound: [Endpoint: DatagramPort] = [:]
    private(set) var listening: [Endpoint: StreamPort] = [:]
    /// The unix sockets by path.
    private var unix: [String: StreamPort] = [:]
    private var links: [WeakLink] = []

    private struct WeakLink { weak var link: Link? }

    /// The source address of the machine's packets.
    private static func own(_ isIPv4: Bool) -> IPAddress {
        isIPv4 ? .v4(10, 77, 0, 2) : IPAddress(v6: 0x2001_0DB8_0077_0000, 2)
    }

    func clear() {
        (shelf, left, unix, hasIPv4, lostIPv4Until) = (Shelf(), [:], [:], true, 0)
        prefix = Self.prefixes[0]
        (hosts, clients, bound, listening, links, isUp, hasIPv6, lostIPv6Until) = (
            [:], [:], [:], [:], [], true, true, 0
        )
    }

    func add(_ host: Host) { hosts[host.address] = host }

    func milliseconds(_ range: ClosedRange<Int>) -> UInt64 {
        UInt64(range.lowerBound + chance.below(range.count)) * 1_000_000 + UInt64(chance.below(1_000_000))
    }

    // MARK: What happens to all

    /// Addresses and routes have changed: no data under way arrives any more.
    func change(isUp: Bool) {
        judge.lastRouteChange = kernel.now
        if !self.isUp { (lostIPv4Until, lostIPv6Until) = (kernel.now, kernel.now) }
        self.isUp = isUp
        for case let link? in links.map(\.link) { link.isDead = true }
        for socket in kernel.all(NetlinkSocket.self) { socket.isOverrun = true }
    }

    /// In another network, whose translator has another prefix.
    func changeTranslator() {
        prefix = Self.prefixes.first { $0 != prefix }!
        change(isUp: true)
    }

    /// Has something arrive that was sent at this moment.
    func arrive(sentAt moment: UInt64, _ arrival: () -> Void) {
        sentAt = moment
        arrival()
        sentAt = nil
    }

    /// The data under way over IPv6 does not arrive any more when the route is gone.
    func changeIPv6(isUp: Bool) {
        judge.lastRouteChange = kernel.now
        if !hasIPv6 { lostIPv6Until = kernel.now }
        hasIPv6 = isUp
        loseLinks(isIPv4: false)
    }

    /// The same of IPv4.
    func changeIPv4(isUp: Bool) {
        judge.lastRouteChange = kernel.now
        if !hasIPv4 { lostIPv4Until = kernel.now }
        hasIPv4 = isUp
        loseLinks(isIPv4: true)
    }

    private func loseLinks(isIPv4: Bool) {
        for case let link? in links.map(\.link) where link.isIPv4 == isIPv4 { link.isDead = true }
        for socket in kernel.all(NetlinkSocket.self) { socket.isOverrun = true }
    }

    private func leads(to address: IPAddress) -> Bool { isUp && (address.isIPv4 ? hasIPv4 : hasIPv6) }

    /// The host at an address, or at the IPv4 address in an address under a prefix.
    private func host(at address: IPAddress) -> Host? {
        hosts[address] ?? Self.prefixes.lazy.compactMap { $0.ipv4(in: address) }.first.flatMap { hosts[$0] }
    }

    /// The far ends of one host, or of all hosts, lose their connections.
    func forget(_ host: Host?) {
        for case let link? in links.map(\.link) where link.host != nil && (host == nil || link.host === host) {
            link.isForgotten = true
        }
    }

    func reset(_ host: Host) {
        for case let link? in links.map(\.link) where link.host === host { link.resetByFar() }
    }

    /// A host uses its other address from now on. The old address refuses connections, but only after this time.
    func move(_ host: Host, seconds: Int) {
        for case let link? in links.map(\.link) where link.host === host { link.isDead = true }
        (hosts[host.address], left[host.address]) = (nil, kernel.now + UInt64(seconds) * 1_000_000_000)
        host.move()
        (hosts[host.address], left[host.address]) = (host, nil)
    }

    /// The host of a server's name.
    func server(called name: String) -> Host? { hosts.values.first { $0.serverName == name } }

    func forEachLink(_ host: Host, _ body: (Link) -> Void) {
        for case let link? in links.map(\.link) where link.host === host { body(link) }
    }

    /// Prints a line for a person who looks at one episode.
    func tell(_ text: @autoclosure () -> String) {
        if isVerbose { print("\(Script.time(kernel.now - Script.start))     \(text())") }
    }

    // MARK: Datagrams

    func bind(_ port: DatagramPort, _ endpoint: Endpoint) -> Int {
        guard bound[endpoint] == nil else { return -Int(EADDRINUSE) }
        (port.local, port.listens) = (endpoint, true)
        bound[endpoint] = port
        return 0
    }

    func release(_ port: DatagramPort) { if bound[port.local] === port { bound[port.local] = nil } }

    private func bindAnywhere(_ port: DatagramPort) {
        while port.local.port == 0 || bound[port.local] != nil {
            port.local = Endpoint(Self.own(port.isIPv4), port: UInt16(32_768 + chance.below(28_000)))
        }
        bound[port.local] = port
    }

    func lookUpRoute(_ port: DatagramPort, _ endpoint: Endpoint) -> Int {
        guard leads(to: endpoint.address), endpoint.address.isIPv4 == port.isIPv4 else { return -Int(ENETUNREACH) }
        if port.local.port == 0 { bindAnywhere(port) }
        port.remote = endpoint
        return 0
    }

    /// A client sends a datagram to a port on which the machine listens.
    func ask(_ bytes: [UInt8], from client: Endpoint, to server: Endpoint) {
        bound[server]?.queue((client, bytes))
    }

    func send(_ bytes: [UInt8], from port: DatagramPort, to endpoint: Endpoint) -> Int {
        if port.listens {
            guard let client = clients[endpoint] else { return bytes.count }
            client(bytes)
            return bytes.count
        }
        guard leads(to: endpoint.address) else { return -Int(ENETUNREACH) }
        if port.local.port == 0 { bindAnywhere(port) }
        guard let host = host(at: endpoint.address) else { return bytes.count }
        let back = port.local
        guard !host.isSilent, !host.loses() else { return bytes.count }
        let now = kernel.now
        for _ in 0..<(host.doubles() ? 2 : 1) {
            kernel.after(host.delay()) { [self] in
                var said: [Host.Datagram]?
                arrive(sentAt: now) { said = host.received(bytes, port: endpoint.port) }
                guard let answers = said else {
                    return deliver(from: endpoint, to: back, after: host.delay()) { $0.refused(bytes) }
                }
                for answer in answers where !host.isSilent && !host.loses() {
                    for _ in 0..<(host.doubles() ? 2 : 1) {
                        let from = Endpoint(answer.from ?? endpoint.address, port: endpoint.port)
                        deliver(from: from, to: back, after: host.delay()) { $0.queue((from, answer.bytes)) }
                    }
                }
            }
        }
        return bytes.count
    }

    private func deliver(
        from: Endpoint, to local: Endpoint, after delay: UInt64, _ body: @escaping (DatagramPort) -> Void
    ) {
        kernel.after(delay) { [self] in if let port = bound[local] { body(port) } }
    }

    // MARK: Connections

    func listen(_ port: StreamPort) -> Int {
        if let path = port.path {
            unix[path] = port
            return 0
        }
        guard listening[port.local] == nil else { return -Int(EADDRINUSE) }
        listening[port.local] = port
        return 0
    }

    func unlisten(_ port: StreamPort) {
        if let path = port.path, unix[path] === port { unix[path] = nil }
        if listening[port.local] === port { listening[port.local] = nil }
    }

    func isListening(_ path: String) -> Bool { unix[path] != nil }

    func connect(_ port: StreamPort, _ endpoint: Endpoint) -> Int {
        guard leads(to: endpoint.address) else { return -Int(ENETUNREACH) }
        port.local = Endpoint(Self.own(endpoint.address.isIPv4), port: UInt16(32_768 + chance.below(28_000)))
        port.remote = endpoint
        port.isConnecting = true
        guard let host = host(at: endpoint.address) else {
            if let until = left[endpoint.address], until <= kernel.now {
                kernel.after(milliseconds(2...25)) { [weak port] in port?.fail(ECONNREFUSED) }
            }
            return -Int(EINPROGRESS)
        }
        let link = Link(port, host)
        links = links.filter { $0.link != nil } + [WeakLink(link: link)]
        port.link = link
        tell("\(host.name) is connected to")
        guard let delay = link.passage() else { return -Int(EINPROGRESS) }
        kernel.after(delay + host.delay()) { [weak port] in
            guard let port, port.isConnecting, !link.isDead else { return }
            port.isConnecting = false
            if !host.refuses, let far = host.accepted(link, port: endpoint.port) {
                link.far = far
            } else {
                port.fail(ECONNREFUSED)
            }
        }
        return -Int(EINPROGRESS)
    }

    /// A client connects to a port on which the machine listens.
    func connect(_ client: any FarEnd, from: Endpoint, to server: Endpoint) -> Link? {
        listening[server].map { connect(client, from: from, to: $0) }
    }

    func connect(_ client: any FarEnd, toPath path: String) -> Link? {
        unix[path].map { connect(client, from: $0.remote, to: $0) }
    }

    private func connect(_ client: any FarEnd, from: Endpoint, to listener: StreamPort) -> Link {
        let port = StreamPort()
        (port.local, port.remote) = (listener.local, from)
        let link = Link(port, nil)
        link.far = client
        port.link = link
        listener.backlog.append(port)
        return link
    }
}
