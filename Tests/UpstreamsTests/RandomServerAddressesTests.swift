import Base
import DNSWire
import TestSupport
import Testing

@testable import Forwarding
@testable import Upstreams

/// Random events about the addresses of servers, and the rules that always hold.
@Suite struct RandomServerAddressesTests {
    private static let names = (0..<3).map { Name("dns\($0).example")! }
    private static let listening = [Endpoint(.v4(0, 0, 0, 0), port: 853)]
    private static let own = [Endpoint(.v4(10, 0, 0, 1), port: 0)]

    private struct Course: ~Copyable {
        var chance: Chance
        var addresses = ServerAddresses(listening: listening)
        var now = Tick(nanoseconds: 5_000_000_000_000)
        /// The questions without an answer so far.
        var asked: [(name: Name, type: RecordType)] = []
        var waiting: Set<Name> = []
        var lookups = 0

        /// Random addresses; one in five leads back to this machine, or cannot be dialled.
        mutating func someAddresses(_ isIPv4: Bool) -> [IPAddress] {
            (0..<chance.below(12)).map { _ in
                let number = UInt64(chance.below(40))
                if chance.below(5) == 0 {
                    return [.v4(10, 0, 0, 1), .v4(0, 0, 0, 0), .v4(127, 0, 0, 1)][Int(number) % 3]
                }
                return isIPv4
                    ? IPAddress(v4: 0xC633_6400 + UInt32(number)) : IPAddress(v6: 0x2001_0DB8_0000_0000, number)
            }
        }

        mutating func answer(_ name: Name, _ type: RecordType) -> Answer {
            if chance.below(3) == 0 { return .failure(name, type: type, .servFail, extendedError: nil) }
            let addresses = someAddresses(type == .a).filter { $0.isIPv4 == (type == .a) }
            return .addresses(name, type: type, addresses, ttl: UInt32(chance.below(200_000)))
        }

        mutating func carryOut() {
            for action in exchange(&addresses.actions, with: []) {
                switch action {
                case .ask(let name):
                    asked += [(name, .aaaa), (name, .a)]
                    lookups += 1
                case .tell(let name): waiting.remove(name)
                case .remember, .report: break
                }
            }
            // A waiting name has a question under way.
            for name in waiting { #expect(asked.contains { $0.name == name }) }
            if asked.isEmpty { #expect(addresses.nextDeadline == nil) }
        }

        mutating func pass(_ milliseconds: Int) {
            let end = now.advanced(milliseconds: milliseconds)
            while let next = addresses.nextDeadline, next <= end {
                now = next
                addresses.expire(at: now)
                carryOut()
            }
            now = end
        }

        mutating func step() {
            let name = names[chance.below(3)]
            switch chance.below(10) {
            case 0...2:
                if let endpoints = addresses.want(name, port: 853, at: now) {
                    check(endpoints)
                } else {
                    waiting.insert(name)
                }
            case 3...6:
                guard !asked.isEmpty else { break }
                let (name, type) = asked.remove(at: chance.below(asked.count))
                let answer = answer(name, type)
                addresses.answered(name, type, answer, "no record", at: now)
                // The answer belongs to no question, or to a cancelled one.
                if !asked.contains(where: { $0.name == name }) {
                    addresses.answered(name, type, answer, "no record", at: now)
                }
            case 7: if let address = someAddresses(true).first { addresses.worked(name, address) }
            case 8: addresses.allFailed(name, at: now)
            default:
                switch chance.below(20) {
                case 0:
                    addresses.own = chance.below(2) == 0 ? own : []
                    addresses.forgetFailures(at: now)
                    asked = []
                case 1:
                    let kept = names.filter { _ in chance.below(4) > 0 }
                    addresses.keep(Dictionary(uniqueKeysWithValues: kept.map { ($0, [853]) }))
                default: break
                }
            }
            carryOut()
            pass(chance.below(4) == 0 ? chance.below(100_000) : chance.below(300))
            for name in names { check(addresses.endpoints(of: name, port: 853)) }
        }

        private func check(_ endpoints: ServerEndpoints) {
            guard case .known(let endpoints) = endpoints else { return }
            #expect((1...8).contains(endpoints.count) && Set(endpoints).count == endpoints.count)
        }
    }

    @Test func inEveryCourseOfEventsWhoWaitsIsToldAndTheLimitsHold() {
        var course = Course(chance: .announced("addresses of servers"))
        for _ in 0..<4000 { course.step() }
        #expect(course.lookups > 300)
    }
}
