import Base
import Configuration
import Counters
import DNSCache
import DNSWire
import Forwarding
import Synchronization
import Transport

/// The first stage for each message: checks whether the client may ask, refuses invalid questions, chooses the options
/// of the reply's OPT for this client, and reads the cache. Shared by all listeners; nothing here allocates.
struct QueryFrontend: Sendable {
    let cache: DNSCache
    private var allow: [Network]
    /// Whether both loopback networks are allowed as a whole: the common case, without a walk over the list.
    private var allowsLoopback: Bool
    private let cookies: ServerCookies
    /// Seconds since 1970 at tick 0, for cookies. It does not change when the clock is set later, so that cookies stay
    /// valid.
    private let epoch: UInt32
    private var keepAlive: UInt16
    private let queue: MissQueue
    private let largeReplies: LargeReplies
    private let strangers: Strangers?
    /// The networks on links, which decide the share of a client.
    var links = Links()

    /// - Parameters:
    ///   - queue: The queue of misses; the client of a miss without room in it gets SERVFAIL.
    ///   - strangers: Logs the first client that may not ask.
    init(
        cache: DNSCache, _ settings: Settings.Listen, queue: MissQueue, largeReplies: LargeReplies = LargeReplies(),
        strangers: Strangers? = nil
    ) {
        self.cache = cache
        var random = Random()
        cookies = ServerCookies(seed: (random.uint64(), random.uint64()))
        epoch = UInt32(truncatingIfNeeded: WallClock.unixSeconds()) &- Tick(nanoseconds: Clock.now()).seconds
        (self.queue, self.largeReplies, self.strangers) = (queue, largeReplies, strangers)
        (allow, allowsLoopback, keepAlive) = ([], false, 0)
        apply(settings)
    }

    /// Applies other settings; clients' cookies stay valid.
    mutating func apply(_ settings: Settings.Listen) {
        let allow = settings.allow.map(\.unmapped)
        if allow != self.allow { strangers?.allowHasChanged() }
        self.allow = allow
        allowsLoopback = ["127.0.0.0/8", "::1/128"].allSatisfy { whole in
            allow.contains { $0 == Network(whole) }
        }
        // The time-out announced to clients that ask for it (RFC 7828), in tenths of a second.
        keepAlive = UInt16(clamping: settings.tcpIdleSeconds * 10)
    }

    enum Outcome {
        /// The reply was written, with this many octets.
        case reply(Int)
        case silence
        /// The answer is not in the cache; the question has entered the queue.
        case ask(Question, isProven: Bool)
        /// The reply was written, and the entry needs a refresh; the question has entered the queue.
        case replyAndRefresh(Int, Question)
    }

    /// The part of a message that is parsed before its sender is checked.
    struct Read {
        fileprivate let reading: Question.Reading
        /// The cache's key, for a question.
        fileprivate let key: DNSCache.Key?

        static let nothing = Read(reading: .silence, key: nil)
    }

    /// The first of three steps. They are separate so that a caller with many messages can do each step for all of
    /// them: the waits for the cache's memory then overlap. With 100,000 names a hit takes 1.06 times as long as an
    /// echo in C; in one step 1.19 times.
    func read(_ message: Span<UInt8>) -> Read {
        let reading = Question.read(message)
        guard case .question(let question) = reading else { return Read(reading: reading, key: nil) }
        return Read(reading: reading, key: cache.key(question, query: message))
    }

    /// The second step.
    func prefetch(_ read: Read) {
        if let key = read.key { cache.prefetch(key) }
    }

