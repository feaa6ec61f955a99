import DNSWire
import Testing

@testable import Counters

@Suite struct TallyTests {
    @Test("a duration falls into the bucket of the smallest bound it does not exceed")
    func buckets() {
        for bucket in 0..<Durations.bucketCount - 1 {
            let bound = Durations.upperBound(bucket)!
            #expect(Durations.bucket(bound) == bucket)
            #expect(Durations.bucket(bound + 1) == bucket + 1)
        }
        #expect(Durations.bucket(0) == 0)
        #expect(Durations.bucket(.max) == Durations.bucketCount - 1)
        #expect(Durations.upperBound(Durations.bucketCount - 1) == nil)
        // CoreDNS's bounds are among them.
        let bounds = (0..<20).compactMap { Durations.upperBound($0) }
        #expect(bounds.contains(250_000) && bounds.last == 8_192_000_000)
    }

    @Test("the bound that a share stays within")
    func shares() {
        var durations = Durations()
        #expect(durations.bound(ofShare: 0.5) == nil)
        for _ in 0..<99 { durations.add(10_000) }
        durations.add(3_000_000_000)
        #expect(durations.bound(ofShare: 0.5) == 15_625)
        #expect(durations.bound(ofShare: 0.99) == 15_625)
        #expect(durations.bound(ofShare: 1) == 4_096_000_000)
    }

    @Test("the sum of durations begins again at 0 past its range")
    func sums() {
        let tally = Tally(.udp)
        tally.took(1 << 63)
        let sum = Tally.Counts(of: [tally, tally]).durations
        #expect(sum.total == 2 && sum.nanoseconds == 0)
        var added = Durations()
        added.add(1 << 63)
        #expect(added + added == sum)
        added.add(1 << 63)
        #expect(added == sum)
    }

    @Test("every type and code has an index, and those that are named have their own")
    func indices() {
        #expect(QuestionKind.names.count == QuestionKind.count)
        for (index, name) in QuestionKind.names.dropLast().enumerated() {
            #expect(QuestionKind.index(RecordType(parsing: name)) == index, "\(name)")
        }
        let named = Set((0...UInt16.max).map { QuestionKind.index(RecordType(rawValue: $0)) })
        #expect(named == Set(0..<QuestionKind.count))
        #expect(QuestionKind.index(nil) == QuestionKind.count - 1)
        #expect(ResponseKind.name(ResponseKind.index(.badCookie)) == "BADCOOKIE")
        #expect(ResponseKind.index(ResponseCode(rawValue: 4095)) == ResponseKind.count - 1)
    }

    @Test("what was counted is what is read")
    func counting() {
        let tally = Tally(.udp)
        tally.asked(.a, fromIPv4: true)
        tally.asked(.a, fromIPv4: false)
        tally.asked(nil, fromIPv4: true)
        tally.answered(flags: 0x83)
        tally.answered(.badVers)
        tally.took(20_000, times: 3)
        for event in Counted.allCases { for _ in 0...event.rawValue { tally.count(event) } }
        let counts = Tally.Counts(of: [tally])
        #expect(counts.questions(fromIPv4: true)[0] == 1 && counts.questions(fromIPv4: false)[0] == 1)
        #expect(counts.questions(fromIPv4: true).last == 1 && counts.asked == 3)
        #expect(counts.responses[3] == 1 && counts.responses[16] == 1 && counts.responses[0] == 0)
        #expect(tally.answered == 2)
        #expect(counts.durations.total == 3 && counts.durations.counts[1] == 3)
        #expect(counts.durations.nanoseconds == 60_000)
        let twice = Tally.Counts(of: [tally, tally])
        for event in Counted.allCases {
            let count = UInt64(event.rawValue) + 1
            #expect(tally[event] == count && counts[event] == count && twice[event] == 2 * count, "\(event)")
        }
        for number in [5, 2, 0] {
            tally.set(.open, to: number)
            #expect(tally[.open] == UInt64(number))
        }
    }
}
