import Base
import Configuration
import DNSCache
import DNSWire
import Forwarding
import Glibc
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Transport
@testable import Upstreams

/// The loop around the forwarder, with a resolver on loopback.
@Suite struct ForwarderLoopTests {
    private let lines = LogLines()
    private let answers = Arrivals<Answer>()
    private let cache = DNSCache(bytes: 1 << 20, seed: (1, 2))

    private func settings(_ resolver: Server?) -> Settings {
        var settings = Settings.withoutFiles
        settings.fallback.servers = resolver.map { [.server($0)] } ?? []
        return settings
    }

    /// - Parameter isRead: Whether the cache's file is read, so that questions are accepted.
    private func started(_ settings: Settings, isRead: Bool = true) throws -> ForwarderLoop {
        let forwarder = try ForwarderLoop(cache: cache, report: lines.report)
        try forwarder.begin(settings)
        forwarder.loop.start()
        if isRead { forwarder.cacheIsRead() }
        return forwarder
    }

    private func ask(
        _ forwarder: ForwarderLoop, _ name: Name = example, isRefresh: Bool = false,
        reply: (@Sendable (Answer) -> Void)? = nil
    ) {
        let message = query(name)
        guard case .question(let question) = Question.read(message.span) else { return }
        let reply = reply ?? { [answers] in answers.append($0) }
        let way = Client.Way.stream { _, answer, _ in reply(answer) }
        let client = Client(question, message: message.span, of: .host, way: way, at: Tick(nanoseconds: Clock.now()))
        #expect(forwarder.queue.enter(.host))
        forwarder.submit([Miss(client: client, isRefresh: isRefresh)])
    }

    private func end(_ forwarder: ForwarderLoop) {
        expectEnd { done in forwarder.drain(within: 10_000_000_000) { forwarder.stop(done) } }
    }

    /// A client waits while the cache's file is read, or for a server that is silent.
    @Test(arguments: [false, true]) func aStopLetsGoOfAClientWithoutAnAnswer(isRead: Bool) throws {
        final class Listener: Sendable {}
        let (silent, endpoint) = try loopbackSocket(SOCK_DGRAM)
        defer { close(silent) }
        let forwarder = try started(settings(Server(endpoint)), isRead: isRead)
        var listener: Listener? = Listener()
        let isHeld = { [weak listener] in listener != nil }
        ask(forwarder) { [listener] _ in withExtendedLifetime(listener) {} }
        listener = nil
        #expect(isHeld())
        expectEnd { done in forwarder.drain(within: 0) { forwarder.stop(done) } }
        #expect(!isHeld())
    }

    private func lastAddress(_ answer: Answer?) -> [UInt8]? { answer.map { Array($0.body.suffix(4)) } }

