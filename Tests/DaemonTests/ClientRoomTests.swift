import Base
import Configuration
import Forwarding
import Testing

@testable import Daemon

/// Who may connect and who is closed, by clients as values.
@Suite struct ClientRoomTests {
    private typealias Guest = ClientRoom.Guest

    private static let second: UInt64 = 1_000_000_000
    private static let one = Source(.v4(192, 0, 2, 1))
    private static let other = Source(.v4(192, 0, 2, 2))
    /// On a link of this machine.
    private static func neighbour(_ number: UInt64) -> Source { Source(IPAddress(v6: 0xFD00 << 48, number + 1)) }

    private static func settings(most: Int) -> Settings.Listen {
        var settings = Settings().listen
        (settings.tcpClients, settings.tcpIdleSeconds) = (most, 20)
        return settings
    }

    /// A room with clients, each of a source, and what it is doing.
    private struct World {
        var room: ClientRoom
        var guests: [Guest] = []

        init(most: Int, isEncrypted: Bool = false) {
            room = ClientRoom(ClientRoomTests.settings(most: most), isEncrypted: isEncrypted)
        }

        @discardableResult
        mutating func enter(_ source: Source, _ doing: Doing = .waiting) -> Bool {
            let began = doing == .shaking ? UInt64(guests.count) : nil
            let guest = Guest(
                number: UInt64(guests.count), source: source, lastActivity: UInt64(guests.count), handshakeBegan: began,
                held: doing == .halfSent ? 1 : 0, isQuiet: doing != .waiting)
            guests.append(guest)
            return room.entered(guest)
        }

        func entry(_ source: Source) -> ClientRoom.Entry { room.entry(of: source, among: guests) }
    }

    /// What a client is doing: a query of it is being looked up, it has half sent one, nothing, or its handshake is under way.
    private enum Doing { case waiting, halfSent, idle, shaking }

    /// Among four clients, which is closed for a fifth; nil: it is refused.
    @Test(
        arguments: [
            ([.idle, .idle, .idle, .idle], 0), ([.waiting, .idle, .idle, .idle], 1),
            ([.halfSent, .idle, .waiting, .idle], 1),
            ([.waiting, .halfSent, .waiting, .halfSent], 1), ([.idle, .idle, .idle, .shaking], 3),
            ([.waiting, .shaking, .shaking, .idle], 1), ([.waiting, .waiting, .waiting, .waiting], nil),
        ] as [([Doing], UInt64?)])
    private func whoMakesRoom(doing: [Doing], number: UInt64?) {
        let isEncrypted = doing.contains(.shaking)
        var all = World(most: 4, isEncrypted: isEncrypted)
        var ofSource = World(most: 16, isEncrypted: isEncrypted)
        for one in doing {
            all.enter(.host, one)
            ofSource.enter(Self.one, one)
        }
        #expect(all.entry(Self.other) == number.map { .insteadOf($0) } ?? .refused)
        #expect(ofSource.entry(Self.one) == number.map { .insteadOf($0) } ?? .refusedOfSource)
        #expect(ofSource.entry(Self.other) == .free)
    }

    @Test func aSourceHasAQuarterAndThisHostAll() {
        var world = World(most: 16)
        for number in 0..<16 {
            #expect(world.entry(Self.one) == (number < 4 ? .free : .refusedOfSource))
            world.enter(number < 4 ? Self.one : .host)
        }
        #expect(world.entry(.host) == .refused && world.entry(Self.other) == .refused)
        // Its own make room for it, whatever others do.
        world.guests[3].isQuiet = true
        world.guests[9].isQuiet = true
        #expect(world.entry(Self.one) == .insteadOf(3) && world.entry(Self.other) == .insteadOf(3))
        world.room.left(world.guests.removeLast())
        #expect(world.entry(Self.other) == .free && world.entry(Self.one) == .insteadOf(3))
        // Of the smallest number each has one.
        #expect(World(most: 1).entry(Self.one) == .free)
    }

