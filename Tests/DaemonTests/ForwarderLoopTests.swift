import Base
import Configuration
import DNSCache
import DNSWire
import Glibc
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Transport
@testable import Upstreams

/// The loop around the forwarder, with a resolver on loopback.
@Suite struct ForwarderLoopTests {
    private let lines = LogLines()
    private let replies = Arrivals<[UInt8]>()

    private func settings(_ resolver: NameServer?) -> Settings {
        var settings = Settings()
        settings.fallback.hosts = ""
        settings.fallback.resolvConf = []
        settings.fallback.servers = resolver.map { [.server($0.server)] } ?? []
        return settings
    }

    private func started(_ settings: Settings) throws -> ForwarderLoop {
        let loop = try EventLoop(label: "test")
        let forwarder = ForwarderLoop(
            loop: loop, cache: DNSCache(bytes: 1 << 20, seed: (1, 2)),
            local: LocalServers(listening: [], loop: loop, report: lines.report), lookup: ServerLookup(loop: loop),
            report: lines.report)
        var numbers = GroupNumbers()
        forwarder.apply(try forwarder.prepare(settings, after: nil, &numbers, Provenance()))
        forwarder.start()
        return forwarder
    }

    private func ask(_ forwarder: ForwarderLoop, _ name: Name = example, isRefresh: Bool = false) {
        let message = query(name)
        guard case .question(let question) = Question.read(message.span) else { return }
        let way = Client.Way.stream(from: .v4(127, 0, 0, 1)) { [replies] in replies.append($0) }
        let client = Client(question, message: message.span, way: way, at: Tick(nanoseconds: Clock.now()))
        if !isRefresh { #expect(forwarder.queue.enter(.host)) }
        forwarder.submit([Miss(client: client, isRefresh: isRefresh)])
    }

    private func end(_ forwarder: ForwarderLoop) {
        let gate = Gate()
        forwarder.drain(within: 10_000_000_000) {
            forwarder.close()
            forwarder.loop.stop { gate.open() }
        }
        #expect(gate.wait())
    }

    private func lastAddress(_ reply: [UInt8]?) -> [UInt8]? { reply.map { Array($0.suffix(4)) } }

    @Test func aQuestionIsAnsweredByTheResolverAndKept() throws {
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 9)], v6: [])
        let forwarder = try started(settings(resolver))
        forwarder.cacheIsRead()
        ask(forwarder)
        #expect(lastAddress(replies.next()) == [192, 0, 2, 9])
        let cached = forwarder.cache.find(
            example, type: .a, for: .those(dnssecOK: false, checkingDisabled: false),
            at: Tick(nanoseconds: Clock.now()).seconds)
        #expect(cached?.isFresh == true)
        end(forwarder)
    }

    @Test func beforeTheCachesFileIsReadOnlyWhatIsAnsweredHereIs() throws {
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 9)], v6: [])
        let forwarder = try started(settings(resolver))
        ask(forwarder)
        ask(forwarder, Name("localhost")!)
        #expect(lastAddress(replies.next()) == [127, 0, 0, 1])
        #expect(replies.isEmpty)
        forwarder.cacheIsRead()
        #expect(lastAddress(replies.next()) == [192, 0, 2, 9])
        end(forwarder)
    }

    @Test func otherSettingsAreInForceOnceTheCachesFileIsRead() throws {
        let (first, second) = (
            try NameServer(v4: [.v4(192, 0, 2, 1)], v6: []), try NameServer(v4: [.v4(192, 0, 2, 2)], v6: [])
        )
        let before = settings(first)
        let forwarder = try started(before)
        var numbers = GroupNumbers()
        numbers.add(before)
        let other = try forwarder.prepare(settings(second), after: before, &numbers, Provenance())
        let isApplied = Gate()
        forwarder.withCacheRead {
            forwarder.apply(other)
            isApplied.open()
        }
        forwarder.cacheIsRead()
        #expect(isApplied.wait())
        ask(forwarder)
        #expect(lastAddress(replies.next()) == [192, 0, 2, 2])
        end(forwarder)
    }

    /// Applies other settings, and waits for the end of that.
    private func reload(_ forwarder: ForwarderLoop, _ new: Settings, after old: Settings, _ numbers: inout GroupNumbers)
        throws
    {
        let prepared = try forwarder.prepare(new, after: old, &numbers, Provenance())
        onLoop(forwarder) { forwarder.apply(prepared) }
    }

    private func onLoop(_ forwarder: ForwarderLoop, _ work: @escaping @Sendable () -> Void) {
        let gate = Gate()
        forwarder.loop.submit {
            work()
            gate.open()
        }
        #expect(gate.wait())
    }

    private func holdsExample(_ forwarder: ForwarderLoop) -> Bool {
        forwarder.cache.find(
            example, type: .a, for: .those(dnssecOK: false, checkingDisabled: false),
            at: Tick(nanoseconds: Clock.now()).seconds) != nil
    }

    @Test func aGroupThatComesAndGoesCostsNoAnswerOfOthersAndLeavesNothing() throws {
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 9)], v6: [])
        let before = settings(resolver)
        let forwarder = try started(before)
        forwarder.cacheIsRead()
        ask(forwarder)
        #expect(replies.next() != nil)
        var numbers = GroupNumbers()
        numbers.add(before)
        var new = before
        var office = Settings.Group(name: "office")
        office.servers = [.server(resolver.server)]
        office.domains = [.subtree(Name("corp.example")!)]
        office.trustAD = true
        new.upstreams = [office]
        try reload(forwarder, new, after: before, &numbers)
        let id = numbers["office"]
        #expect(holdsExample(forwarder))
        onLoop(forwarder) { #expect(forwarder.carriers[id] != nil) }
        // Whose AD bit counts in a group that has others' names.
        var other = new
        other.upstreams[0].trustAD = false
        try reload(forwarder, other, after: new, &numbers)
        #expect(holdsExample(forwarder))
        try reload(forwarder, before, after: other, &numbers)
        // Behind the end of the turn.
        onLoop(forwarder) { #expect(forwarder.carriers[id] == nil) }
        #expect(holdsExample(forwarder))
        end(forwarder)
    }

    @Test func aGroupThatIsAskedInTheOtherWayHasAnotherNumber() {
        var (settings, numbers) = (Settings(), GroupNumbers())
        settings.upstreams = [Settings.Group(name: "office"), Settings.Group(name: "partner")]
        numbers.add(settings)
        let (office, partner) = (numbers["office"], numbers["partner"])
        settings.upstreams[0] = Settings.Group(
            name: "office", account: Settings.HTTPDNS(credential: .https(token: Secret(Array("t".utf8)))))
        numbers.add(settings)
        #expect(![office, partner, .httpdns, .fallback].contains(numbers["office"]))
        #expect(numbers["partner"] == partner)
        let account = numbers["office"]
        numbers.add(settings)
        #expect(numbers["office"] == account)
    }

    @Test func aRefreshIsAnsweredToNobody() throws {
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 9)], v6: [])
        let forwarder = try started(settings(resolver))
        forwarder.cacheIsRead()
        ask(forwarder, isRefresh: true)
        end(forwarder)
        #expect(replies.isEmpty)
    }

    @Test func withNobodyToAskTheAnswerIsServFail() throws {
        let forwarder = try started(settings(nil))
        forwarder.cacheIsRead()
        ask(forwarder)
        #expect(replies.next().map { $0[3] & 0x0F } == 2)
        end(forwarder)
    }

    @Test func drainingWaitsForThoseWhoWaitAndNotForEver() throws {
        // A socket that nobody reads from: a resolver that is silent.
        let silent = try loopbackSocket(SOCK_DGRAM)
        var settings = settings(nil)
        settings.fallback.servers = [.server(Server(silent.endpoint))]
        let forwarder = try started(settings)
        forwarder.cacheIsRead()
        ask(forwarder)
        let isDrained = Gate()
        forwarder.drain(within: 0) { isDrained.open() }
        #expect(isDrained.wait())
        #expect(replies.isEmpty)
        let isStopped = Gate()
        forwarder.loop.submit { forwarder.close() }
        forwarder.loop.stop { isStopped.open() }
        #expect(isStopped.wait())
    }
}
