import Base
import Counters
import DNSCache
import DNSWire
import Testing

@testable import Control
@testable import Forwarding

@Suite struct HistoryTests {
    private let server = Server(Endpoint("192.0.2.53:53")!)
    private let other = Server(Endpoint("192.0.2.54:53")!)

    private func member(_ server: Server) -> Member { Member(group: .fallback, server: server) }

    @Test("as many steps as are kept, whatever the clock does")
    func steps() {
        var growth = Growth<UInt64>(most: 60)
        growth.pass(1, 10)
        #expect(growth.all(10) == [10, 0])
        growth.pass(3, 15)
        #expect(growth.all(17) == [10, 5, 0, 0, 2])
        growth.pass(10_000, 16)
        #expect(growth.all(16).count == 61 && growth.all(16).first == 1)
        // A count that began again.
        #expect(growth.all(3).last == 0)
    }

    @Test("a minute is over once, and those in which the machine slept as well")
    func time() {
        var history = History(at: 5)
        let minute = Steps.Width.minute.nanoseconds
        func isOver(_ now: UInt64) -> Bool { history.isOver(at: now) }
        #expect(!isOver(5 + minute - 1))
        #expect(isOver(5 + minute) && !isOver(5 + minute))
        _ = history.take(observation(asked: 10))
        #expect(asked(history, 12) == [10, 2])
        #expect(isOver(5 + 4 * minute + 1) && history.next == 5 + 5 * minute)
        _ = history.take(observation(asked: 15))
        #expect(asked(history, 15) == [10, 5, 0, 0, 0])
        // What was not asked for, since no minute is over, changes nothing.
        _ = history.take(observation(asked: 20))
        #expect(asked(history, 20) == [10, 5, 0, 0, 5])
        // A minute whose totals never came belongs to the next.
        #expect(isOver(5 + 5 * minute) && isOver(5 + 6 * minute))
        _ = history.take(observation(asked: 21))
        #expect(asked(history, 21) == [10, 5, 0, 0, 6, 0, 0])
        #expect(isOver(.max / 2))
        _ = history.take(observation(asked: 22))
        #expect(asked(history, 22).count == 61)
    }

    private func asked(_ history: History, _ total: UInt64) -> [UInt64] {
        history.hour(observation(asked: total)).minutes.map(\.asked)
    }

    private func observation(
        asked: UInt64 = 0, clear: UInt64 = 0, encrypted: UInt64 = 0, servers: [Server] = [], failures: UInt64 = 0,
        _ tallies: UpstreamTallies = UpstreamTallies()
    ) -> Observation {
        var observation = Observation(DNSCache(bytes: 1 << 20, seed: (1, 2)).statistics)
        let listener = Tally(.udp)
        for _ in 0..<asked { listener.asked(.a, fromIPv4: true) }
        observation.add([listener], Tally(.udp))
        (observation.counters.sentInClear, observation.counters.sentEncrypted) = (clear, encrypted)
        let states = servers.map { server in
            var health = ServerHealth()
            health.failures = failures
            return ServerState(server, health: health)
        }
        let group = UpstreamGroup(.fallback, servers, .messages, .lastThatAnswered, timeout: 1000)
        observation.groups = [GroupOverview(group, states)]
        observation.upstreams = [.fallback: tallies.figures]
        return observation
    }

