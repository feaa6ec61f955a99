public import Base
public import Configuration
import DNSWire
import Forwarding
import Log
import Transport
import Upstreams

/// Goes through what the daemon depends on, step by step on its true path, and says in plain words what works.
public final class Probe: @unchecked Sendable {
    // Unchecked: everything is used on the loop once it has started.
    private let loop: EventLoop
    private let service: ServiceUpstream?
    private let local: LocalUpstream
    private let httpdns: Settings.HTTPDNS?
    private let name: Name
    private let resolverTimeout: Int
    private let say: @Sendable (String) -> Void
    /// What the daemon would say of these settings before it asks anybody.
    private var remarks: [String] = []
    private var steps: [Step]
    private var current: (step: Step, number: UInt32, began: Tick)?
    private var number: UInt32 = 0
    private var serviceWorks = false
    private var resolverWorks = false

    private enum Step {
        case service(Server)
        case resolver(Server)
    }

    /// What is asked for when the configuration names nothing better.
    private static let anyName = Name("example.com")

    /// - Parameters:
    ///   - environment: where `http_proxy` and its like are looked for.
    ///   - say: called with one line after the other, on the loop; what fails is said as in the daemon's log.
    public init(
        _ settings: Settings, environment: [String: String] = [:], say: @escaping @Sendable (String) -> Void
    ) throws(StartFailure) {
        try settings.refuseUnsupported()
        httpdns = settings.httpdns
        self.say = say
        resolverTimeout = settings.fallback.timeout
        name = settings.domains.intercept.first ?? Self.anyName ?? .root
        let loop = try StartFailure.ofSystem { () throws(SystemError) in try EventLoop(label: "httpdnsd.probe") }
        self.loop = loop
        service = try settings.httpdns.map { httpdns throws(StartFailure) in
            try ServiceUpstream(httpdns, settings.tls, loop: loop)
        }
        let (servers, loops) = LocalServers.find(settings.fallback, listening: settings.listen.addresses)
        local = LocalUpstream(loop: loop, negativeTTL: settings.cache.negativeTTL)
        steps =
            (settings.services.map { .service($0) })
            + ((settings.httpdns?.httpOnly ?? false) ? [] : servers.map { .resolver(Server($0)) })
        if settings.httpdns == nil { remarks.append(Report.noService) }
        if let proxy = settings.heedingProxy(in: environment).found { remarks.append(Report.proxy(proxy)) }
        if !(settings.httpdns?.httpOnly ?? false) {
            remarks += loops.map { Report.loop($0, $1) }
            if servers.isEmpty { remarks.append(Report.noLocalResolver) }
        }
    }

    /// Takes all steps, one after the other, and says at the end whether questions can be answered.
    public func run(_ done: @escaping @Sendable (Bool) -> Void) {
        service?.settle = { [unowned self] _, outcome, _ in settle(outcome) }
        service?.progressed = { [unowned self] in progressed($0) }
        local.settle = { [unowned self] _, outcome, _ in settle(outcome) }
        loop.deadlineReached = { [unowned self] in timedOut() }
        loop.turnEnded = { [unowned self] in
            while current == nil, !steps.isEmpty { begin(steps.removeFirst()) }
            guard current == nil else { return }
            let isUsable = conclude()
            service?.close()
            local.close()
            loop.stop { done(isUsable) }
        }
        loop.start()
        loop.submit { [self] in for remark in remarks { say(remark) } }
    }

    private func begin(_ step: Step) {
        number += 1
        let now = Tick(nanoseconds: Clock.now())
        current = (step, number, now)
        switch step {
        case .service(let server):
            guard let httpdns, let service else { return }
            loop.setDeadline(now.advanced(milliseconds: httpdns.timeout).nanoseconds)
            service.ask(QueryID(standalone: number, of: .httpdns), server, .addresses([name], .both), at: now)
        case .resolver(let server):
            loop.setDeadline(now.advanced(milliseconds: resolverTimeout).nanoseconds)
            local.ask(
                QueryID(standalone: number, of: .fallback), server, .message(MessageQuestion(name: name, type: .a)),
                at: now)
        }
    }

    private func progressed(_ progress: StreamUpstream.Progress) {
        switch progress {
        case .connected: say("\(who): connected after \(elapsed) ms")
        case .secured(let version): say("\(who): \(version), certificate accepted after \(elapsed) ms")
        }
    }

    private func settle(_ outcome: Outcome) {
        switch outcome {
        case .failed(let failure): say(Report.fails(who, failure))
        case .addresses(let results):
            serviceWorks = true
            say("\(who) answers after \(elapsed) ms: \(results.first?.words ?? "nothing about") \(name)")
        case .answer:
            resolverWorks = true
            say("\(who) answers after \(elapsed) ms")
        }
        current = nil
    }

    /// Who is asked at the moment, as the log calls them.
    private var who: String {
        switch current?.step {
        case .service(let server): Report.name(.httpdns, server)
        case .resolver(let server): Report.name(.fallback, server)
        case nil: "nobody"
        }
    }

    private func timedOut() {
        guard let current else { return }
        let timeout: Int
        switch current.step {
        case .service:
            service?.cancel(QueryID(standalone: current.number, of: .httpdns))
            timeout = httpdns?.timeout ?? 0
        case .resolver:
            local.cancel(QueryID(standalone: current.number, of: .fallback))
            timeout = resolverTimeout
        }
        settle(.failed(Failure(.timedOut, "no answer within \(timeout) ms")))
    }

    private var elapsed: Int {
        current.map { Tick(nanoseconds: Clock.now()).milliseconds(since: $0.began) } ?? 0
    }

    /// - Returns: whether the service works, or without one the local resolver.
    private func conclude() -> Bool {
        if httpdns?.httpOnly ?? false { say("httpOnly: the local resolver is never asked") }
        switch (httpdns == nil, serviceWorks, resolverWorks) {
        case (false, true, _): say("HTTPDNS works")
        case (false, false, true): say("HTTPDNS does not work; the local resolver would answer")
        case (true, _, true): say("the local resolver works")
        default: say("nobody answers")
        }
        return httpdns == nil ? resolverWorks : serviceWorks
    }
}

extension NameAddresses {
    fileprivate var words: String {
        func count(_ family: FamilyAddresses) -> Int {
            if case .addresses(let addresses, _) = family { addresses.count } else { 0 }
        }
        let found = count(ipv4) + count(ipv6)
        return found == 0 ? "no record (is its domain registered with the account?) of" : "\(found) addresses of"
    }
}
