import Base
import Glibc
import HTTP
import ShellTestSupport
import Testing

@testable import Streams
@testable import Transport

/// Everything that can happen on a link, in every order: octets with events, octets that break the protocol, the peer's end and
/// its reset, output that cannot be sent, an owner that acts in an event. What is told is compared with the rule: events, then
/// output, then the end.
@Suite(.serialized) struct StreamLinkTests {
    /// What the peer sends.
    private enum Octet: UInt8, CaseIterable {
        /// Answers the oldest request.
        case answer = 0x61
        /// Has to be replied to, as a PING has.
        case ping = 0x70
        /// Breaks the protocol.
        case nonsense = 0x78
    }

    /// How the peer goes on behind its octets.
    private enum PeerEnd: CaseIterable { case none, close, reset }

    /// What the owner does in the first event.
    private enum Act: CaseIterable { case nothing, close, request, cancel }

    /// A conversation in which each octet is something that may happen.
    private final class Scripted: ClientConversation {
        private var underWay: [RequestID] = []
        private var output: [UInt8] = []
        private(set) var mayTakeMore = true

        var room: Int { 10 - underWay.count }
        var isIdle: Bool { underWay.isEmpty }
        func open(_ request: [UInt8], as id: RequestID) {
            underWay.append(id)
            output += request
        }
        func cancel(_ id: RequestID) { underWay.removeAll { $0 == id } }
        func receive(_ bytes: Span<UInt8>, into events: inout [ConversationEvent]) throws(ConversationFailure) {
            for index in bytes.indices {
                switch Octet(rawValue: bytes[index]) {
                case .answer where !underWay.isEmpty: events.append(.answered(underWay.removeFirst(), .message([])))
                case .answer: break
                case .ping: output.append(Octet.ping.rawValue)
                case .nonsense, nil: throw ConversationFailure("nonsense")
                }
            }
        }
        func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) throws(ConversationFailure) {
            mayTakeMore = false
            events.append(.goingAway)
        }
        func takeOutput() -> [UInt8] { exchange(&output, with: []) }
    }

    private enum Told: Equatable, Sendable {
        case event(RequestID)
        case goingAway, advanced
        case ended(LinkEnd)
    }

    /// Everything but `told` is used on the loop alone.
    private final class Owner: LinkOwner, @unchecked Sendable {
        var told: [Told] = []
        var act = Act.nothing
        var isTelling = false

        func happened(_ event: ConversationEvent, on link: StreamLink) {
            #expect(!isTelling, "an event inside another")
            isTelling = true
            defer { isTelling = false }
            if case .answered(let id, _) = event { told.append(.event(id)) } else { told.append(.goingAway) }
            switch exchange(&act, with: .nothing) {
            case .nothing: break
            case .close: link.close()
            case .request:
                link.open([1], as: 9, isApart: false)
                link.flush()
                link.read()
            case .cancel:
                link.cancel(3)
                link.flush()
            }
        }
        func advanced(_ link: StreamLink) {
            #expect(!isTelling)
            told.append(.advanced)
        }
        func ended(_ link: StreamLink, _ end: LinkEnd) {
            #expect(!isTelling && link.isClosed)
            told.append(.ended(end))
        }
    }

    /// A link over one end of a pair of sockets, on a loop that turns when the test says so.
    private final class World: @unchecked Sendable {
        let loop: EventLoop
        let owner = Owner()
        private(set) var link: StreamLink!
        private(set) var peer: Int32 = -1

        init(isSentByOwner: Bool = false, _ makeServer: ((Owner) -> any Conversation)? = nil) throws {
            loop = try EventLoop(label: "test")
            loop.start()
            onLoop { [self] in
                var ends: [Int32] = [-1, -1]
                let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
                precondition(socketpair(AF_UNIX, type, 0, &ends) == 0)
                peer = ends[1]
                link =
                    makeServer.map { StreamLink(server: $0(owner), owner: owner, isSentByOwner: isSentByOwner) }
                    ?? StreamLink(client: Scripted(), owner: owner)
                let stream = try? Stream(
                    StreamSocket(adopting: Descriptor(adopting: ends[0])), isConnected: true, tls: nil, limit: 1000,
                    scratch: Scratch(4096), loop: loop, owner: link)
                if let stream { link.begin(stream) }
            }
        }

        func onLoop(_ work: @escaping () -> Void) {
            let (box, done) = (Box(work), Gate())
            loop.submit {
                box.work()
                done.open()
            }
            #expect(done.wait())
        }

        private struct Box: @unchecked Sendable {
            let work: () -> Void
            init(_ work: @escaping () -> Void) { self.work = work }
        }

        /// All that the loop has to do with what has happened so far.
        func turns() { for _ in 0..<4 { onLoop {} } }

        func send(_ octets: [UInt8]) {
            if !octets.isEmpty { #expect(write(peer, octets, octets.count) == octets.count) }
        }

        /// A pair of sockets has a reset where one end is closed with octets unread.
        func end(_ end: PeerEnd) {
            var unread: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0]
            switch end {
            case .none: break
            case .close:
                while read(peer, &unread, unread.count) > 0 {}
                close(peer)
            case .reset: close(peer)
            }
            if end != .none { peer = -1 }
        }

        func sent() -> [UInt8] {
            var octets = [UInt8](repeating: 0, count: 100)
            let count = read(peer, &octets, octets.count)
            return Array(octets.prefix(max(0, count)))
        }

        func stop() {
            onLoop { [self] in link.close() }
            if peer >= 0 { close(peer) }
            let gate = Gate()
            loop.stop { gate.open() }
            #expect(gate.wait())
        }
    }

    private static let sequences: [[Octet]] = {
        var all: [[Octet]] = [[]]
        for length in 1...3 {
            all += all.filter { $0.count == length - 1 }.flatMap { start in Octet.allCases.map { start + [$0] } }
        }
        return all
    }()

    @Test(arguments: PeerEnd.allCases, Act.allCases)
    private func eventsThenOutputThenTheEnd(end: PeerEnd, act: Act) throws {
        for octets in Self.sequences {
            for isTogether in [false, true] {
                for sends in [false, true] {
                    try check(octets, end, act, isTogether: isTogether, sends: sends)
                }
            }
        }
    }

    /// - Parameters:
    ///   - isTogether: The link meets the octets and the end in one turn, after it has tried to send.
    ///   - sends: The owner sends something when the peer may be gone already.
    private func check(_ octets: [Octet], _ end: PeerEnd, _ act: Act, isTogether: Bool, sends: Bool) throws {
        let world = try World()
        defer { world.stop() }
        let (owner, name) = (world.owner, Comment(rawValue: "\(octets) \(end) \(act) \(isTogether) \(sends)"))
        world.onLoop {
            owner.act = act
            for id in 1...3 as ClosedRange<RequestID> { world.link.open([UInt8(id)], as: id) }
            world.link.flush()
        }
        // Two octets stay unread, for a reset.
        world.onLoop {
            world.send(octets.map(\.rawValue))
            if isTogether { world.end(end) }
            if sends {
                world.link.open([8], as: 8)
                world.link.flush()
                // What cannot be sent ends nothing before what has come was read.
                #expect(owner.told.isEmpty, name)
            }
        }
        world.turns()
        if !isTogether { world.onLoop { world.end(end) } }
        world.turns()
        world.onLoop {}

        let told = owner.told
        let hasNonsense = octets.contains(.nonsense)
        let answers = octets.prefix { $0 != .nonsense }.count { $0 == .answer }
        var events: [Told] = (1...3).prefix(answers).map { .event($0) }
        // What was sent, or replied, after the peer had closed makes a reset of it.
        let isBroken = isTogether && (sends || octets.contains(.ping))
        let isClosed = act == .close && (!events.isEmpty || end == .close && !hasNonsense && !isBroken)
        if isClosed, !events.isEmpty { events = [events[0]] }
        #expect(told.filter { if case .event = $0 { true } else { false } } == events, name)
        let ends = told.compactMap { if case .ended(let end) = $0 { end } else { nil } }
        if isClosed {
            #expect(ends.isEmpty && told.last != .advanced, name)
        } else if hasNonsense {
            #expect(ends == [.protocolBroken("nonsense")], name)
        } else {
            #expect(ends.count == (end == .none ? 0 : 1), name)
        }
        // Nothing follows the end, and the rest of what came precedes it.
        if !ends.isEmpty { #expect(told.last == .ended(ends[0]), name) }
        if let advanced = told.firstIndex(of: .advanced) { #expect(advanced >= events.count, name) }
        if !isClosed, !hasNonsense {
            switch (end, ends.first) {
            case (.none, _): break
            case (.close, .closedByPeer): #expect(told.contains(.goingAway), name)
            case (.close, .reset(let error)): #expect(error.isReset && (isBroken || act == .request), name)
            case (.reset, .reset(let error)): #expect(error.isReset, name)
            case (_, let end): Issue.record("\(name): \(String(describing: end))")
            }
        }
    }

    @Test func outputLeavesAfterTheEventsAndApartIfWanted() throws {
        let world = try World()
        defer { world.stop() }
        world.onLoop {
            #expect(!world.link.isDraining && world.link.room == 10 && world.link.isIdle)
            world.link.open([1], as: 1)
            world.link.open([2], as: 2, isApart: true)
            world.link.open([3], as: 3)
            #expect(world.sent().isEmpty && !world.link.isIdle)
            world.link.flush()
            #expect(world.sent() == [1, 2, 3])
            world.owner.act = .request
            world.send([Octet.ping.rawValue, Octet.answer.rawValue])
        }
        world.turns()
        world.onLoop { #expect(world.sent() == [Octet.ping.rawValue, 1] && world.link.room == 7) }
        #expect(world.owner.told == [.event(1), .advanced])
    }

    /// An idle connection is read before it is used again: what has come shows whether it can be.
    @Test func anIdleLinkIsReadBeforeItIsUsed() throws {
        let world = try World()
        defer { world.stop() }
        world.onLoop {
            world.end(.close)
            #expect(!world.link.isClosed)
            world.link.read()
            #expect(world.link.isClosed && world.link.room == 0)
        }
        #expect(world.owner.told == [.goingAway, .ended(.closedByPeer)])
    }

    @Test func aFinishedLinkWaitsForThePeer() throws {
        let world = try World()
        defer { world.stop() }
        world.onLoop {
            world.link.open([7], as: 7)
            world.link.finish()
            #expect(world.link.isDraining)
            #expect(world.sent() == [7])
            // What still comes is dropped.
            world.send([Octet.nonsense.rawValue])
        }
        world.turns()
        #expect(world.owner.told.isEmpty)
        world.onLoop { world.end(.close) }
        world.turns()
        #expect(world.owner.told == [.ended(.finished)])
    }

    /// Answers each octet with itself, once it is told to.
    private final class Echo: MessageOwner {
        var takesMessages = true
        var asked: [[UInt8]] = []
        func asked(_ message: Span<UInt8>, as id: RequestID) { asked.append(message.indices.map { message[$0] }) }
    }

    /// Who has said that he asks no more gets all answers first.
    @Test func theAnsweringSideEndsWhenAllIsAnswered() throws {
        let echo = Echo()
        nonisolated(unsafe) var frames: ServerFrames!
        let world = try World { _ in
            frames = ServerFrames(owner: echo)
            return frames
        }
        defer { world.stop() }
        world.onLoop {
            world.send([0, 1, 7, 0, 1, 8])
            shutdown(world.peer, Int32(SHUT_WR))
        }
        world.turns()
        world.onLoop {
            #expect(echo.asked == [[7], [8]] && world.link.isDraining)
            frames.answer([7].span, to: 0)
            world.link.flush()
            #expect(world.sent() == [0, 1, 7] && world.link.isDraining)
            frames.answer([8].span, to: 0)
            world.link.flush()
            #expect(world.sent() == [0, 1, 8] && world.link.isClosed)
        }
        #expect(world.owner.told == [.advanced, .ended(.closedByPeer)])
    }

    /// What waits for room is taken as soon as there is some, without further octets.
    @Test func theAnsweringSideGoesOnWhenThereIsRoom() throws {
        let echo = Echo()
        echo.takesMessages = false
        let world = try World { _ in ServerFrames(owner: echo) }
        defer { world.stop() }
        world.onLoop { world.send([0, 1, 7, 0, 1, 8]) }
        world.turns()
        world.onLoop {
            #expect(echo.asked.isEmpty)
            echo.takesMessages = true
            world.link.flush()
            #expect(echo.asked == [[7], [8]])
            // Nothing more is taken, and as all is answered but these two the link stays.
            world.link.drain()
            #expect(world.link.isDraining && !world.link.isClosed)
        }
    }

    /// An HTTP/2 client says how much it can receive: until all is sent, it is heard.
    @Test(arguments: [false, true]) func aDrainedLinkHearsOfRoomForItsAnswers(leaves: Bool) throws {
        func frame(_ kind: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8]) -> [UInt8] {
            [0, 0, UInt8(payload.count), kind, flags, 0, 0, 0, stream] + payload
        }
        let path = Array("/dns-query?dns=YWJj".utf8)
        let head: [UInt8] = [0x82, 0x87, 1, 1, UInt8(ascii: "h"), 4, UInt8(path.count)] + path
        // INITIAL_WINDOW_SIZE 0.
        var octets = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0, [0, 4, 0, 0, 0, 0])
        octets += frame(1, 5, 1, head)
        let room = frame(8, 0, 1, [0, 0, 0, 100])
        let reply: [UInt8] = [0, 0, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0] + [0, 0, 1, 0, 1]
        let (echo, sent) = (Echo(), octets)
        nonisolated(unsafe) var http: ServerHTTP!
        let world = try World { _ in
            http = ServerHTTP(owner: echo)
            http.opened("h2")
            return http
        }
        defer { world.stop() }
        world.onLoop { world.send(sent) }
        world.turns()
        world.onLoop {
            #expect(echo.asked == [Array("abc".utf8)])
            http.answer(reply.span, to: 1)
            world.link.drain()
            #expect(!world.link.isClosed && http.unsent == reply.count)
            if leaves { world.end(.close) } else { world.send(room) }
        }
        world.turns()
        world.onLoop { #expect(world.link.isClosed) }
        #expect(world.owner.told.last == .ended(.finished))
    }

    /// What has come in several pieces can be answered in one.
    @Test func theOwnerSendsWhenItLikes() throws {
        let echo = Echo()
        nonisolated(unsafe) var frames: ServerFrames!
        let world = try World(isSentByOwner: true) { _ in
            frames = ServerFrames(owner: echo)
            return frames
        }
        defer { world.stop() }
        for octet: UInt8 in [7, 8] {
            world.onLoop { world.send([0, 1, octet]) }
            world.turns()
            world.onLoop { frames.answer([octet].span, to: 0) }
        }
        world.turns()
        world.onLoop {
            #expect(echo.asked == [[7], [8]] && world.sent() == [])
            world.link.flush()
            #expect(world.sent() == [0, 1, 7, 0, 1, 8])
        }
        #expect(world.owner.told == [.advanced, .advanced])
    }

    @Test func aPeerThatDoesNotReadIsTooSlow() throws {
        let world = try World()
        defer { world.stop() }
        world.onLoop {
            for _ in 0..<10_000 where !world.link.isClosed {
                world.link.open([UInt8](repeating: 1, count: 900), as: 1)
                world.link.flush()
                world.link.cancel(1)
            }
        }
        #expect(world.owner.told == [.ended(.tooSlow)])
    }

    /// What is asked before the connection stands leaves when it does, unless it was cancelled; one that fails before is
    /// told as any end.
    @Test func requestsWaitForTheConnection() throws {
        let world = try World()
        defer { world.stop() }
        let listener = try StreamListener.listen(Endpoint(.v4(127, 0, 0, 1), port: 0))
        let received = Arrivals<[UInt8]>()
        let owner = Owner()
        nonisolated(unsafe) var links: [StreamLink] = []
        nonisolated(unsafe) var peers: [Stream] = []
        let reader = Reader(received)
        world.onLoop {
            try? listener.start(in: world.loop, failed: { _ in }) { socket, _ in
                let stream = try? Stream(
                    socket, isConnected: true, tls: nil, limit: 1000, scratch: Scratch(100), loop: world.loop,
                    owner: reader)
                if let stream { peers.append(stream) }
            }
            for endpoint in [listener.local, Endpoint(.v4(127, 0, 0, 1), port: 9)] {
                let link = StreamLink(client: Scripted(), owner: owner)
                links.append(link)
                link.open([4], as: 4)
                link.open([5], as: 5)
                link.flush()
                #expect(link.room == 8)
                link.cancel(4)
                #expect(!link.isClosed && !link.isIdle && link.room == 9)
                let stream = try? Stream(
                    to: endpoint, tls: nil, limit: 1000, scratch: Scratch(100), loop: world.loop, owner: link)
                if let stream { link.begin(stream) }
            }
        }
        #expect(received.next() == [5])
        world.turns()
        world.onLoop {
            #expect(!links[0].isClosed && links[1].isClosed)
            guard case .ended(.reset(let error)) = owner.told.first else { return #expect(Bool(false)) }
            #expect(error.description.hasSuffix("Connection refused") && owner.told.count == 1)
            for link in links { link.close() }
            for peer in peers { peer.close() }
            listener.stop()
        }
    }

    private final class Reader: StreamOwner {
        private let received: Arrivals<[UInt8]>
        init(_ received: Arrivals<[UInt8]>) { self.received = received }
        func received(_ bytes: Span<UInt8>, on stream: Stream) { received.append(bytes.indices.map { bytes[$0] }) }
        func ended(_ stream: Stream, isCut: Bool) {}
        func failed(_ stream: Stream, _ failure: LinkEnd) {}
    }
}