    @Test("where questions went is said in shares that hide neither few nor the rest")
    func shares() {
        var history = History(at: 0)
        _ = history.isOver(at: Steps.Width.minute.nanoseconds)
        _ = history.take(observation(asked: 500, clear: 400, encrypted: 10))
        for minute in 2...62 {
            _ = history.isOver(at: UInt64(minute) * Steps.Width.minute.nanoseconds)
            _ = history.take(observation(asked: 1000, clear: 401, encrypted: 260))
        }
        // The first minute is an hour ago.
        let last = observation(asked: 1500, clear: 402, encrypted: 260)
        func words(_ minute: Hour.Questions...) -> String { Hour(minutes: minute).questions.words }
        let now = Overview(last, history.hour(last))
        #expect(now.hour.minutes.count == 61 && now.hour.questions.asked == 500 && now.hour.questions.clear == 1)
        #expect(now.hour.questions.words == "500 questions, under 1 % left in the clear, over 99 % stayed here")
        #expect(
            words(Hour.Questions(asked: 3, encrypted: 1, loopback: 0, clear: 2))
                == "3 questions, 67 % left in the clear, 33 % left encrypted")
        // Names that the daemon looks up by itself were sent, and asked by nobody.
        let own = Hour.Questions(asked: 0, encrypted: 4, loopback: 0, clear: 0)
        #expect(words(own) == "4 questions, 100 % left encrypted" && own.clearShare == 0)
        #expect(words() == "no question yet" && Hour(minutes: []).questions.clearShare == nil)
    }

    @Test("names of an account that leaves and comes back are counted once")
    func billed() {
        let shop = GroupID(2)
        func observed(_ names: UInt64, hasAccount: Bool = true) -> Observation {
            var observation = observation()
            let account = UpstreamGroup(shop, [], .addresses(namesPerRequest: 1), .lastThatAnswered, timeout: 1000)
            if hasAccount { observation.groups.append(GroupOverview(account, [])) }
            observation.namesSent = [shop: names]
            return observation
        }
        var history = History(at: 0)
        for (minute, hasAccount) in [(1, true), (2, false), (3, true)] as [(UInt64, Bool)] {
            _ = history.isOver(at: minute * Steps.Width.minute.nanoseconds)
            _ = history.take(observed(5, hasAccount: hasAccount))
        }
        for hasAccount in [true, false] {
            let last = observed(7, hasAccount: hasAccount)
            let overview = Overview(last, history.hour(last), history.past(last))
            #expect(overview.hour.minutes.map(\.billed) == [5, 0, 0, 2] && overview.hour.names == [shop: 7])
            #expect(overview.past.map { $0.steps.map(\.billed) } == [[7], [7]])
            let page = StatusPage(overview).html.text
            #expect(page.contains("<dt>names billed in the last hour, at most</dt><dd>7</dd>"))
        }
    }

    @Test("round trips and failures of each minute, of the servers there are")
    func roundTrips() {
        let tallies = UpstreamTallies()
        func answers(_ milliseconds: UInt64...) {
            for one in milliseconds { tallies.server(server).answered(.noError, nanoseconds: one * 1_000_000) }
        }
        var history = History(at: 0)
        answers(10, 30)
        _ = history.isOver(at: Steps.Width.minute.nanoseconds)
        _ = history.take(observation(servers: [server], tallies))
        _ = history.isOver(at: 2 * Steps.Width.minute.nanoseconds)
        _ = history.take(observation(servers: [server], failures: 3, tallies))
        answers(95)
        tallies.server(server).answered(.nxDomain, nanoseconds: 5_000_000)
        let last = observation(servers: [server], failures: 3, tallies)
        let view = Overview(last, history.hour(last)).groups[0].servers[0]
        let minutes = view.hour
        #expect(minutes.map(\.mean) == [20, nil, 50] && minutes.map(\.failures) == [0, 3, 0])
        #expect(view.roundTrips == "20 ms to 50 ms")
        // Forgotten with the server, and begun again with another.
        _ = history.isOver(at: 3 * Steps.Width.minute.nanoseconds)
        _ = history.take(observation(servers: [other]))
        #expect(history.hour(observation(servers: [other, server])).answers[member(server)]?.count == 1)
        // A thousand servers take no more room than there is.
        let many = (0..<1000).map { Server(Endpoint(IPAddress(v4: $0), port: 53)) }
        _ = history.isOver(at: 4 * Steps.Width.minute.nanoseconds)
        _ = history.take(observation(servers: many))
        let kept = history.hour(observation(servers: many)).answers.values.filter { $0.count > 1 }
        #expect(kept.count == History.maximumServers)
    }

    @Test("a server in two groups has figures of its own in each")
    func serverOfTwoGroups() {
        let (tallies, idle, office) = (UpstreamTallies(), UpstreamTallies(), GroupID(2))
        tallies.server(server).answered(.noError, nanoseconds: 20_000_000)
        func observed(failures: UInt64) -> Observation {
            var observation = observation(servers: [server], failures: failures, tallies)
            var group = UpstreamGroup(office, [server], .messages, .lastThatAnswered, timeout: 1000)
            group.name = "office"
            observation.groups.append(GroupOverview(group, [ServerState(server, health: ServerHealth())]))
            observation.upstreams[office] = idle.figures
            return observation
        }
        var history = History(at: 0)
        _ = history.isOver(at: Steps.Width.minute.nanoseconds)
        _ = history.take(observed(failures: 5))
        let last = observed(failures: 7)
        let overview = Overview(last, history.hour(last))
        let views = overview.groups.map { $0.servers[0] }
        #expect(views.map { $0.hour.map(\.failures) } == [[5, 2], [0, 0]])
        #expect(views.map { $0.hour.map(\.mean) } == [[20, nil], [nil, nil]])
        #expect(views.map { $0.figures.latest.milliseconds(ofShare: 0.5) } == [20, nil])
        #expect(views[1].text == "not asked yet")
        // Once for the picture, once below it.
        #expect(StatusPage(overview).html.text.matches(of: /7 failed \(red\)/).count == 2)
        let counts = overview.metrics.split(separator: "\n").filter {
            $0.hasPrefix("httpdnsd_server_request_duration_seconds_count")
        }
        #expect(counts.count == 1 && !counts[0].contains("office"), "\(counts)")
    }

    @Test("parts of a bar are each visible and fill it, also where most of them are small")
    func stack() throws {
        let bar = Bars.stack(
            Hour.Questions(asked: 1_000_002, encrypted: 0, loopback: 1, clear: 1).parts, label: "where questions went")
        let widths = bar.text.matches(of: /<rect class="[a-z]+" x="([0-9.]+)" width="([0-9.]+)"/).map {
            (left: Double($0.1)!, width: Double($0.2)!)
        }
        try #require(widths.count == 3)
        var end = 0.0
        for part in widths {
            #expect(abs(part.left - end) < 0.02 && part.width > 0.9)
            end = part.left + part.width
        }
        #expect(abs(end - 100) < 0.02)
    }
}
