import Base
import Cryptography
import DNSWire
import Forwarding
import Foundation
import ShellTestSupport
import Synchronization
import Testing
import Transport

@testable import Upstreams

/// The commands to a store and its replies, over a real socket, with a store that answers when the test says so.
@Suite struct StoreUpstreamTests {
    private static let name = Name("www.example.com")!
    private static let answer = SharedContent.answer(.addresses(name, type: .a, [.v4(192, 0, 2, 1)], ttl: 60))

    private static func question(_ number: Int) -> SharedQuestion {
        SharedQuestion(group: .httpdns, name: Name("w\(number).example.com")!, type: .a, audience: .everyone)
    }

    private final class Values: Sendable {
        private let values = Mutex<[String: [UInt8]]>([:])
        subscript(key: String) -> [UInt8]? {
            get { values.withLock { $0[key] } }
            set { values.withLock { $0[key] = newValue } }
        }
    }

    /// An empty store on loopback. It answers the first few commands like a real store, and further ones only after the
    /// test lets it go on.
    private final class Store: Sendable {
        let endpoint: Endpoint
        let commands = Arrivals<String>()
        let goOn = Gate()
        /// The values by key.
        let values = Values()
        private let listener: ServerSocket

        /// - Parameters:
        ///   - answered: The number of commands that are answered at once.
        ///   - greeting: Sent to a new client before the connection is closed; nil: commands are answered.
        ///   - toSet: The reply to a SET.
        init(answered: Int, greeting: String? = nil, toSet: String = "+OK") throws {
            let (descriptor, endpoint) = try listeningSocket()
            (listener, self.endpoint) = (ServerSocket(descriptor), endpoint)
            Thread.detachNewThread { [commands, goOn, values, listener] in
                guard let client = listener.accept() else { return }
                if let greeting {
                    send(client, greeting, greeting.utf8.count, Int32(MSG_NOSIGNAL))
                    shutdown(client, Int32(SHUT_WR))
                }
                var incoming: [UInt8] = []
                var count = 0
                var buffer = [UInt8](repeating: 0, count: 65_536)
                while true {
                    let received = recv(client, &buffer, buffer.count, 0)
                    guard received > 0 else { break }
                    incoming += buffer[..<received]
                    while let (words, length) = Self.command(incoming) {
                        incoming.removeFirst(length)
                        count += 1
                        if count - 1 == answered, !goOn.wait() { return }
                        commands.append(words[0])
                        let value = values[words[1]].map { Array("$\($0.count)\r\n".utf8) + $0 + [13, 10] }
                        let other = Array((words[0] == "SET" ? toSet : "+OK").utf8) + [13, 10]
                        let reply = words[0] == "GET" ? value ?? Array("$-1\r\n".utf8) : other
                        send(client, reply, reply.count, Int32(MSG_NOSIGNAL))
                    }
                }
                close(client)
            }
        }

        deinit { listener.end() }

        /// The words of the first command, if it is whole, and its length.
        private static func command(_ octets: [UInt8]) -> (words: [String], length: Int)? {
            var offset = 0
            func number() -> Int? {
                guard let end = octets[offset...].firstIndex(of: 13), end + 1 < octets.count else { return nil }
                defer { offset = end + 2 }
                return Int(String(decoding: octets[(offset + 1)..<end], as: UTF8.self))
            }
            guard let count = number() else { return nil }
            var words: [String] = []
            for _ in 0..<count {
                guard offset < octets.count, let length = number(), octets.count - offset >= length + 2 else {
                    return nil
                }
                words.append(String(decoding: octets[offset..<offset + length], as: UTF8.self))
                offset += length + 2
            }
            return (words, offset)
        }
    }

    /// The upstream on its own loop.
    private final class World: @unchecked Sendable {
        let loop: EventLoop
        let outbox = Outbox()
        let upstream: StoreUpstream
        let told = Arrivals<SharedEvent>()
        /// The store is kept for as long as this object.
        var store: Store?

        /// - Parameter keys: The keys of the fleet, the present one first.
        convenience init(_ store: Store, keys: [UInt8], _ generations: Generations? = nil) throws {
            try self.init(.plain(store.endpoint), keys: keys, generations)
        }