    /// The third step.
    /// - Parameters:
    ///   - read: The result of the first step for this message.
    ///   - limit: The longest reply in octets, for a stream; nil for a datagram, where the client's message sets it.
    ///   - tally: The caller's own tally; the caller adds the duration of the answer.
    ///   - reply: Has `limit`, or `Reply.maximumUDPSize`, octets.
    func receive(
        _ read: Read, _ message: Span<UInt8>, from client: IPAddress, at now: Tick, limit: Int?, tally: Tally,
        into reply: inout MutableSpan<UInt8>
    ) -> Outcome {
        switch read.reading {
        case .silence:
            return .silence
        case .refuse(let code, var question):
            tally.asked(question?.type, fromIPv4: client.isIPv4)
            if question != nil { _ = addOptions(to: &question!, message, client, now, isStream: limit != nil) }
            return refuse(takesQuestion(of: client, tally) ? code : .refused, question, message, tally, into: &reply)
        case .cookieQuery(var question):
            tally.asked(nil, fromIPv4: client.isIPv4)
            let standing = addOptions(to: &question, message, client, now, isStream: limit != nil)
            let code: ResponseCode = standing == .bad ? .badCookie : .noError
            return refuse(takesQuestion(of: client, tally) ? code : .refused, question, message, tally, into: &reply)
        case .question(var question):
            tally.asked(question.type, fromIPv4: client.isIPv4)
            _ = addOptions(to: &question, message, client, now, isStream: limit != nil)
            guard allowsLoopback, client.isLoopback else {
                return answerNetwork(question, read.key, message, from: client, at: now, limit, tally, into: &reply)
            }
            return answer(
                question, read.key, message, from: client, at: now,
                limit: limit ?? Reply.udpLimit(question, isLoopback: true), isProven: true, tally, into: &reply)
        }
    }

    /// The client of a question that has entered the queue. In an ``Outcome`` it would cost each hit 67 instructions.
    func asker(_ client: IPAddress, over way: ClientWay, isProven: Bool) -> Asker {
        Asker(client, over: way, isProven: isProven, source: links.source(of: client))
    }

    /// Answers a question of an allowed client. Inlined into both callers, so that a client of this host does not pay
    /// for the checks of others.
    @inline(__always)
    private func answer(
        _ question: Question, _ key: DNSCache.Key?, _ message: Span<UInt8>, from client: IPAddress, at now: Tick,
        limit: Int, isProven: @autoclosure () -> Bool, _ tally: Tally, into reply: inout MutableSpan<UInt8>
    ) -> Outcome {
        guard question.recordClass == .in else {
            return refuse(.refused, question, message, tally, into: &reply)
        }
        let found = cache.answer(
            question, key ?? cache.key(question, query: message), query: message, at: now.seconds, limit: limit,
            into: &reply)
        switch found {
        case .hit(let length):
            tally.answered(flags: reply[3])
            return .reply(length)
        case .hitDueForRefresh(let length):
            tally.answered(flags: reply[3])
            // Without room the entry is looked up when it expires, which is no refusal.
            guard queue.enter(links.source(of: client)) else { return .reply(length) }
            tally.count(.refreshed)
            return .replyAndRefresh(length, question)
        case .miss:
            // The types are checked after the cache, which has no answers to these types.
            if let code = question.type.refusal { return refuse(code, question, message, tally, into: &reply) }
            guard queue.enter(links.source(of: client)) else {
                tally.count(.noRoom)
                return refuse(.servFail, question, message, tally, into: &reply)
            }
            return .ask(question, isProven: isProven())
        }
    }

    /// Answers a question of a client that may be of another host, if the client may ask.
    /// - Parameter limit: The limit of a stream; nil for a datagram.
    @inline(never)
    private func answerNetwork(
        _ question: Question, _ key: DNSCache.Key?, _ message: Span<UInt8>, from client: IPAddress, at now: Tick,
        _ limit: Int?, _ tally: Tally, into reply: inout MutableSpan<UInt8>
    ) -> Outcome {
        guard takesQuestion(of: client, tally) else {
            return refuse(.refused, question, message, extendedError: .prohibited, tally, into: &reply)
        }
        let isSure = limit != nil || client.isLoopback
        let outcome = answer(
            question, key, message, from: client, at: now,
            limit: limit ?? Reply.udpLimit(question, isLoopback: client.isLoopback),
            isProven: isSure || hasOurCookie(question, message, client, now), tally, into: &reply)
        guard !isSure else { return outcome }
        func mayBeLong(_ length: Int) -> Bool {
            length <= LargeReplies.longestFree || hasOurCookie(question, message, client, now)
                || largeReplies.add(links.source(of: client), at: now)
        }
        switch outcome {
        case .reply(let length) where !mayBeLong(length):
            return .reply(Reply.truncate(&reply, question, query: message))
        case .replyAndRefresh(let length, let question) where !mayBeLong(length):
            return .replyAndRefresh(Reply.truncate(&reply, question, query: message), question)
        default: return outcome
        }
    }

