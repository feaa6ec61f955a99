import Base
import DNSWire
import Testing

@testable import Counters

@Suite struct UpstreamTalliesTests {
    private func server(_ number: UInt32) -> Server { Server(Endpoint(IPAddress(v4: number), port: 443)) }

    @Test func aServerHasOneTally() {
        let tallies = UpstreamTallies()
        let first = server(1)
        tallies.server(first).connected(isReused: false)
        tallies.server(first).connected(isReused: true)
        tallies.server(first).connected(isReused: true)
        tallies.server(first).answered(.noError, nanoseconds: 1_000_000)
        tallies.server(first).answered(.servFail, nanoseconds: 3_000_000)
        let figures = tallies.figures[first]
        #expect(figures?.connections?.fresh == 1 && figures?.connections?.reused == 2)
        #expect(figures?.durations.mapValues(\.total) == [0: 1, 2: 1])
        #expect(figures?.isResumed == nil && figures?.certificateEnd == nil)
        tallies.server(first).secured(isResumed: true, certificateEnd: 5)
        tallies.server(first).secured(isResumed: false, certificateEnd: 7)
        let last = tallies.figures[first]
        #expect(last?.isResumed == false && last?.certificateEnd == 7)
    }

    /// Two rows with the same labels make a page of metrics unreadable as a whole.
    @Test func codesWithoutANameAreOneRow() {
        let tallies = UpstreamTallies()
        for code in [UInt16(24), 25, 4095] {
            tallies.server(server(1)).answered(ResponseCode(rawValue: code), nanoseconds: 1)
        }
        let durations = tallies.figures[server(1)]?.durations
        #expect(durations?.keys.map(ResponseKind.name) == ["other"])
        #expect(durations?.values.first?.total == 3)
    }

    @Test func serversPastTheBoundAreNotCounted() {
        let tallies = UpstreamTallies()
        for number in 0..<1000 { tallies.server(server(UInt32(number))).connected(isReused: false) }
        #expect(tallies.figures.count == 128)
        tallies.server(server(5)).connected(isReused: true)
        #expect(tallies.figures[server(5)]?.connections?.reused == 1)
        #expect(tallies.figures[server(999)] == nil)
    }

    @Test func aServerThatComesBackBeginsAtZero() {
        let tallies = UpstreamTallies()
        for number in [UInt32(1), 2] { tallies.server(server(number)).connected(isReused: false) }
        tallies.keep([server(2), server(3)])
        #expect(tallies.figures.keys.map(\.self) == [server(2)])
        #expect(tallies.figures[server(2)]?.connections?.fresh == 1)
        tallies.server(server(1)).connected(isReused: true)
        #expect(tallies.figures[server(1)]?.connections?.fresh == 0)
    }

    /// Against a sorted copy of the last hundred.
    @Test func theLatestAreThoseThatCount() {
        var latest = LatestDurations()
        #expect(latest.milliseconds(ofShare: 0.5) == nil)
        var given: [UInt64] = []
        for number in UInt64(1)...250 {
            // Every value below 251 once, in no order.
            let milliseconds = number * 97 % 251
            given.append(milliseconds)
            latest.add(milliseconds * 1_000_000)
            let last = given.suffix(100).sorted()
            for (share, rank) in [(0.5, (last.count + 1) / 2), (0.95, (last.count * 19 + 19) / 20), (1, last.count)] {
                #expect(latest.milliseconds(ofShare: share) == Double(last[rank - 1]))
            }
        }
    }
}
