import Base
import Counters
import Cryptography
import DNSWire
import Forwarding
import ShellTestSupport
import Synchronization
import Testing
import Transport

@testable import Upstreams

/// An upstream of servers on streams, on its own loop and with a clock that the test sets.
final class StreamAsking: @unchecked Sendable {
    let loop: EventLoop
    /// The upstream is used on the loop alone.
    let upstream: StreamUpstream
    let answers = DNSAnswers(negativeTTL: 30)
    let tallies = UpstreamTallies()
    private let time = Mutex(UInt64(1_000_000_000))
    private let ended = Arrivals<Ended>()

    /// The result of a query: the last octet of the address, or the failure.
    struct Ended: Sendable, Equatable {
        let number: UInt32
        var address: UInt8?
        var failure: Failure?
        var toRepeat = false
    }

    /// - Parameter limits: The limits of the connections to each server; nil: those of its kind.
    init(
        trusting certificates: [[UInt8]] = [], outbox: Outbox? = nil, limits: StreamLimits? = nil,
        lookup: @autoclosure () -> ServerFinder? = nil
    ) throws {
        loop = try EventLoop(label: "test")
        let tls = try certificates.isEmpty ? nil : TLSClientContext(TLSPolicy(anchors: certificates.flatMap { $0 }))
        let clock = Clockwork()
        upstream = StreamUpstream(
            loop: loop, tallies: tallies, lookup: lookup(), outbox: outbox, clock: { clock.now() },
            kind: { [answers] server throws(Failure) in
                guard let limits else { return try ServerKind(server, answers, tls) }
                let usual = try ServerKind(server, answers, tls)
                return ServerKind(usual.security, usual.dialect, limits)
            })
        clock.asking = self
        let ended = ended
        let numbers = (1...2000 as ClosedRange<UInt32>).map { ($0, QueryID(standalone: $0, of: .fallback)) }
        upstream.settle = { id, outcome, toRepeat in
            let number = numbers.first { $0.1 == id }?.0 ?? 0
            switch outcome {
            case .answer(let answer):
                ended.append(
                    Ended(number: number, address: answer.records().first?.rdata.last, toRepeat: toRepeat))
            case .failed(let failure): ended.append(Ended(number: number, failure: failure, toRepeat: toRepeat))
            case .addresses: break
            }
        }
        loop.start()
    }

    private final class Clockwork: @unchecked Sendable {
        weak var asking: StreamAsking?
        func now() -> Tick { asking?.now ?? Tick(nanoseconds: 0) }
    }

    var now: Tick { Tick(nanoseconds: time.withLock { $0 }) }

    func advance(milliseconds: UInt64) { time.withLock { $0 += milliseconds * 1_000_000 } }

    /// Asks in one turn of the loop; each query has a name and an answer of its own.
    func ask(_ server: Server, _ numbers: ClosedRange<UInt32>, after before: @escaping @Sendable () -> Void = {}) {
        loop.submit { [self] in
            before()
            for number in numbers {
                upstream.ask(
                    QueryID(standalone: number, of: .fallback), server,
                    .message(MessageQuestion(name: Name("w\(number % 256).example")!, type: .a)), at: now)
            }
        }
    }

    func ask(_ server: Server, _ number: UInt32, after before: @escaping @Sendable () -> Void = {}) -> Ended? {
        ask(server, number...number, after: before)
        return next()
    }

    func next() -> Ended? { ended.next() }

    var isQuiet: Bool { ended.isEmpty }

    /// The next results, in the order of their numbers.
    func next(_ count: Int) -> [Ended] { (0..<count).compactMap { _ in next() }.sorted { $0.number < $1.number } }

    /// Does work on the loop, and waits for its end.
    @discardableResult
    func onLoop<Result: Sendable>(_ work: @escaping @Sendable (StreamUpstream) -> Result) -> Result? {
        let results = Arrivals<Result>()
        loop.submit { [self] in results.append(work(upstream)) }
        return results.next()
    }

    func end() {
        let gate = Gate()
        loop.submit { [self] in upstream.close() }
        loop.stop { gate.open() }
        #expect(gate.wait())
    }

    static func answered(_ numbers: ClosedRange<UInt32>) -> [Ended] {
        numbers.map { Ended(number: $0, address: UInt8($0 % 256)) }
    }
}
