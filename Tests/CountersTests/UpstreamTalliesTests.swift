import Base
import DNSWire
import Testing

@testable import Counters

@Suite struct UpstreamTalliesTests {
    private func endpoint(_ number: UInt32) -> Endpoint { Endpoint(IPAddress(v4: number), port: 443) }

    @Test func aServerIsCountedInOnePlace() {
        let tallies = UpstreamTallies()
        let server = endpoint(1)
        tallies.server(server).connected(isSecure: true, isReused: false)
        tallies.server(server).connected(isSecure: true, isReused: true)
        tallies.server(server).connected(isSecure: true, isReused: true)
        tallies.server(server).answered(.noError, nanoseconds: 1_000_000)
        tallies.server(server).answered(.servFail, nanoseconds: 3_000_000)
        #expect(tallies.connections[server]?.fresh == 1 && tallies.connections[server]?.reused == 2)
        #expect(tallies.durations.count == 2)
        #expect(tallies.durations.values.allSatisfy { $0.total == 1 })
    }

    /// Two rows with the same labels make a page of metrics unreadable as a whole.
    @Test func codesWithoutANameAreOneRow() {
        let tallies = UpstreamTallies()
        for code in [UInt16(24), 25, 4095] {
            tallies.server(endpoint(1)).answered(ResponseCode(rawValue: code), nanoseconds: 1)
        }
        #expect(tallies.durations.map { ResponseKind.name($0.key.kind) } == ["other"])
        #expect(tallies.durations.values.first?.total == 3)
    }

    @Test func serversPastTheBoundAreNotCounted() {
        let tallies = UpstreamTallies()
        for number in 0..<1000 { tallies.server(endpoint(UInt32(number))).connected(isSecure: false, isReused: false) }
        #expect(tallies.connections.count == 128)
        tallies.server(endpoint(5)).connected(isSecure: false, isReused: true)
        #expect(tallies.connections[endpoint(5)]?.reused == 1)
        #expect(tallies.connections[endpoint(999)] == nil)
    }
}
