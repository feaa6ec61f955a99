import Base
import DNSWire
import Testing

@testable import Counters

@Suite struct UpstreamTalliesTests {
    private func server(_ number: UInt32) -> Server { Server(Endpoint(IPAddress(v4: number), port: 443)) }

    @Test func aServerIsCountedInOnePlace() {
        let tallies = UpstreamTallies()
        let first = server(1)
        tallies.server(first).connected(isSecure: true, isReused: false)
        tallies.server(first).connected(isSecure: true, isReused: true)
        tallies.server(first).connected(isSecure: true, isReused: true)
        tallies.server(first).answered(.noError, nanoseconds: 1_000_000)
        tallies.server(first).answered(.servFail, nanoseconds: 3_000_000)
        #expect(tallies.connections[first]?.fresh == 1 && tallies.connections[first]?.reused == 2)
        #expect(tallies.durations.count == 2)
        #expect(tallies.durations.values.allSatisfy { $0.total == 1 })
    }

    /// Two rows with the same labels make a page of metrics unreadable as a whole.
    @Test func codesWithoutANameAreOneRow() {
        let tallies = UpstreamTallies()
        for code in [UInt16(24), 25, 4095] {
            tallies.server(server(1)).answered(ResponseCode(rawValue: code), nanoseconds: 1)
        }
        #expect(tallies.durations.map { ResponseKind.name($0.key.kind) } == ["other"])
        #expect(tallies.durations.values.first?.total == 3)
    }

    @Test func serversPastTheBoundAreNotCounted() {
        let tallies = UpstreamTallies()
        for number in 0..<1000 { tallies.server(server(UInt32(number))).connected(isSecure: false, isReused: false) }
        #expect(tallies.connections.count == 128)
        tallies.server(server(5)).connected(isSecure: false, isReused: true)
        #expect(tallies.connections[server(5)]?.reused == 1)
        #expect(tallies.connections[server(999)] == nil)
    }
}
