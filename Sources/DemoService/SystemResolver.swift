internal import Base
internal import DNSWire
internal import HTTPDNS
internal import Transport

/// Asks one DNS resolver over UDP for the names that the demo service does not have; owns the queries under way.
/// Confined to its loop, whose deadline it alone uses.
///
/// Each query is sent once, without TCP: a failure of any kind is "no record", since the service's protocol cannot
/// express it.
final class SystemResolver {
    /// The deadline of a query in nanoseconds: sooner than a daemon gives up on the service.
    static let timeout: UInt64 = 1_500_000_000
    /// The most queries at once, each with its own socket; further names have no record.
    static let queryLimit = 64

    private let server: Endpoint
    private let loop: EventLoop
    private var random = Random()
    /// Ordered by deadline, since all queries have the same time.
    private var queries: [SystemQuery] = []

    init(_ server: Endpoint, loop: EventLoop) {
        self.server = server
        self.loop = loop
    }

    func resolve(_ names: [Name], _ family: ServiceFamily, done: @escaping ([NameResult]) -> Void) {
        let types = (family.includesIPv4 ? [RecordType.a] : []) + (family.includesIPv6 ? [.aaaa] : [])
        let pending = PendingAnswers(names, waitsFor: names.count * types.count, done: done)
        for (index, name) in names.enumerated() {
            for type in types {
                ask(name, type) { pending.take($0, of: type, at: index) }
            }
        }
    }

    /// The loop's deadline has come.
    func expire() {
        let now = Clock.now()
        while let oldest = queries.first, oldest.deadline <= now { end(oldest, .noRecord) }
        loop.setDeadline(queries.first?.deadline)
    }

    private func ask(_ name: Name, _ type: RecordType, answered: @escaping (FamilyResult) -> Void) {
        let id = random.uint16()
        let message = Query.message(id: id, name, type: type, dnssecOK: false, checkingDisabled: false)
        guard queries.count < Self.queryLimit, let socket = try? QuerySocket.open(to: server),
            (try? socket.send(message.span)) == true
        else { return answered(.noRecord) }
        let query = SystemQuery(
            socket, id: id, name: name, type: type, deadline: Clock.now() + Self.timeout, answered: answered)
        guard query.start(in: loop, settled: { [weak self] in self?.settle($0, $1) }) else {
            return answered(.noRecord)
        }
        queries.append(query)
        loop.setDeadline(queries.first?.deadline)
    }

    private func settle(_ query: SystemQuery, _ result: FamilyResult) {
        end(query, result)
        loop.setDeadline(queries.first?.deadline)
    }

    private func end(_ query: SystemQuery, _ result: FamilyResult) {
        queries.removeAll { $0 === query }
        query.end(in: loop)
        query.answered(result)
    }
}

/// One query under way, on its own socket.
private final class SystemQuery: EventHandler {
    let deadline: UInt64
    let answered: (FamilyResult) -> Void
    private var socket: QuerySocket
    private let id: UInt16
    private let name: Name
    private let type: RecordType
    private var registration: Registration?
    private var settled: (SystemQuery, FamilyResult) -> Void = { _, _ in }

    init(
        _ socket: consuming QuerySocket, id: UInt16, name: Name, type: RecordType, deadline: UInt64,
        answered: @escaping (FamilyResult) -> Void
    ) {
        self.socket = socket
        self.id = id
        self.name = name
        self.type = type
        self.deadline = deadline
        self.answered = answered
    }

    /// Sends it; false if the loop cannot watch the socket.
    func start(in loop: EventLoop, settled: @escaping (SystemQuery, FamilyResult) -> Void) -> Bool {
        self.settled = settled
        registration = try? loop.register(socket.descriptor, .readable, self)
        return registration != nil
    }

    func end(in loop: EventLoop) {
        if let registration { loop.unregister(registration) }
        registration = nil
        socket.close()
    }

    func ready(_ readiness: Readiness) {
        // Larger than the size that our query allows.
        var buffer = [UInt8](repeating: 0, count: 4096)
        var room = buffer.mutableSpan
        guard let received = try? socket.receive(into: &room) else { return settled(self, .noRecord) }
        guard case .bytes(let count) = received else { return }
        // A message that is no answer to this query may be forged: the true answer may still come.
        guard
            let reply = try? Response.read(
                buffer.span.extracting(0..<count), id: id, to: name, type: type, defaultNegativeTTL: 0)
        else { return }
        var addresses: [IPAddress] = []
        for record in reply.answer.records() where record.section == .answer && record.type == type {
            if let address = IPAddress(bytes: record.rdata.span) { addresses.append(address) }
        }
        settled(self, addresses.isEmpty ? .noRecord : .addresses(addresses, ttl: reply.answer.keep))
    }
}

/// Waits for the results of several names.
private final class PendingAnswers {
    private var results: [NameResult]
    private var missing: Int
    private let done: ([NameResult]) -> Void

    init(_ names: [Name], waitsFor missing: Int, done: @escaping ([NameResult]) -> Void) {
        results = names.map { NameResult(name: $0, ipv4: .notAsked, ipv6: .notAsked) }
        self.missing = missing
        self.done = done
    }

    func take(_ result: FamilyResult, of type: RecordType, at index: Int) {
        if type == .a { results[index].ipv4 = result } else { results[index].ipv6 = result }
        missing -= 1
        if missing == 0 { done(results) }
    }
}
