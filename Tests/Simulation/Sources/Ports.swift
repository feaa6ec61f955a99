import Base
import Glibc

/// udp(7).
final class DatagramPort: KernelObject {
    let isIPv4: Bool
    var local: Endpoint
    var listens = false
    private var incoming: [(from: Endpoint, bytes: [UInt8])] = []
    private var error: Int32 = 0
    /// The datagrams that were sent to a closed port, with IP_RECVERR.
    private var refusals: [[UInt8]] = []
    /// The peer that it is connected to.
    var remote: Endpoint?

    init(isIPv4: Bool) {
        self.isIPv4 = isIPv4
        local = Endpoint(isIPv4 ? IPAddress(v4: 0) : IPAddress(v6: 0, 0), port: 0)
    }

    override var isReadable: Bool { !incoming.isEmpty || hasFailed }
    override var isWritable: Bool { true }
    override var hasFailed: Bool { error != 0 || !refusals.isEmpty }
    override func closed() { kernel.network.release(self) }

    func queue(_ datagram: (from: Endpoint, bytes: [UInt8])) {
        guard remote == nil || remote == datagram.from else { return }
        if incoming.count < 4096 { incoming.append(datagram) }
    }
    func take() -> (from: Endpoint, bytes: [UInt8])? { incoming.isEmpty ? nil : incoming.removeFirst() }
    func refused(_ bytes: [UInt8]) {
        error = ECONNREFUSED
        if refusals.count < 4096 { refusals.append(bytes) }
    }
    func takeRefusal() -> [UInt8]? { refusals.isEmpty ? nil : refusals.removeFirst() }
    func takeError() -> Int32? {
        defer { error = 0 }
        return error == 0 ? nil : error
    }
}

/// rtnetlink(7), which reports no single event: each change overflows the socket, and the daemon reads all again.
final class NetlinkSocket: KernelObject {
    var isOverrun = false
    override var isReadable: Bool { isOverrun }
    func receive() -> Int {
        guard isOverrun else { return -Int(EAGAIN) }
        isOverrun = false
        return -Int(ENOBUFS)
    }
}

/// tcp(7).
final class StreamPort: KernelObject {
    var local = Endpoint(IPAddress(v4: 0), port: 0)
    var remote = Endpoint(IPAddress(v4: 0), port: 0)
    /// The path of a unix socket (unix(7)).
    var path: String?
    var isConnecting = false
    var backlog: [StreamPort] = []
    var link: Link?
    private var isListening = false
    private var isClosed = false
    private var incoming: [UInt8] = []
    private var head = 0
    private var hasEnded = false
    private var error: Int32 = 0
    /// Octets under way to the peer.
    fileprivate(set) var unacknowledged = 0
    private static let room = 64 * 1024

    override var isReadable: Bool {
        isListening ? !backlog.isEmpty : head < incoming.count || hasEnded || error != 0
    }
    override var isWritable: Bool {
        !isListening && !isConnecting && link != nil && (unacknowledged < Self.room || error != 0)
    }
    override var hasFailed: Bool { error != 0 }

    func listen() -> Int {
        isListening = true
        return kernel.network.listen(self)
    }
    func accept() -> StreamPort? { backlog.isEmpty ? nil : backlog.removeFirst() }

    override func closed() {
        isClosed = true
        if isListening { kernel.network.unlisten(self) }
        for port in backlog { port.closed() }
        link?.endedByNear()
        link = nil
    }
    func finish() { link?.endedByNear() }

    func send(_ bytes: [UInt8]) -> Int {
        if error != 0 { return -Int(takeError()) }
        guard let link, !isConnecting else { return -Int(EPIPE) }
        let taken = min(bytes.count, Self.room - unacknowledged)
        guard taken > 0 || bytes.isEmpty else { return -Int(EAGAIN) }
        unacknowledged += taken
        link.sendToFar(Array(bytes[..<taken]))
        return taken
    }

