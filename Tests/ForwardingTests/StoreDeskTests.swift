import Base
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

/// The decisions about the store, for flights that are only numbers here.
@Suite struct StoreDeskTests {
    /// A desk whose store is connected at 0 ms, and its actions and findings.
    private final class Counter {
        var desk = StoreDesk()
        var actions: [Action] = []
        /// All reads and claims so far.
        var asked: [SharedReadID] = []
        let wall: UInt64 = 1_700_000_000
        var next: Tick? { desk.nextDeadline }
        static let name = Name("a.example")!

        init() {
            desk.begin(SharedSettings(staleSeconds: 100, prefetchAt: 75), at: at(0), &actions)
            tell(.connected, at: 0)
            _ = said()
        }

        func at(_ milliseconds: UInt64) -> Tick { Tick(nanoseconds: (1_000_000 + milliseconds) * 1_000_000) }

        static func subject(_ flight: UInt32, isAccount: Bool = true) -> StoreSubject {
            let key = Flight.Key(name: NameKey(name), type: .a, audience: .everyone)
            let question = SharedQuestion(group: .httpdns, name: name, type: .a, audience: .everyone)
            return StoreSubject(
                flight: TableID(standalone: flight), step: 0, key: key, question: question, isAccount: isAccount)
        }

        func look(_ flight: UInt32, isWanted: Bool = true, isAccount: Bool = true, at time: UInt64) -> Bool {
            desk.look(for: Self.subject(flight, isAccount: isAccount), isWanted: isWanted, at: at(time), &actions)
        }

        func tell(_ event: SharedEvent, at time: UInt64) {
            desk.handle(event, wall: wall + time / 1000, maxTTL: 300, at: at(time), &actions)
        }

        func expire(at time: UInt64) { desk.expire(at: at(time), &actions) }

        /// An entry of this age in seconds at 0 ms.
        func entry(_ content: SharedContent? = nil, age: UInt64, isCopy: Bool = false) -> SharedFinding {
            let answer = Answer.addresses(Self.name, type: .a, [.v4(192, 0, 2, 1)], ttl: 60)
            let entry = SharedEntry(content ?? .answer(answer), stored: wall - age, lifetime: 60)
            return .entry(entry, isStaleCopy: isCopy)
        }

        /// The new actions, then the new findings.
        func said() -> [String] {
            var said: [String] = []
            for action in actions {
                switch action {
                case .shared(.read(let id, _)):
                    asked.append(id)
                    said.append("read")
                case .shared(.claim(let id, _)):
                    asked.append(id)
                    said.append("claim")
                case .shared(.hangUp): said.append("hang up")
                case .shared(.dial): said.append("dial")
                case .shared(.write): said.append("write")
                case .report(let event): said.append(event.said)
                default: said.append("else")
                }
            }
            actions = []
            while let finding = desk.takeFinding() {
                let flight = finding.subject.flight
                let number = (1...9).first { TableID(standalone: $0) == flight } ?? 0
                switch finding.news {
                case .fresh(let content, let elapsed, let isDue):
                    said.append(
                        "\(number): \(content == .noRecord ? "no record" : "fresh") \(elapsed)\(isDue ? " due" : "")")
                case .known(_, let elapsed): said.append("\(number): known \(elapsed)")
                case .nothing: said.append("\(number): nothing")
                case .askGroup: said.append("\(number): ask the group")
                case .leaseLost: said.append("\(number): lease lost")
                }
            }
            return said
        }
    }

    @Test func withoutAStoreNothingIsAsked() {
        var (desk, actions) = (StoreDesk(), [Action]())
        let isWaitedFor = desk.look(for: Counter.subject(1), isWanted: true, at: Tick(nanoseconds: 0), &actions)
        let next = desk.nextDeadline
        #expect(!isWaitedFor && next == nil && actions.isEmpty)
    }

