import Base
import DNSWire
import Testing

@testable import Forwarding

/// Which sources may wait and which make room, by numbers alone.
@Suite struct AdmissionTests {
    private static func source(_ number: Int) -> Source { Source(.v4(192, 0, UInt8(number >> 8), UInt8(number & 255))) }

    /// A source on a link of this machine.
    private static func neighbour(_ number: Int) -> Source { Source(IPAddress(v6: 0xFD00 << 48, UInt64(number) + 1)) }

    private static func client(_ source: Int, isProven: Bool = true) -> AskingClient {
        client(Self.source(source), isProven: isProven)
    }

    private static func client(_ source: Source, isProven: Bool = true) -> AskingClient {
        AskingClient(number: 1, asker: Asker(source, isProven: isProven))
    }

    @Test func whoHasTheMostMakesRoomForWhoHasFew() {
        var admission = Admission()
        func room(_ source: Int) -> Admission.Room { admission.room(for: Self.source(source)) }
        for _ in 0..<Shares.flights - 2 { admission.begin(Self.source(1)) }
        #expect(room(1) == .free)
        for _ in 0..<2 { admission.begin(Self.source(2)) }
        #expect(admission.flights.all == Shares.flights && admission.flights.count == 2)
        #expect(room(2) == .ofNewest(Self.source(1)) && room(3) == .ofNewest(Self.source(1)) && room(1) == .none)
    }

    @Test func betweenEqualsThoseStayThatHaveComeFurther() {
        var admission = Admission()
        for number in 0..<Shares.flights { admission.begin(Self.source(number)) }
        #expect(admission.room(for: Self.source(Shares.flights)) == .none)
    }

    /// A flooding host makes room for its neighbours, and a host that invents addresses leaves an eighth to the rest.
    @Test func aNetworkOnALinkLeavesRoom() {
        var admission = Admission()
        while case .free = admission.room(for: Self.neighbour(0)) { admission.begin(Self.neighbour(0)) }
        #expect(admission.flights.all == Shares.flights / 8 * 7)
        #expect(admission.room(for: Self.neighbour(0)) == .none)
        #expect(admission.room(for: Self.neighbour(1)) == .ofNewest(Self.neighbour(0)))
        #expect(admission.room(for: Self.source(1)) == .free)
        admission = Admission()
        for number in 0..<2 * Shares.flights {
            if case .free = admission.room(for: Self.neighbour(number)) { admission.begin(Self.neighbour(number)) }
        }
        #expect(admission.flights.all == Shares.flights / 8 * 7)
        #expect(admission.room(for: Self.source(1)) == .free)
        // Another network fills no more than its part of the rest.
        func stranger(_ number: Int) -> Source { Source(IPAddress(v6: 0xFE80 << 48, UInt64(number) + 1)) }
        for number in 0..<2 * Shares.flights {
            if case .free = admission.room(for: stranger(number)) { admission.begin(stranger(number)) }
        }
        #expect(admission.flights.all == Shares.flights / 64 * 63)
        #expect(admission.room(for: Self.source(1)) == .free)
        // A flood from another network makes room for a host of the link as for any other source.
        admission = Admission()
        for _ in 0..<Shares.flights { admission.begin(Self.source(1)) }
        #expect(admission.room(for: Self.neighbour(0)) == .ofNewest(Self.source(1)))
    }

    /// When all are taken a network has its part of them and no more: for a further host one of its own makes room.
    @Test func aNetworkThatHasItsPartTakesNothingFromOthers() {
        for (missing, room) in [(1, Admission.Room.ofNewest(Self.source(1))), (0, .none)] {
            var admission = Admission()
            let part = Shares.ofNetwork(Shares.flights) - missing
            for number in 0..<part { admission.begin(Self.neighbour(number)) }
            for _ in part..<Shares.flights { admission.begin(Self.source(1)) }
            #expect(admission.room(for: Self.neighbour(part)) == room, "\(missing)")
        }
    }

    @Test func aFlightThatAFloodHasBegunCountsForWhoAsksTheSame() {
        var admission = Admission()
        for _ in 0..<3 { admission.begin(Self.source(1)) }
        let isTaken = admission.takesOver(from: Self.source(1), Self.source(2))
        #expect(isTaken && admission.flights[Self.source(1)] == 2 && admission.flights[Self.source(2)] == 1)
        // The first source would then have fewer than the second.
        let isAnother = admission.takesOver(from: Self.source(1), Self.source(2))
        #expect(!isAnother && admission.flights.all == 3)
    }

    @Test func aSourceThatHasNothingIsForgotten() {
        var admission = Admission()
        admission.begin(Self.source(1))
        let waiter = admission.wait(Self.client(1))
        admission.end(Self.source(1))
        #expect(waiter.source == Self.source(1) && admission.flights.count == 0 && admission.clients.count == 1)
        admission.answered(waiter)
        #expect(admission.clients.count == 0 && admission.clients.all == 0)
    }

