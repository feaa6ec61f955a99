import Base
import DNSWire
import Transport

/// One look for the address of a name, put straight to one local resolver: a lookup through this daemon itself could
/// fail, be reported, and so lead to the next one without end. First IPv4, then IPv6.
final class HostLookup: EventHandler {
    private let name: Name
    private let loop: EventLoop
    private let done: (HostLookup, IPAddress?) -> Void
    private var socket: QuerySocket
    private var registration: Registration?
    private var random = Random()
    private var id: UInt16 = 0
    private var type = RecordType.a
    private var usesEDNS = true

    /// What the query allows, and more.
    private static let messageLimit = 4096

    /// On the loop. How long it may take is its owner's decision.
    /// - Parameter done: Called once, later, unless ``close()`` was called before; nil: there is none, or the resolver
    ///   cannot be reached.
    init(
        _ name: Name, at server: Endpoint, loop: EventLoop, done: @escaping (HostLookup, IPAddress?) -> Void
    ) throws(SystemError) {
        (self.name, self.loop, self.done) = (name, loop, done)
        socket = try QuerySocket.open(to: server)
        try ask()
        registration = try loop.register(socket.descriptor, .readable, self)
    }

    func close() {
        guard let registration else { return }
        self.registration = nil
        loop.unregister(registration)
        socket.close()
    }

    func ready(_ readiness: Readiness) {
        do throws(SystemError) {
            while registration != nil {
                var buffer = [UInt8](repeating: 0, count: Self.messageLimit)
                var room = buffer.mutableSpan
                switch try socket.receive(into: &room) {
                case .wouldBlock: return
                case .stranger: continue
                case .bytes(let count):
                    buffer.removeLast(buffer.count - count)
                    try take(buffer)
                }
            }
        } catch {
            finish(nil)
        }
    }

    private func ask() throws(SystemError) {
        id = random.uint16()
        let message = Query.message(
            id: id, name, type: type, dnssecOK: false, checkingDisabled: false, hasEDNS: usesEDNS)
        // Not sent for want of room is as good as lost.
        _ = try socket.send(message.span)
    }

    private func take(_ message: [UInt8]) throws(SystemError) {
        // What is no answer to this query may be forged: the true one may still come.
        guard let reply = try? Response.read(message.span, id: id, to: name, type: type, defaultNegativeTTL: 0) else {
            return
        }
        if usesEDNS, reply.responseCode.mayBeAboutEDNS {
            usesEDNS = false
            return try ask()
        }
        for record in reply.answer.records() where record.section == .answer && record.type == type {
            if let address = IPAddress(bytes: record.rdata.span) { return finish(address) }
        }
        guard type == .a else { return finish(nil) }
        type = .aaaa
        try ask()
    }

    private func finish(_ address: IPAddress?) {
        guard registration != nil else { return }
        close()
        done(self, address)
    }
}