    @Test func aStepWaitsFiveMillisecondsAndClientsNoLongerThanThat() {
        let counter = Counter()
        #expect(counter.look(1, at: 0))
        #expect(counter.said() == ["read"])
        #expect(counter.desk.isWaitedFor(by: TableID(standalone: 1), at: counter.at(4)))
        counter.expire(at: 4)
        #expect(counter.said() == [])
        counter.expire(at: 5)
        #expect(counter.said() == ["1: ask the group"])
        #expect(!counter.desk.isWaitedFor(by: TableID(standalone: 1), at: counter.at(5)))
        // A late reply is still reported; a missing reply is a failure.
        counter.tell(.found(counter.asked[0], counter.entry(age: 10)), at: 20)
        #expect(counter.said() == ["1: fresh 10"])
        _ = counter.look(1, at: 100)
        counter.expire(at: 150)
        #expect(counter.said() == ["read", "1: nothing"])
        #expect(counter.desk.counters.failures == 1)
    }

    /// The second group's look is not waited for once the first has taken the time.
    @Test func aFlightWaitsOnceForAllItsSteps() {
        let counter = Counter()
        _ = counter.look(1, at: 0)
        _ = counter.said()
        counter.tell(.found(counter.asked[0], .nothing), at: 3)
        #expect(counter.said() == ["1: ask the group"])
        #expect(counter.look(1, at: 10))
        _ = counter.said()
        counter.expire(at: 12)
        #expect(counter.said() == ["1: ask the group"])
        counter.tell(.found(counter.asked[1], .nothing), at: 13)
        #expect(!counter.look(1, at: 14))
        #expect(counter.said() == ["read", "1: nothing"])
        // Another flight may wait the whole time.
        #expect(counter.look(2, at: 14))
    }

    /// So no count falls: what is neither hit nor failed is a miss.
    @Test func aReadIsCountedOnceAtItsEnd() {
        let counter = Counter()
        func counts() -> [UInt64] {
            [counter.desk.counters.reads, counter.desk.counters.hits, counter.desk.counters.failures]
        }
        for flight in 1...4 as ClosedRange<UInt32> { _ = counter.look(flight, at: 0) }
        _ = counter.said()
        #expect(counts() == [0, 0, 0])
        counter.tell(.found(counter.asked[0], counter.entry(age: 10)), at: 1)
        counter.tell(.found(counter.asked[1], .nothing), at: 2)
        counter.tell(.failed(counter.asked[2], "its data"), at: 3)
        counter.tell(.failed(nil, "the generation"), at: 4)
        #expect(counts() == [3, 1, 1])
        counter.tell(.lost("closed"), at: 5)
        #expect(counts() == [4, 1, 2])
    }

    /// Behind a request that is late no other is waited for.
    @Test func behindALateReplyNobodyWaits() {
        let counter = Counter()
        #expect(counter.look(1, at: 0))
        #expect(counter.look(2, at: 4))
        #expect(!counter.look(3, at: 5))
        _ = counter.said()
        counter.tell(.found(counter.asked[0], .nothing), at: 6)
        #expect(counter.look(4, at: 7))
    }

    /// The replies of the store are counted: a failed read of the generation does not count as one, and a late reply
    /// does.
    @Test func whatIsOwedIsCountedInReplies() {
        let counter = Counter()
        for flight in 1...2 as ClosedRange<UInt32> { _ = counter.look(flight, at: 1) }
        _ = counter.said()
        counter.expire(at: 51)
        counter.tell(.failed(nil, "its data"), at: 51)
        #expect(counter.desk.counters.failures == 2)
        #expect(counter.desk.budget(at: counter.at(52)) == 0)
        // Both replies come late, one as an error: then the store owes no reply, and the next question waits again.
        counter.tell(.found(counter.asked[0], .nothing), at: 80)
        #expect(counter.desk.budget(at: counter.at(86)) == 0)
        counter.tell(.failed(counter.asked[1], "its data"), at: 90)
        #expect(counter.desk.counters.failures == 2)
        #expect(counter.desk.budget(at: counter.at(100)) == StoreDesk.mostWait)
    }