        init(_ address: StoreUpstream.Address, keys: [UInt8], _ generations: Generations? = nil) throws {
            loop = try EventLoop(label: "test")
            let seals = try keys.map { key in
                StoreSeal(try FleetSeal(secret: [UInt8](repeating: key, count: 32)), [.httpdns: [1]])
            }
            upstream = StoreUpstream(
                StoreUpstream.Access(address, user: "", password: nil), seals: seals,
                generations: generations, loop: loop, outbox: outbox)
            upstream.handle = { [told] in told.append($0) }
            loop.turnEnded = { [outbox] in while outbox.send() {} }
            loop.start()
        }

        func perform(_ actions: [SharedAction], wall: UInt64 = 1_700_000_000) {
            loop.submit { [self] in
                for action in actions { upstream.perform(action, wall: wall) }
            }
        }

        func generations() -> [UInt64]? {
            let told = Arrivals<[UInt64]>()
            loop.submit { [self] in told.append(upstream.seals.map(\.generation)) }
            return told.next()
        }

        func end() {
            let done = Gate()
            loop.submit { [self] in upstream.close() }
            loop.stop { done.open() }
            #expect(done.wait())
        }
    }

    /// While a key is replaced, each question has four keys, and the allowed reads fill the connection.
    @Test func writesAndDeletionsWaitUntilTheConnectionHasRoom() throws {
        let store = try Store(answered: 3)
        let world = try World(store, keys: [1, 2])
        world.perform([.dial])
        #expect(world.told.next() == .connected)
        // Each question has four commands, of the 1024 that may be under way.
        let most = 256
        let reads = (1...most).map { SharedAction.read(SharedReadID(standalone: UInt32($0)), Self.question($0)) }
        world.perform(
            reads + [
                .write(Self.question(0), Self.answer, lifetime: 60, stale: 0), .delete([Self.question(1)]),
                .lookForGeneration,
            ])
        store.goOn.open()
        var told: [SharedEvent] = []
        for _ in 0...most { if let event = world.told.next() { told.append(event) } }
        #expect(told.filter { $0 == .written }.count == 1)
        let found = told.count { if case .found(_, .nothing) = $0 { true } else { false } }
        #expect(found == most)
        world.end()
    }

    /// When the verification of a store is a day old, a new connection replaces the old one, without a failure.
    @Test func trustInAStoreEnds() throws {
        let (tls, busy) = (try TLSServerSettings(addresses: [.v4(127, 0, 0, 1)]), Arrivals<Int>())
        let server = try FramesServer(tls: tls) { number, connection in
            while connection.receive() {
                // Each command begins with the number of its words; the store has no value.
                let commands = connection.incoming.count { $0 == UInt8(ascii: "*") }
                connection.incoming = []
                connection.send((0..<commands).flatMap { _ in Array("$-1\r\n".utf8) })
                if commands > 0 { busy.append(number) }
            }
        }
        let context = try TLSClientContext(TLSPolicy(anchors: tls.certificate))
        let world = try World(.tls(Server(server.endpoint, .tls), context), keys: [1])
        let start = WallClock.unixSeconds()
        world.perform([.dial], wall: start)
        #expect(world.told.next() == .connected && busy.next() == 1)
        world.perform([.lookForGeneration], wall: start + 3600)
        #expect(busy.next() == 1)
        world.perform([.lookForGeneration], wall: start + 90_000)
        #expect(world.told.next() == .connected && busy.next() == 2)
        #expect(server.connections.next() == 1 && server.connections.next() == 2)
        world.end()
    }

    /// The store refuses with the words of Redis 7.
    @Test func aStoreInProtectedModeIsKnown() throws {
        let words =
            "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set."
        let store = try Store(answered: 100, greeting: words + String(repeating: " and so on", count: 100) + "\r\n")
        let world = try World(store, keys: [1])
        world.perform([.dial])
        let why = "it has no password and so serves its own machine alone: give it one, or protected-mode no (DENIED)"
        #expect(world.told.next() == .lost("\(store.endpoint): \(why)"))
        world.end()
    }