    @Test func aQuestionIsAnsweredByTheResolverAndKept() throws {
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 9)], v6: [])
        let forwarder = try started(settings(resolver.server))
        ask(forwarder)
        #expect(lastAddress(answers.next()) == [192, 0, 2, 9])
        #expect(holdsExample)
        end(forwarder)
    }

    @Test func beforeTheCachesFileIsReadOnlyWhatIsAnsweredHereIs() throws {
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 9)], v6: [])
        let forwarder = try started(settings(resolver.server), isRead: false)
        ask(forwarder)
        ask(forwarder, Name("localhost")!)
        #expect(lastAddress(answers.next()) == [127, 0, 0, 1])
        #expect(answers.isEmpty)
        forwarder.cacheIsRead()
        #expect(lastAddress(answers.next()) == [192, 0, 2, 9])
        end(forwarder)
    }

    @Test func otherSettingsAreInForceOnceTheCachesFileIsRead() throws {
        let (first, second) = (
            try NameServer(v4: [.v4(192, 0, 2, 1)], v6: []), try NameServer(v4: [.v4(192, 0, 2, 2)], v6: [])
        )
        let before = settings(first.server)
        let forwarder = try started(before, isRead: false)
        var numbers = GroupNumbers(before)
        var after = settings(second.server)
        after.listen.allow.append(Network("192.0.2.0/24")!)
        let isApplied = Gate()
        forwarder.apply(try forwarder.prepare(after, after: before, &numbers, Provenance())) { isApplied.open() }
        expectEnd { forwarder.loop.submit($0) }
        // Listeners follow in the same turn.
        #expect(forwarder.refuses(IPAddress("192.0.2.7")!))
        forwarder.cacheIsRead()
        #expect(isApplied.wait())
        #expect(!forwarder.refuses(IPAddress("192.0.2.7")!))
        ask(forwarder)
        #expect(lastAddress(answers.next()) == [192, 0, 2, 2])
        end(forwarder)
    }

    /// Applies other settings, and waits for the end of that.
    private func reload(_ forwarder: ForwarderLoop, _ new: Settings, after old: Settings, _ numbers: inout GroupNumbers)
        throws
    {
        let prepared = try forwarder.prepare(new, after: old, &numbers, Provenance())
        expectEnd { forwarder.apply(prepared, $0) }
    }

    private func hasUpstream(_ forwarder: ForwarderLoop, _ group: GroupID) -> Bool? {
        let seen = Arrivals<Bool>()
        forwarder.loop.submit { seen.append(forwarder.look { $1.upstreams[group] != nil }) }
        return seen.next()
    }

    private var holdsExample: Bool {
        cache.find(
            example, type: .a, for: .those(dnssecOK: false, checkingDisabled: false),
            at: Tick(nanoseconds: Clock.now()).seconds)?.isFresh ?? false
    }

    @Test func aGroupThatComesAndGoesCostsNoAnswerOfOthersAndLeavesNothing() throws {
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 9)], v6: [])
        let before = settings(resolver.server)
        let forwarder = try started(before)
        ask(forwarder)
        #expect(answers.next() != nil)
        var numbers = GroupNumbers(before)
        var new = before
        var office = Settings.Group(name: "office")
        office.servers = [.server(resolver.server)]
        office.domains = [.subtree(Name("corp.example")!)]
        office.trustAD = true
        new.upstreams = [office]
        try reload(forwarder, new, after: before, &numbers)
        let id = numbers["office"]
        #expect(holdsExample)
        #expect(hasUpstream(forwarder, id) == true)
        // Whose AD bit counts in a group that has others' names.
        var other = new
        other.upstreams[0].trustAD = false
        try reload(forwarder, other, after: new, &numbers)
        #expect(holdsExample)
        try reload(forwarder, before, after: other, &numbers)
        // Behind the end of the turn.
        #expect(hasUpstream(forwarder, id) == false)
        #expect(holdsExample)
        end(forwarder)
    }

    @Test func aGroupThatIsAskedInTheOtherWayHasAnotherNumber() {
        var (settings, numbers) = (Settings(), GroupNumbers())
        settings.upstreams = [Settings.Group(name: "office"), Settings.Group(name: "partner")]
        numbers.add(settings)
        let (office, partner) = (numbers["office"], numbers["partner"])
        settings.upstreams[0] = Settings.Group(
            name: "office", credential: .https(token: Secret(Array("t".utf8))))
        numbers.add(settings)
        #expect(![office, partner, .httpdns, .fallback].contains(numbers["office"]))
        #expect(numbers["partner"] == partner)
        let account = numbers["office"]
        numbers.add(settings)
        #expect(numbers["office"] == account)
    }

    @Test func aRefreshIsAnsweredToNobody() throws {
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 9)], v6: [])
        let forwarder = try started(settings(resolver.server))
        ask(forwarder, isRefresh: true)
        end(forwarder)
        #expect(answers.isEmpty)
    }

    @Test func withNobodyToAskTheAnswerIsServFail() throws {
        let forwarder = try started(settings(nil))
        ask(forwarder)
        #expect(answers.next()?.head.responseCode == .servFail)
        end(forwarder)
    }

    @Test func drainingWaitsForThoseWhoWaitAndNotForEver() throws {
        // A socket that nobody reads from: a resolver that is silent.
        let silent = try loopbackSocket(SOCK_DGRAM)
        let forwarder = try started(settings(Server(silent.endpoint)))
        ask(forwarder)
        expectEnd { forwarder.drain(within: 0, $0) }
        #expect(answers.isEmpty)
        expectEnd { forwarder.stop($0) }
    }

    @Test func whatIsAskedInTheLastTurnLeavesNoPortOpen() throws {
        let silent = try loopbackSocket(SOCK_DGRAM)
        defer { close(silent.descriptor) }
        let forwarder = try started(settings(Server(silent.endpoint)))
        let (isHeld, mayGoOn, isStopped) = (Gate(), Gate(), Gate())
        forwarder.loop.submit {
            isHeld.open()
            #expect(mayGoOn.wait())
        }
        #expect(isHeld.wait())
        // Both come in the turn after this one.
        ask(forwarder)
        forwarder.stop { isStopped.open() }
        mayGoOn.open()
        #expect(isStopped.wait())
        #expect(try isSenderGone(silent.descriptor))
    }

    /// Whether the port is closed from which the next datagram has come: the kernel refuses what is sent there.
    private func isSenderGone(_ descriptor: Int32) throws -> Bool {
        var sender = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        var bytes = [UInt8](repeating: 0, count: 512)
        let isConnected = withUnsafeMutablePointer(to: &sender) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT), $0, &length) > 0
                    && connect(descriptor, $0, length) == 0
            }
        }
        try #require(isConnected)
        try #require(send(descriptor, bytes, 1, 0) == 1)
        return recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT)) == -1 && errno == ECONNREFUSED
    }
}