    @Test func ofOneQuestionASourceHasItsPartOfTheRoom() {
        var (admission, waiting) = (Admission(), SmallList<Waiter>())
        while admission.mayWait(Self.client(1), with: waiting) { waiting.append(admission.wait(Self.client(1))) }
        #expect(waiting.count == Shares.waiting / 8 * 7)
        #expect(admission.mayWait(Self.client(2), with: waiting))
        // Another question has room of its own.
        #expect(admission.mayWait(Self.client(1), with: SmallList()))
    }

    @Test func inAllASourceHasItsPartOfTheRoom() {
        var admission = Admission()
        for _ in 0..<Shares.clients / 8 * 7 { _ = admission.wait(Self.client(1)) }
        #expect(!admission.mayWait(Self.client(1), with: SmallList()))
        #expect(admission.mayWait(Self.client(2), with: SmallList()))
        // The first client of a question is always taken.
        #expect(admission.mayWait(Self.client(1)))
    }

    @Test func aSourceThatIsNotProvenHasLittleRoom() {
        let client = Self.client(1, isProven: false)
        var (admission, waiting) = (Admission(), SmallList<Waiter>())
        while admission.mayWait(client, with: waiting) { waiting.append(admission.wait(client)) }
        #expect(waiting.count == Shares.unprovenWaiting && waiting.allSatisfy { !$0.isProven })
        #expect(admission.mayWait(Self.client(1), with: waiting))
        #expect(admission.mayWait(Self.client(2, isProven: false), with: waiting))
        while admission.mayWait(client) { _ = admission.wait(client) }
        #expect(admission.clients.all == Shares.unproven)
        #expect(!admission.mayWait(client, with: SmallList()) && admission.mayWait(Self.client(1)))
    }

    /// Sixty-five hosts of one link ask the same, without a cookie.
    @Test(arguments: [false, true]) func neighboursDoNotTakeEachOthersRoom(isProven: Bool) {
        var (admission, waiting) = (Admission(), SmallList<Waiter>())
        func wait(_ source: Source) -> Bool {
            let client = Self.client(source, isProven: isProven)
            guard admission.mayWait(client, with: waiting) else { return false }
            waiting.append(admission.wait(client))
            return true
        }
        for number in 0..<Shares.unprovenWaiting + 1 { #expect(wait(Self.neighbour(number))) }
        let more = (0..<2 * Shares.waiting).count { wait(Self.neighbour(1000 + $0)) }
        #expect(waiting.count == Shares.waiting / 8 * 7 && more == waiting.count - Shares.unprovenWaiting - 1)
        #expect(wait(Self.source(1)))
    }

    @Test func aLimitIsSaidAgainOnlyAfterPlentyOfRoom() {
        var admission = Admission()
        for _ in 0..<Shares.flights { admission.begin(Self.source(1)) }
        let first = admission.isNews(.tooManyFlights)
        let second = admission.isNews(.tooManyFlights)
        #expect(first && !second)
        for _ in 0..<Shares.flights / 2 { admission.end(Self.source(1)) }
        let withLittleRoom = admission.isNews(.tooManyFlights)
        admission.end(Self.source(1))
        let withPlenty = admission.isNews(.tooManyFlights)
        #expect(!withLittleRoom && withPlenty)
    }

    @Test func aQuestionThatHasFailedIsNotLookedUpForASecond() {
        func at(_ milliseconds: UInt64) -> Tick { Tick(nanoseconds: (1_000_000 + milliseconds) * 1_000_000) }
        var admission = Admission()
        let name = NameKey(Name("www.example.com")!)
        let key = Flight.Key(name: name, type: .a, audience: .everyone)
        func fail(_ moment: UInt64) {
            admission.failed(key, FailureReason(code: .networkError, text: "at \(moment)"), at: at(moment))
        }
        #expect(admission.failures.value(key, at: at(0)) == nil)
        fail(0)
        #expect(admission.failures.value(key, at: at(999))?.text == "at 0")
        #expect(admission.failures.value(key, at: at(1000)) == nil)
        fail(2000)
        fail(2002)
        #expect(admission.failures.value(key, at: at(3001))?.text == "at 2002")
        #expect(admission.failures.value(key, at: at(3002)) == nil)
        fail(2002)
        admission.failures.remove { $0.name == NameKey(Name("other.example.com")!) }
        #expect(admission.failures.value(key, at: at(2003)) != nil)
        admission.failures.remove { $0.name == name }
        #expect(admission.failures.value(key, at: at(2003)) == nil)
    }
}