    @Test func whatWasToBeForgottenIsNotBelievedWhenItComesBack() throws {
        let store = try Store(answered: 100)
        let world = try World(store, keys: [1])
        world.perform([.dial])
        #expect(world.told.next() == .connected)
        let (question, now) = (Self.question(1), UInt64(1_700_000_000))
        func keep(stored: UInt64) throws {
            let seal = StoreSeal(try FleetSeal(secret: [UInt8](repeating: 1, count: 32)), [.httpdns: [1]])
            let key = try #require(seal.key(.fresh, of: question))
            store.values[String(decoding: key.text, as: UTF8.self)] = try seal.value(
                .answer(.addresses(question.name, type: .a, [.v4(192, 0, 2, 1)], ttl: 60)), stored: stored,
                lifetime: 60,
                as: key)
        }
        func find(_ number: UInt32) -> SharedEntry? {
            world.perform([.read(SharedReadID(standalone: number), question)])
            guard case .found(_, .entry(let entry, isStaleCopy: false))? = world.told.next() else { return nil }
            return entry
        }
        try keep(stored: now - 10)
        #expect(find(1)?.stored == now - 10)
        world.perform([.delete([question])])
        // The deletion is confirmed, and the entry is still there.
        while store.commands.next() != "DEL" {}
        world.perform([.lookForGeneration])
        while store.commands.next() != "GET" {}
        #expect(find(2) == nil)
        // An answer that was looked up after that counts.
        try keep(stored: now)
        var found = find(3)
        for number in 4..<100 as Range<UInt32> where found == nil { found = find(number) }
        #expect(found?.stored == now)
        world.end()
    }

    /// The numbers of generations in a file beside `cache.file`.
    private final class Kept {
        let path = NSTemporaryDirectory() + "generations-\(UUID().uuidString)"
        let lines = LogLines()

        deinit { try? FileManager.default.removeItem(atPath: path + ".generations") }

        var text: String? {
            get { try? String(contentsOfFile: path + ".generations", encoding: .utf8) }
            set { try? newValue?.write(toFile: path + ".generations", atomically: true, encoding: .utf8) }
        }

        /// Works like a daemon that starts and ends: after it, the file has all generations.
        func run(_ work: (Generations) throws -> Void) throws {
            let servers = try ServerAddressFile(beside: path, report: lines.report)
            let generations = Generations(beside: path, with: servers, report: lines.report)
            generations.read()
            try work(generations)
            let isStopped = Gate()
            servers.stop { isStopped.open() }
            #expect(isStopped.wait())
        }
    }

    private func connected(_ keys: [UInt8], _ generations: Generations) throws -> World {
        // A store without an entry, like a store that returned to its state before the first generation.
        let store = try Store(answered: .max)
        let world = try World(store, keys: keys, generations)
        world.store = store
        world.perform([.dial])
        #expect(world.told.next() == .connected)
        return world
    }

    @Test func aGenerationThatCannotBeWrittenForAWhileIsWrittenAtTheEnd() throws {
        let kept = Kept()
        let path = kept.path + ".generations"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try kept.run { generations in
            let world = try connected([1], generations)
            world.perform([.beginGeneration])
            #expect(world.generations() == [1])
            // It can be neither read nor written.
            let end = Clock.now() + 10_000_000_000
            while kept.lines.all.count < 2, Clock.now() < end { usleep(1000) }
            try FileManager.default.removeItem(atPath: path)
            world.end()
        }
        #expect(kept.text?.hasSuffix(" 1\n") == true)
    }

    @Test func aGenerationOutlivesARestartAndAStoreThatForgetsIt() throws {
        let kept = Kept()
        try kept.run { generations in
            let world = try connected([1, 2], generations)
            #expect(world.generations() == [0, 0])
            world.perform([.beginGeneration, .beginGeneration])
            #expect(world.generations() == [2, 2])
            world.end()
        }
        try kept.run { generations in
            let world = try connected([1, 3], generations)
            #expect(world.generations() == [2, 0])
            // Another connection, or another store after a reload, in the same process.
            world.end()
            let second = try connected([1], generations)
            #expect(second.generations() == [2])
            second.perform([.beginGeneration])
            #expect(second.generations() == [3])
            second.end()
        }
        // The generation of a key that is not used any more is given up.
        try kept.run { generations in
            let world = try connected([1, 2], generations)
            #expect(world.generations() == [3, 0])
            world.end()
        }
        #expect(kept.lines.all.isEmpty)
    }

