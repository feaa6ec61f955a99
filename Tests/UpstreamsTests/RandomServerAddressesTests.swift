import Base
import DNSWire
import TestSupport
import Testing

@testable import Forwarding
@testable import Upstreams

/// Random courses of events about the addresses of servers, and what holds in all of them.
@Suite struct RandomServerAddressesTests {
    private static let names = (0..<3).map { Name("dns\($0).example")! }
    private static let servers = (0..<5).map { Server(Endpoint(.v4(192, 0, 2, UInt8($0)), port: 53)) }
    private static let listening = [Endpoint(.v4(0, 0, 0, 0), port: 853)]
    private static let own = [Endpoint(.v4(10, 0, 0, 1), port: 0)]

    private struct Course {
        var chance: Chance
        var addresses = ServerAddresses(listening: listening)
        var now = Tick(nanoseconds: 5_000_000_000_000)
        var queries: [QueryID: Ask] = [:]
        /// Since when somebody waits.
        var waiting: [Name: Tick] = [:]
        var put: Set<QueryID> = []
        var lookups = 0

        /// Random addresses; one in five leads back here, or nowhere.
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

        mutating func outcome(_ ask: Ask) -> Outcome {
            if chance.below(3) == 0 { return .failed(Failure(.unreachable, "refused")) }
            let ttl = UInt32(chance.below(200_000))
            switch ask {
            case .addresses(let names, _):
                let ipv4 = FamilyAddresses.addresses(someAddresses(true), ttl: ttl)
                return .addresses([NameAddresses(name: names[0], ipv4: ipv4, ipv6: .noRecord)])
            case .message(let question):
                let addresses = someAddresses(question.type == .a).filter { $0.isIPv4 == (question.type == .a) }
                return .answer(.addresses(question.name, type: question.type, addresses, ttl: ttl))
            }
        }

        mutating func carryOut() {
            for action in addresses.actions {
                switch action {
                case .ask(let id, _, let ask):
                    #expect(put.insert(id).inserted)
                    queries[id] = ask
                    lookups += 1
                case .askAgain(let id): #expect(queries[id] != nil)
                case .cancel(let id): #expect(queries.removeValue(forKey: id) != nil)
                case .tell(let name): waiting[name] = nil
                case .remember, .report: break
                }
            }
            addresses.actions = []
            // Whoever waits, waits for something that is under way.
            #expect(waiting.isEmpty || !queries.isEmpty)
            #expect((addresses.nextDeadline == nil) == queries.isEmpty)
        }

        mutating func pass(_ milliseconds: Int) {
            let end = now.advanced(milliseconds: milliseconds)
            while let next = addresses.nextDeadline, next <= end {
                now = next
                addresses.expire(at: now)
                carryOut()
                for since in waiting.values { #expect(now.milliseconds(since: since) < 4000) }
            }
            now = end
        }

        mutating func step() {
            let name = names[chance.below(3)]
            switch chance.below(10) {
            case 0...2:
                if let endpoints = addresses.want(name, port: 853, at: now) {
                    check(endpoints)
                } else if waiting[name] == nil {
                    waiting[name] = now
                }
            case 3...6:
                guard let (id, ask) = queries.min(by: { "\($0.key)" < "\($1.key)" }) else { break }
                queries[id] = nil
                let outcome = outcome(ask)
                addresses.settle(id, outcome, at: now)
                // What nobody asked for, or not any more.
                addresses.settle(id, outcome, at: now)
            case 7: if let address = someAddresses(true).first { addresses.worked(name, address) }
            case 8: addresses.allFailed(name, at: now)
            default:
                switch chance.below(20) {
                case 0: addresses.networkChanged(own: chance.below(2) == 0 ? own : [], at: now)
                case 1: addresses.keep(Set(names.filter { _ in chance.below(4) > 0 }))
                case 2:
                    let some = servers.prefix(chance.below(5))
                    addresses.use(some.map { chance.below(3) == 0 ? .account($0) : .resolver($0) }, at: now)
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
        course.addresses.use(Self.servers.prefix(2).map { .resolver($0) }, at: course.now)
        for _ in 0..<4000 { course.step() }
        #expect(course.lookups > 500)
    }
}