    @Test func aNetworkOnALinkLeavesAnEighth() {
        var world = World(most: 16)
        for number in 0..<14 {
            #expect(world.entry(Self.neighbour(UInt64(number))) == .free)
            world.enter(Self.neighbour(UInt64(number)))
        }
        #expect(world.entry(Self.neighbour(20)) == .refusedOfSource && world.entry(Self.one) == .free)
        world.enter(Self.one, .idle)
        world.guests[5].isQuiet = true
        #expect(world.entry(Self.neighbour(20)) == .insteadOf(5), "one of the network, not the one elsewhere")
    }

    @Test func fewerClientsThanThereAre() {
        var world = World(most: 16)
        for _ in 0..<16 { world.enter(.host, .idle) }
        world.room.settings = Self.settings(most: 2)
        var closed = 0
        while case .insteadOf(let number) = world.entry(Self.one),
            let index = world.guests.firstIndex(where: { $0.number == number })
        {
            world.room.left(world.guests.remove(at: index))
            closed += 1
        }
        #expect(closed == 15 && world.entry(Self.one) == .free)
    }

    @Test func eightHandshakesOfASourceAreUnderWay() {
        var world = World(most: 256, isEncrypted: true)
        let waits = (0..<20).map { _ in world.enter(Self.one, .shaking) }
        #expect(waits == (0..<20).map { $0 >= Shares.handshakes })
        let others = [Self.other, .host].map { world.enter($0, .shaking) }
        #expect(others == [false, false])
        // One that waits and leaves makes nobody begin; one that is done, the first that waits.
        let ended = [8, 0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
        let begun = ended.map { world.room.handshakeEnded(world.guests[$0]) }
        #expect(begun == [nil] + (9..<20).map { UInt64($0) } + [UInt64?](repeating: nil, count: 8))
        let waitsAgain = world.enter(Self.one, .shaking)
        #expect(!waitsAgain)
    }

    @Test func whoKeepsMostIsCutOff() {
        var world = World(most: 256)
        for held in [5, 9, 7] {
            world.enter(.host)
            world.guests[world.guests.count - 1].held = held
        }
        world.room.held = ClientRoom.maximumHeld
        #expect(world.room.tooMuch(among: world.guests) == nil)
        world.room.held += 1
        #expect(world.room.tooMuch(among: world.guests) == 1)
    }

    @Test func ofTheSourceThatKeepsMostTheLargestIsCutOff() {
        func cutOff(_ holders: [(Source, Int)]) -> UInt64? {
            var world = World(most: 256)
            for (source, held) in holders {
                world.enter(source)
                world.guests[world.guests.count - 1].held = held
            }
            world.room.held = ClientRoom.maximumHeld + 1
            return world.room.tooMuch(among: world.guests)
        }
        #expect(cutOff([(Self.one, 4), (Self.other, 9), (Self.one, 6)]) == 2, "of one source are 10")
        #expect(cutOff([(Self.one, 4), (Self.other, 11), (Self.one, 6)]) == 1)
        #expect(cutOff([(.host, 8), (Self.other, 9), (.host, 8)]) == 1, "this host is no source")
        var holders: [(Source, Int)] = [(Self.one, 9)]
        for number: UInt64 in [0, 1, 2, 3, 2] { holders.append((Self.neighbour(number), holders.count)) }
        #expect(cutOff(holders) == 5, "of the network are 15, of one source there 8")
        holders[0].1 = 16
        #expect(cutOff(holders) == 0)
    }

    @Test func whenAClientIsClosed() {
        let room = ClientRoom(Self.settings(most: 4), isEncrypted: true)
        let idle = Guest(number: 1, source: Self.one, lastActivity: 5 * Self.second)
        let shaking = Guest(number: 2, source: Self.one, lastActivity: 0, handshakeBegan: 7 * Self.second)
        #expect(room.due(idle) == 25 * Self.second && room.due(shaking) == 17 * Self.second)
        #expect(room.nextCheck(among: [idle, shaking], at: 0) == 17 * Self.second)
        // Not at once again, while one that waits for an answer is due.
        #expect(room.nextCheck(among: [idle, shaking], at: 30 * Self.second) == 32 * Self.second + Self.second / 2)
        #expect(room.nextCheck(among: [Guest](), at: 0) == nil)
        #expect(
            ClientRoom(Self.settings(most: 4), isEncrypted: false).nextCheck(among: [idle], at: 30 * Self.second) == 35
                * Self.second)
    }
}