    func receive(_ room: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(room.count, incoming.count - head)
        if count > 0 {
            incoming.withUnsafeBytes {
                room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[head..<head + count]))
            }
            head += count
            if head == incoming.count { (incoming, head) = ([], 0) }
            return count
        }
        if error != 0 { return -Int(takeError()) }
        return hasEnded ? 0 : -Int(EAGAIN)
    }

    func arrived(_ bytes: [UInt8]) { if !isClosed { incoming += bytes } }
    func ended() { hasEnded = true }
    func fail(_ code: Int32) { if !isClosed { (error, hasEnded, isConnecting) = (code, true, false) } }
    func takeError() -> Int32 {
        defer { error = 0 }
        return error
    }
}

/// The other side of a connection.
protocol FarEnd: AnyObject {
    func received(_ bytes: [UInt8])
    func ended()
}

/// One connection, and the arrivals on it.
final class Link {
    private weak var near: StreamPort?
    var far: (any FarEnd)?
    /// Nil for a client of the machine: it has no delay.
    let host: Host?
    /// Whether nothing arrives any more.
    var isDead = false
    /// Whether the far end has lost the connection.
    var isForgotten = false
    private var farAt: UInt64 = 0
    private var nearAt: UInt64 = 0
    private var hasNearEnded = false
    private var hasFarEnded = false

    /// TCP_USER_TIMEOUT.
    private static let patience: UInt64 = 5_000_000_000

    init(_ near: StreamPort, _ host: Host?) { (self.near, self.host) = (near, host) }

    /// Whether it uses IPv4; nil for a client of the machine.
    var isIPv4: Bool? { host == nil ? nil : near?.remote.address.isIPv4 }

    /// The time that data sent now takes; nil: it never arrives.
    func passage() -> UInt64? {
        guard !isDead, kernel.network.isUp || host == nil else { return nil }
        guard let host else { return 100_000 }
        var delay = host.delay()
        for time in [200, 400, 800, 1600] as [UInt64] where host.loses() { delay += time * 1_000_000 }
        guard host.isSilent else { return delay }
        guard let end = host.silentUntil, end - kernel.now < Self.patience else { return nil }
        return end - kernel.now + delay
    }

    func sendToFar(_ bytes: [UInt8]) {
        guard let delay = passage() else { return timeOut() }
        farAt = max(farAt, kernel.now + delay)
        let now = kernel.now
        kernel.at(farAt) { [self] in
            near?.unacknowledged -= bytes.count
            if isForgotten { return resetByFar() }
            kernel.network.arrive(sentAt: now) { far?.received(bytes) }
        }
    }

    private func timeOut() {
        isDead = true
        kernel.after(Self.patience) { [weak near] in near?.fail(ETIMEDOUT) }
    }

    func endedByNear() {
        guard !hasNearEnded else { return }
        if let host { kernel.network.tell("\(host.name) is left") }
        hasNearEnded = true
        guard let delay = passage() else {
            far = nil
            return
        }
        farAt = max(farAt, kernel.now + delay)
        kernel.at(farAt) { [self] in
            far?.ended()
            far = nil
        }
    }

    /// The far end sends, in pieces of its own if the host is slow.
    func sendToNear(_ bytes: [UInt8]) {
        guard !hasFarEnded, let delay = passage() else { return }
        let piece = host?.dribbles ?? 0
        var rest = bytes[...]
        nearAt = max(nearAt, kernel.now + delay)
        while !rest.isEmpty {
            let part = Array(piece > 0 && bytes.count < 2000 ? rest.prefix(piece) : rest)
            rest = rest.dropFirst(part.count)
            kernel.at(nearAt) { [weak near] in near?.arrived(part) }
            if !rest.isEmpty { nearAt += 4_000_000 }
        }
    }

    func endByFar() {
        if let host { kernel.network.tell("\(host.name) ends a connection") }
        guard !hasFarEnded, let delay = passage() else { return }
        hasFarEnded = true
        nearAt = max(nearAt, kernel.now + delay)
        kernel.at(nearAt) { [weak near] in near?.ended() }
    }

    func resetByFar() {
        guard let delay = passage() else { return }
        (hasFarEnded, far) = (true, nil)
        kernel.after(delay) { [weak near] in near?.fail(ECONNRESET) }
    }
}
