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
    private let upstream: StreamUpstream
    private let settings: Settings.Group
    private let families: Families
    /// The group's name in messages.
    private let title: String
    private var pending: [[Name]] = []
    private var server = 0
    private var requests: UInt32 = 0
    private var known: [Name: NameAddresses] = [:]
    private var asked: (names: [Name], request: QueryID)?
    private var failures: [String] = []
    private var asking: @Sendable (String) -> Void = { _ in }

    /// Why no server gave an answer, in one line.
    public struct Failed: Error, Equatable, Sendable, CustomStringConvertible {
        /// Each server with what came of it.
        public let description: String
    }

    /// - Parameter group: the name of the account's group.
    public init(
        _ settings: Settings, group: String = Settings.Group.httpdnsName, ipv4: Bool, ipv6: Bool
    ) throws(StartFailure) {
        guard let account = settings.accounts.first(where: { $0.name == group }) else {
            guard group != Settings.Group.httpdnsName else {
                throw .setting(key: "httpdns", "there is no such section; it names the service to ask")
            }
            throw .setting(
                key: "upstreams.\(group)", "there is no such HTTPDNS account; give a section with a provider")
        }
        title = group == Settings.Group.httpdnsName ? "HTTPDNS" : group
        self.settings = account
        families = (ipv4 ? Families.ipv4 : []).union(ipv6 ? .ipv6 : [])
        loop = try StartFailure.ofSystem { () throws(SystemError) in try EventLoop(label: "httpdnsd.query") }
        upstream = StreamUpstream(loop: loop, access: try ServiceAccess(account))
    }

    /// Asks about all names, `batch` in a request, and calls back once; only once in this object's life.
    /// - Parameter asking: called on a queue of its own before each request with whom it goes to, and how far this is.
    public func ask(
        _ names: [Name], asking: @escaping @Sendable (String) -> Void = { _ in },
        _ done: @escaping @Sendable (Result<[NameAddresses], Failed>) -> Void
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
    private func next(_ names: [Name]) -> Result<[NameAddresses], Failed>? {
        guard server < settings.dnsIp.count else {
            return .failure(Failed(description: failures.joined(separator: "; ")))
        }
        guard let batch = pending.first else {
            return .success(names.map { known[$0] ?? withoutRecord($0) })
        }
        requests += 1
        asking("\(title) \(settings.dnsIp[server]); \(known.count) of \(Set(names).count) names are known")
        let request = QueryID(standalone: requests, of: .httpdns)
        asked = (batch, request)
        let now = Tick(nanoseconds: Clock.now())
        loop.setDeadline(now.advanced(milliseconds: settings.timeout).nanoseconds)
        upstream.ask(request, Server(settings.dnsIp[server], .account), .addresses(batch, families), at: now)
        return asked == nil ? next(names) : nil
    }

    private func withoutRecord(_ name: Name) -> NameAddresses {
        func family(_ family: Families) -> FamilyAddresses { families.contains(family) ? .noRecord : .notAsked }
        return NameAddresses(name: name, ipv4: family(.ipv4), ipv6: family(.ipv6))
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
            failures.append("\(title) \(settings.dnsIp[server]): \(failure.detail)")
            server += 1
        }
    }

    private func timedOut() {
        guard let request = asked?.request else { return }
        upstream.cancel(request)
        settle(request, .failed(Failure(.timedOut, "no answer within \(settings.timeout) ms")))
    }
}