    @Test func aRefreshTakesTheLeaseOfWhatIsDueOrMissing() {
        let counter = Counter()
        for flight in 1...4 as ClosedRange<UInt32> { #expect(counter.look(flight, isWanted: false, at: 0)) }
        _ = counter.said()
        counter.tell(.found(counter.asked[0], counter.entry(age: 44)), at: 1)
        #expect(counter.said() == ["1: fresh 44"])
        counter.tell(.found(counter.asked[1], counter.entry(age: 45)), at: 2)
        counter.tell(.found(counter.asked[2], .nothing), at: 3)
        counter.tell(.found(counter.asked[3], .nothing), at: 3)
        #expect(counter.said() == ["claim", "claim", "claim"])
        counter.tell(.claimed(counter.asked[4], false), at: 4)
        counter.tell(.claimed(counter.asked[5], true), at: 4)
        // Without a reply the group is asked as well.
        counter.expire(at: 53)
        #expect(counter.said() == ["2: lease lost", "3: ask the group", "4: ask the group"])
        // A client's question takes none.
        counter.tell(.claimed(counter.asked[6], true), at: 55)
        _ = counter.look(5, at: 60)
        _ = counter.said()
        counter.tell(.found(counter.asked.last!, .nothing), at: 61)
        #expect(counter.said() == ["5: ask the group"])
    }

    @Test func whoJoinsARefreshWaitsAsAnybodyDoes() {
        let counter = Counter()
        _ = counter.look(1, isWanted: false, at: 0)
        _ = counter.said()
        counter.desk.hurry(TableID(standalone: 1), at: counter.at(10))
        counter.expire(at: 14)
        #expect(counter.said() == [])
        counter.expire(at: 15)
        #expect(counter.said() == ["1: ask the group"])
        // It is wanted now, so no lease is taken for it.
        counter.tell(.found(counter.asked[0], counter.entry(age: 50)), at: 20)
        #expect(counter.said() == ["1: fresh 50 due"])
    }

    @Test func entriesThatDoNotAnswer() {
        let counter = Counter()
        let short = Answer.addresses(Counter.name, type: .a, [.v4(192, 0, 2, 1)], ttl: 20)
        let findings = [
            // Only an account has "no record", and a short answer ends before its entry.
            (counter.entry(.noRecord, age: 10), false, ["1: ask the group"]),
            (counter.entry(.noRecord, age: 10), true, ["1: no record 10"]),
            (counter.entry(.answer(short), age: 20), true, ["1: ask the group"]),
            (counter.entry(age: 60), true, ["1: ask the group"]),
            (counter.entry(age: 70, isCopy: true), true, ["1: known 70", "1: ask the group"]),
            (counter.entry(age: 160, isCopy: true), true, ["1: ask the group"]),
            (.nothing, true, ["1: ask the group"]),
        ]
        for (finding, isAccount, expected) in findings {
            counter.desk.ended(TableID(standalone: 1))
            _ = counter.look(1, isAccount: isAccount, at: 0)
            _ = counter.said()
            counter.tell(.found(counter.asked.last!, finding), at: 1)
            #expect(counter.said() == expected)
        }
    }

    @Test func toAFlightThatHasEndedThingsAreOnlyKnown() {
        let counter = Counter()
        for flight in 1...4 as ClosedRange<UInt32> { _ = counter.look(flight, isWanted: flight != 4, at: 0) }
        for flight in 1...4 as ClosedRange<UInt32> { counter.desk.ended(TableID(standalone: flight)) }
        _ = counter.said()
        counter.tell(.found(counter.asked[0], counter.entry(age: 10)), at: 1)
        counter.tell(.found(counter.asked[1], counter.entry(age: 70, isCopy: true)), at: 1)
        counter.tell(.found(counter.asked[2], .nothing), at: 1)
        counter.tell(.found(counter.asked[3], counter.entry(age: 50)), at: 1)
        #expect(counter.said() == ["1: known 10", "2: known 70", "4: known 50"])
        counter.expire(at: 5)
        #expect(counter.said() == [])
    }

    @Test func whatWasAskedUnderOtherRulesIsNoAnswer() {
        let counter = Counter()
        _ = counter.look(1, at: 0)
        _ = counter.look(2, isWanted: false, at: 0)
        _ = counter.said()
        counter.desk.outdate { $0.key.name == NameKey(Counter.name) }
        counter.tell(.found(counter.asked[0], counter.entry(age: 10)), at: 1)
        counter.tell(.found(counter.asked[1], counter.entry(age: 10)), at: 1)
        #expect(counter.said() == ["1: ask the group", "2: ask the group"])
    }

    /// Actions come in order: the desk gives the store up before it reports that, and all waiting flights go on.
    @Test func aStoreThatIsLostIsWaitedForByNobody() {
        let counter = Counter()
        for flight in 1...3 as ClosedRange<UInt32> { _ = counter.look(flight, isWanted: flight != 2, at: 0) }
        _ = counter.said()
        counter.expire(at: 5)
        #expect(counter.said() == ["1: ask the group", "3: ask the group"])
        counter.tell(.lost("closed"), at: 6)
        #expect(
            counter.said() == ["hang up", "shared cache off: closed", "1: nothing", "2: ask the group", "3: nothing"])
        #expect(!counter.look(4, at: 7))
        counter.expire(at: 1006)
        #expect(counter.said() == ["dial"])
        counter.tell(.connected, at: 1010)
        #expect(counter.look(4, at: 1010))
        #expect(counter.said() == ["shared cache on", "read"])
        // Replies to earlier requests do not count for the present ones.
        counter.desk.begin(nil, at: counter.at(1011), &counter.actions)
        #expect(counter.said() == ["hang up", "4: ask the group"])
        #expect(counter.next == nil && !counter.desk.isOn)
    }