    @Test func aFileOfGenerationsThatIsNoneDoesNoHarm() throws {
        let kept = Kept()
        try kept.run { generations in
            let world = try connected([1], generations)
            world.perform([.beginGeneration])
            #expect(world.generations() == [1])
            world.end()
        }
        let key = try #require(kept.text?.split(separator: " ").first)
        for text in [
            "", "\n\n", "\(key)", "\(key) ", "\(key) x\n", "\(key) -1\n", "\(key) 18446744073709551615\n",
            "\(key) 99999999999999999999\n", "\(key) 1 2\n", "\0\u{7F}\u{FFFD} 7\n",
            String(repeating: "x", count: 4096),
        ] {
            kept.text = text
            try kept.run { generations in
                let world = try connected([1], generations)
                #expect(world.generations() == [0], "\(text)")
                world.end()
            }
        }
        #expect(kept.lines.all.isEmpty)
        kept.text = String(repeating: "x", count: 4097)
        try kept.run { _ in }
        #expect(kept.lines.all.count == 1 && kept.lines.all[0].contains("a store that lies can"))
    }

    /// A name is to be deleted before the generation of the store is known: its keys are those of another generation.
    @Test(arguments: [false, true]) func aDeletionOfAnUnknownGenerationForgetsAll(isDeleted: Bool) throws {
        let store = try Store(answered: .max)
        let seal = StoreSeal(try FleetSeal(secret: [UInt8](repeating: 1, count: 32)), [:])
        let key = seal.generationKey
        store.values[String(decoding: key.text, as: UTF8.self)] = try seal.value(generation: 3, as: key)
        let world = try World(store, keys: [1])
        if isDeleted { world.perform([.delete([Self.question(1)])]) }
        world.perform([.dial])
        #expect(world.told.next() == .connected)
        #expect(world.generations() == [isDeleted ? 4 : 3])
        world.end()
    }

    /// The other daemons of the fleet do not learn of the generation.
    @Test func aGenerationThatTheStoreDoesNotTakeIsReported() throws {
        let store = try Store(answered: .max, toSet: "-OOM command not allowed")
        let world = try World(store, keys: [1])
        world.store = store
        world.perform([.dial])
        #expect(world.told.next() == .connected)
        for _ in 0..<2 {
            world.perform([.beginGeneration])
            #expect(world.told.next() == .writeFailed("its memory is full (OOM)"))
        }
        world.end()
    }

    /// Another daemon has begun a generation that this daemon has not read when a name is deleted.
    @Test(arguments: [false, true]) func aDeletionOfAFormerGenerationForgetsAll(isDeleted: Bool) throws {
        let store = try Store(answered: .max)
        let world = try World(store, keys: [1])
        world.perform([.dial])
        #expect(world.told.next() == .connected)
        let seal = StoreSeal(try FleetSeal(secret: [UInt8](repeating: 1, count: 32)), [:])
        let key = seal.generationKey
        store.values[String(decoding: key.text, as: UTF8.self)] = try seal.value(generation: 3, as: key)
        if isDeleted { world.perform([.delete([Self.question(1)])]) }
        // The replies come in order.
        world.perform([.lookForGeneration, .read(SharedReadID(standalone: 1), Self.question(2))])
        #expect(world.told.next() == .found(SharedReadID(standalone: 1), .nothing))
        #expect(world.generations() == [isDeleted ? 4 : 3])
        world.end()
    }

    /// A restart forgets which entries are still to be deleted, so all are forgotten then; once they are deleted, none.
    @Test func aDeletionThatTheStoreHasNotConfirmedOutlivesARestart() throws {
        let kept = Kept()
        for isBack in [true, false] {
            try kept.run { generations in
                let store = try Store(answered: .max)
                let world = try World(store, keys: [1], generations)
                world.perform([.delete([Self.question(1)])])
                if isBack {
                    world.perform([.dial])
                    #expect(world.told.next() == .connected)
                    let end = Clock.now() + 10_000_000_000
                    while kept.text != "", Clock.now() < end { usleep(1000) }
                }
                #expect(world.generations() == [0])
                world.end()
            }
            try kept.run { generations in
                let world = try connected([1], generations)
                #expect(world.generations() == [isBack ? 0 : 1])
                world.end()
            }
        }
    }

    /// Only so many deletions can wait for an absent store; a further one makes all earlier entries useless.
    @Test func whatCannotBeDeletedByNameIsForgottenAsAWhole() throws {
        let store = try Store(answered: .max)
        let world = try World(store, keys: [1])
        // Each name has two keys.
        let names = StoreUpstream.maximumDeletions / 2
        world.perform([.delete((1...names).map(Self.question))])
        #expect(world.generations() == [0])
        world.perform([.delete([Self.question(0)])])
        #expect(world.generations() == [1])
        world.perform([.dial])
        #expect(world.told.next() == .connected)
        world.end()
    }
}
