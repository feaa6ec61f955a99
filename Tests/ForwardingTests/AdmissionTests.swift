import Base
import DNSWire
import Testing

@testable import Forwarding

/// Who may wait and who makes room, by numbers alone.
@Suite struct AdmissionTests {
    private static func source(_ number: Int) -> Source { Source(.v4(192, 0, UInt8(number >> 8), UInt8(number & 255))) }

    private static func client(_ source: Int, isProven: Bool = true) -> Asker {
        Asker(number: 1, source: Self.source(source), isProven: isProven)
    }

    @Test func whoHasTheMostMakesRoomForWhoHasFew() {
        var admission = Admission()
        let flood = (0..<Admission.maximumFlights - 2).map { _ in admission.begin(Self.source(1)) }
        #expect(!admission.isFull)
        let few = (0..<2).map { _ in admission.begin(Self.source(2)) }
        #expect(admission.isFull && admission.sources == 2)
        #expect(admission.shareToLose(to: Self.source(2)) == flood[0])
        #expect(admission.shareToLose(to: Self.source(3)) == flood[0])
        #expect(admission.shareToLose(to: Self.source(1)) == nil)
        for share in flood { admission.end(share) }
        #expect(admission.flights == 2)
        // Between equals those stay that have come further.
        #expect(admission.shareToLose(to: Self.source(3)) == few[0])
        admission.end(few[0])
        #expect(admission.shareToLose(to: Self.source(3)) == nil)
        admission.end(few[1])
        #expect(admission.flights == 0 && admission.sources == 0)
    }

    @Test func aFlightThatAFloodHasBegunCountsForWhoAsksTheSame() {
        var admission = Admission()
        let flood = (0..<3).map { _ in admission.begin(Self.source(1)) }
        let taken = admission.takeOver(from: flood[0], Self.source(2))
        #expect(taken.map { admission.source(of: $0) } == Self.source(2))
        #expect(admission.flights(of: Self.source(1)) == 2 && admission.flights(of: Self.source(2)) == 1)
        // Not from one that would have no more than the other then.
        let more = admission.takeOver(from: flood[1], Self.source(2))
        #expect(more == nil)
        #expect(admission.flights == 3)
    }

    @Test func aShareIsUsedAgainOnceItsSourceHasNothing() {
        var admission = Admission()
        let first = admission.begin(Self.source(1))
        let waiter = admission.wait(Self.client(1))
        admission.end(first)
        #expect(admission.source(of: waiter.share) == Self.source(1) && admission.sources == 1)
        admission.answered(waiter)
        #expect(admission.sources == 0 && admission.clients == 0)
        let second = admission.begin(Self.source(2))
        let third = admission.begin(Self.source(3))
        #expect(Set([second, third]).count == 2 && [second, third].contains(first))
    }

    @Test func ofOneQuestionASourceHasItsPartOfThePlaces() {
        var (admission, waiting) = (Admission(), SmallList<Waiter>())
        while admission.mayWait(Self.client(1), with: waiting) { waiting.append(admission.wait(Self.client(1))) }
        #expect(waiting.count == Admission.maximumWaiting / 8 * 7)
        #expect(admission.mayWait(Self.client(2), with: waiting))
        // Another question has places of its own.
        #expect(admission.mayWait(Self.client(1), with: SmallList()))
    }

    @Test func inAllASourceHasItsPartOfThePlaces() {
        var admission = Admission()
        for _ in 0..<Admission.maximumClients / 8 * 7 { _ = admission.wait(Self.client(1)) }
        #expect(!admission.mayWait(Self.client(1), with: SmallList()))
        #expect(admission.mayWait(Self.client(2), with: SmallList()))
        // The first client of a question is always taken.
        #expect(admission.mayWait(Self.client(1)))
    }

    @Test func aSourceThatIsNotProvenHasFewPlaces() {
        let client = Self.client(1, isProven: false)
        var (admission, waiting) = (Admission(), SmallList<Waiter>())
        while admission.mayWait(client, with: waiting) { waiting.append(admission.wait(client)) }
        #expect(waiting.count == Admission.maximumUnprovenWaiting && waiting.allSatisfy { !$0.isProven })
        #expect(admission.mayWait(Self.client(1), with: waiting))
        #expect(admission.mayWait(Self.client(2, isProven: false), with: waiting))
        while admission.mayWait(client) { _ = admission.wait(client) }
        #expect(admission.clients == Admission.maximumUnproven)
        #expect(!admission.mayWait(client, with: SmallList()) && admission.mayWait(Self.client(1)))
    }

    @Test func aLimitIsSaidAgainOnlyAfterPlentyOfRoom() {
        var admission = Admission()
        let shares = (0..<Admission.maximumFlights).map { _ in admission.begin(Self.source(1)) }
        let first = admission.isNews(.tooManyFlights)
        let second = admission.isNews(.tooManyFlights)
        #expect(first && !second)
        for share in shares.prefix(Admission.maximumFlights / 2) { admission.end(share) }
        let withLittleRoom = admission.isNews(.tooManyFlights)
        admission.end(shares[0])
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
        #expect(admission.failure(of: key, at: at(0)) == nil)
        fail(0)
        #expect(admission.failure(of: key, at: at(999))?.text == "at 0")
        #expect(admission.failure(of: key, at: at(1000)) == nil)
        fail(2000)
        fail(2002)
        #expect(admission.failure(of: key, at: at(3001))?.text == "at 2002")
        #expect(admission.failure(of: key, at: at(3002)) == nil)
        fail(2002)
        admission.forgetFailures { $0 == NameKey(Name("other.example.com")!) }
        #expect(admission.failure(of: key, at: at(2003)) != nil)
        admission.forgetFailures { $0 == name }
        #expect(admission.failure(of: key, at: at(2003)) == nil)
    }
}