    @Test func deadlinesOfWhatIsAnsweredWakeNobodyAndDoNotPileUp() {
        let counter = Counter()
        let idle = counter.next
        for number in 0..<5000 {
            let flight = UInt32(number % 100 + 1)
            _ = counter.look(flight, at: 0)
            if case .shared(.read(let id, _))? = counter.actions.last {
                counter.tell(.found(id, counter.entry(age: 10)), at: 0)
            }
            counter.desk.ended(TableID(standalone: flight))
            counter.actions = []
        }
        #expect(counter.next == idle && counter.desk.counters.hits == 5000)
    }

    /// The clock of another daemon that was 60 s ahead is allowed for an hour; without `prefetchAt` an entry is due late.
    @Test func aClockThatIsAheadMakesEntriesOlder() {
        var clock = StoreClock()
        let (wall, start) = (UInt64(1_700_000_000), Tick(nanoseconds: 1_000_000_000_000))
        func worth(of stored: UInt64, after seconds: UInt64, prefetchAt: UInt32 = 0) -> StoreClock.Worth {
            clock.worth(
                SharedEntry(.noRecord, stored: wall + stored, lifetime: 100), isStaleCopy: false,
                SharedSettings(staleSeconds: 0, prefetchAt: prefetchAt), wall: wall + seconds,
                at: start.advanced(milliseconds: Int(seconds) * 1000))
        }
        #expect(worth(of: 0, after: 74) == .fresh(elapsed: 74, isDue: false))
        #expect(worth(of: 0, after: 75) == .fresh(elapsed: 75, isDue: true))
        #expect(worth(of: 0, after: 50, prefetchAt: 50) == .fresh(elapsed: 50, isDue: true))
        #expect(worth(of: 60, after: 0) == .ahead)
        #expect(worth(of: 0, after: 0) == .fresh(elapsed: 60, isDue: false))
        #expect(worth(of: 3599, after: 3599) == .fresh(elapsed: 60, isDue: false))
        #expect(worth(of: 3600, after: 3600) == .fresh(elapsed: 0, isDue: false))
    }
}