    private func hasOurCookie(_ question: Question, _ message: Span<UInt8>, _ client: IPAddress, _ now: Tick) -> Bool {
        question.edns.flatMap { cookies.cookie(for: $0, in: message, from: client, at: epoch &+ now.seconds) }?
            .standing == .good
    }

    /// Writes the options of the reply's OPT into the question.
    /// - Returns: The validity of the client's cookie; nil if it sent none.
    private func addOptions(
        to question: inout Question, _ message: Span<UInt8>, _ client: IPAddress, _ now: Tick, isStream: Bool
    ) -> ServerCookies.Standing? {
        guard let edns = question.edns else { return nil }
        let keepAlive = isStream && edns.asksForKeepAlive ? keepAlive : nil
        guard edns.cookieLength > 0 || keepAlive != nil else { return nil }
        let cookie = cookies.cookie(for: edns, in: message, from: client, at: epoch &+ now.seconds)
        question.replyOptions = ReplyOptions(cookie: cookie?.cookie, keepAlive: keepAlive)
        return cookie?.standing
    }

    private func refuse(
        _ code: ResponseCode, _ question: Question?, _ message: Span<UInt8>, extendedError: ExtendedError? = nil,
        _ tally: Tally, into reply: inout MutableSpan<UInt8>
    ) -> Outcome {
        tally.answered(code)
        return .reply(
            Reply.refuse(code, extendedError: extendedError, question: question, query: message, into: &reply))
    }

    /// Whether a client may ask; counts its question if it may not.
    private func takesQuestion(of client: IPAddress, _ tally: Tally) -> Bool {
        if isAllowed(client) { return true }
        tally.count(.notAllowed)
        strangers?.report(client, hasConnected: false)
        return false
    }

    /// Whether a client may ask. An IPv4 client at a socket for both families counts as IPv4.
    func isAllowed(_ client: IPAddress) -> Bool {
        if allowsLoopback, client.isLoopback { return true }
        let client = client.unmapped
        for network in allow where network.contains(client) { return true }
        return false
    }
}

/// The current frontend, for listeners that must not wait for each other: each has a copy of its own, and checks once a
/// batch by an atomic load whether there is a newer one.
final class CurrentFrontend: Sendable {
    private let current: Mutex<QueryFrontend>
    /// Increases with each change.
    private let generation = Atomic<UInt64>(0)

    init(_ frontend: QueryFrontend) { current = Mutex(frontend) }

    /// May be called from any thread; readers see the change with their next batch.
    func change(_ body: (inout sending QueryFrontend) -> Void) {
        current.withLock { body(&$0) }
        generation.add(1, ordering: .releasing)
    }

    /// The copy of one queue.
    struct Copy: ~Copyable, Sendable {
        private let source: CurrentFrontend
        private var generation: UInt64
        private(set) var current: QueryFrontend

        init(of source: CurrentFrontend) {
            self.source = source
            generation = source.generation.load(ordering: .acquiring)
            current = source.current.withLock { $0 }
        }

        /// Replaces the copy if there is a newer frontend.
        mutating func update() {
            let newest = source.generation.load(ordering: .acquiring)
            guard newest != generation else { return }
            generation = newest
            current = source.current.withLock { $0 }
        }

        /// The source of a client, by the newest frontend; nil if it may not ask.
        mutating func source(ofAllowed client: IPAddress) -> Source? {
            update()
            return current.isAllowed(client) ? current.links.source(of: client) : nil
        }

        /// See ``QueryFrontend/asker(_:over:isProven:)``.
        func asker(_ client: IPAddress, over way: ClientWay, isProven: Bool) -> Asker {
            current.asker(client, over: way, isProven: isProven)
        }

        /// Does the first and the third step for one message: see ``QueryFrontend``. Through this function, since a
        /// class that reads ``current`` twice copies it twice.
        func receive(
            _ message: Span<UInt8>, from address: IPAddress, at now: Tick, limit: Int, tally: Tally,
            into reply: inout MutableSpan<UInt8>
        ) -> QueryFrontend.Outcome {
            current.receive(
                current.read(message), message, from: address, at: now, limit: limit, tally: tally, into: &reply)
        }
    }
}
