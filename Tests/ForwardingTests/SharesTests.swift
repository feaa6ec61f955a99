import Base
import Testing

@testable import Forwarding

/// The books of who has how much.
@Suite struct SharesTests {
    private static let here = (1...3).map { Source(.v4(192, 0, 2, $0)) }
    /// Sources in one network on a link.
    private static let neighbours = (1...3).map { Source(IPAddress(v6: 0xFD00 << 48, $0)) }

    @Test func whoHasTheMostIsFoundAmongAllAndInANetwork() {
        var counts = SourceCounts<Int>()
        for (source, part) in zip(Self.here + Self.neighbours, [3, 9, 5, 2, 7, 4]) { counts.add(part, to: source) }
        #expect(counts.heaviest(of: nil) == Self.here[1])
        #expect(counts.heaviest(of: Self.neighbours[0].network) == Self.neighbours[1])
        #expect(counts.heaviest(of: 1) == nil)
    }

    @Test func whatIsPaidBackIsPaidForANetworkAsWell() {
        var counts = SourceCounts<Double>()
        for neighbour in Self.neighbours { counts.add(4, to: neighbour) }
        counts.scale(by: 0.5, least: 1)
        #expect(Self.neighbours.map { counts[$0] } == [2, 2, 2])
        #expect(Self.neighbours[0].network.map { counts[network: $0] } == 6 && counts.most == 6)
        // Of what is too little to count, nothing is left.
        counts.scale(by: 0.25, least: 1)
        #expect(counts.count == 0 && counts.most == 1.5)
    }
}
