public import Base
public import Configuration
import Cryptography
public import DNSWire
import Forwarding
import Transport
import Upstreams

/// Asks the HTTPDNS service directly, without cache and local resolver, for the command `query`.
///
/// The servers of `dnsIp` are tried in order, each once a request.
public final class DirectQuery: @unchecked Sendable {
    // Unchecked: everything is used on the loop alone once it has started.
    private let loop: EventLoop
    private let upstream: ServiceUpstream
    private let settings: Settings.HTTPDNS
    private let families: Families
    private var pending: [[Name]] = []
    private var server = 0
    private var requests: UInt32 = 0
    private var known: [Name: NameAddresses] = [:]
    private var asked: (names: [Name], request: QueryID)?
    private var failures: [String] = []
    private var asking: @Sendable (String) -> Void = { _ in }

    /// The service's result for one name.
    public struct Answer: Sendable, Equatable {
        public enum Family: Sendable, Equatable {
            case addresses([IPAddress], ttl: UInt32)
            case noRecord
            case notAsked
        }

        public var name: Name
        public var ipv4: Family
        public var ipv6: Family
    }

    /// Why no server gave an answer, in one line.
    public struct Failed: Error, Equatable, Sendable, CustomStringConvertible {
        public let description: String
    }

    public init(_ settings: Settings, ipv4: Bool, ipv6: Bool) throws(StartFailure) {
        guard let httpdns = settings.httpdns else {
            throw .setting(key: "httpdns", "there is no such section; it names the service to ask")
        }
        self.settings = httpdns
        families = (ipv4 ? Families.ipv4 : []).union(ipv6 ? .ipv6 : [])
        loop = try StartFailure.ofSystem { () throws(SystemError) in try EventLoop(label: "httpdnsd.query") }
        upstream = try ServiceUpstream(httpdns, settings.tls, loop: loop)
    }

    /// Asks about all names, `batch` in a request, and calls back once; only once in this object's life.
    /// - Parameter asking: called on a queue of its own before each request with whom it goes to, and how far this is.
    public func ask(
        _ names: [Name], asking: @escaping @Sendable (String) -> Void = { _ in },
        _ done: @escaping @Sendable (Result<[Answer], Failed>) -> Void
    ) {
        self.asking = asking
        var seen: Set<Name> = []
        let distinct = names.filter { seen.insert($0).inserted }
        pending = stride(from: 0, to: distinct.count, by: settings.batch).map {
            Array(distinct[$0..<min($0 + settings.batch, distinct.count)])
        }
        upstream.settle = { [unowned self] id, outcome, _ in settle(id, outcome) }
        loop.deadlineReached = { [unowned self] in timedOut() }
        loop.turnEnded = { [unowned self] in
            guard asked == nil, let result = next(names) else { return }
            upstream.close()
            loop.stop { done(result) }
        }
        loop.start()
        loop.submit {}
    }

    /// Sends the next request; returns the result once there is none left.
    private func next(_ names: [Name]) -> Result<[Answer], Failed>? {
        guard server < settings.dnsIp.count else {
            return .failure(Failed(description: failures.joined(separator: "; ")))
        }
        guard let batch = pending.first else {
            return .success(names.map { Answer(known[$0], $0, families) })
        }
        requests += 1
        asking("HTTPDNS \(settings.dnsIp[server]); \(known.count) of \(Set(names).count) names are known")
        let request = QueryID(standalone: requests, of: .httpdns)
        asked = (batch, request)
        let now = Tick(nanoseconds: Clock.now())
        loop.setDeadline(now.advanced(milliseconds: settings.timeout).nanoseconds)
        upstream.ask(request, Server(settings.dnsIp[server], .account), .addresses(batch, families), at: now)
        return asked == nil ? next(names) : nil
    }

    private func settle(_ request: QueryID, _ outcome: Outcome) {
        guard let asked, asked.request == request else { return }
        self.asked = nil
        switch outcome {
        case .answer: break
        case .addresses(let results):
            for result in results { known[result.name] = result }
            pending.removeFirst()
            let leftOut = asked.names.filter { known[$0] == nil }
            // The names that the answer leaves out are asked one by one; a name that is left out even then has no
            // record.
            if asked.names.count > 1 { pending.insert(contentsOf: leftOut.map { [$0] }, at: 0) }
        case .failed(let failure):
            failures.append("HTTPDNS \(settings.dnsIp[server]): \(failure.detail)")
            server += 1
        }
    }

    private func timedOut() {
        guard let request = asked?.request else { return }
        upstream.cancel(request)
        settle(request, .failed(Failure(.timedOut, "no answer within \(settings.timeout) ms")))
    }
}

extension DirectQuery.Answer {
    fileprivate init(_ known: NameAddresses?, _ name: Name, _ families: Families) {
        self.name = name
        ipv4 = known.map { Family($0.ipv4) } ?? (families.contains(.ipv4) ? .noRecord : .notAsked)
        ipv6 = known.map { Family($0.ipv6) } ?? (families.contains(.ipv6) ? .noRecord : .notAsked)
    }
}

extension DirectQuery.Answer.Family {
    fileprivate init(_ family: FamilyAddresses) {
        switch family {
        case .addresses(let addresses, let ttl): self = .addresses(addresses, ttl: ttl)
        case .noRecord: self = .noRecord
        case .notAsked: self = .notAsked
        }
    }
}
