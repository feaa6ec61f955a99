import Base
import DNSCache
import DNSWire
import Foundation
import TestSupport
import Testing

@testable import Forwarding

/// The questions of people on one day, and their cost: a name is looked up for its first question and for the first one
/// after the end of its answer, and never else.
@Suite struct ReplayTests {
    private static let (questions, nameCount, ttl, batch) = (10_000, 500, 60, 8)
    /// The milliseconds that HTTPDNS takes.
    private static let roundTrip = 30

    /// A question of the replay and its time in milliseconds; questions of one moment come in one turn of the loop.
    private struct Asked {
        var at: Int
        var name: Int
        var type: RecordType
    }

    /// Zipf's law: the frequency of the n-th name is proportional to 1/n.
    private static func replay(seed: UInt64) -> [Asked] {
        var chance = Chance(seed: seed)
        var upTo: [Double] = []
        for rank in 1...nameCount { upTo.append((upTo.last ?? 0) + 1 / Double(rank)) }
        var at = 0
        return (0..<questions).map { _ in
            // Half of the questions come together with the one before, as those of a page do; 0.1 s between the others.
            if chance.below(2) == 0 { at += chance.below(200) }
            let point = Double(chance.below(1 << 30)) / Double(1 << 30) * upTo[nameCount - 1]
            return Asked(
                at: at, name: upTo.firstIndex { point < $0 } ?? nameCount - 1,
                type: [.a, .aaaa][chance.below(2)])
        }
    }

    /// The expected cost, by a model without flights: a name's answer, both families at once, comes a round trip after
    /// its question and lasts for the TTL from that second.
    private static func expected(_ replay: [Asked]) -> (lookups: Int, requests: Int) {
        var comesAt = [Int?](repeating: nil, count: nameCount)
        var (lookups, requests) = (0, 0)
        var turn = 0
        for (number, asked) in replay.enumerated() {
            let isKnown = comesAt[asked.name].map { asked.at < $0 || asked.at / 1000 - $0 / 1000 < ttl } ?? false
            if !isKnown {
                comesAt[asked.name] = asked.at + roundTrip
                lookups += 1
                turn += 1
            }
            let isLast = number + 1 == replay.count || replay[number + 1].at > asked.at
            if isLast {
                requests += (turn + batch - 1) / batch
                turn = 0
            }
        }
        return (lookups, requests)
    }

    /// The forwarder behind its cache, with a service that always answers.
    private struct House: ~Copyable {
        let names = (0..<nameCount).map { Name("host\($0).example.com")! }
        let cache = DNSCache(bytes: 8 << 20, staleSeconds: 86400, seed: (1, 2))
        var forwarder: Forwarder
        var underWay: [(at: Int, request: QueryID, names: [Name])] = []
        var answered = 0
        var worstWait = 0
        var askedAt: [Int: Int] = [:]

        init() {
            var upstreams = TestUpstreams()
            upstreams.batch = batch
            upstreams.hedgeAfter = 1000
            upstreams.service = .scenario(2, list: 0)
            forwarder = upstreams.forwarder(cache)
        }

        /// The start is a whole second, so that the model's seconds are the cache's.
        static func tick(_ milliseconds: Int) -> Tick {
            Tick(nanoseconds: 1_000_000_000_000).advanced(milliseconds: milliseconds)
        }

        mutating func ask(_ asked: Asked, client: Int) {
            let now = Self.tick(asked.at)
            let query = Query.message(
                id: 1, names[asked.name], type: asked.type, dnssecOK: false, checkingDisabled: false)
            guard case .question(let question) = Question.read(query.span) else { return }
            var reply = [UInt8](repeating: 0, count: 512)
            var out = reply.mutableSpan
            askedAt[client] = asked.at
            if case .hit = cache.answer(
                question, cache.key(question, query: query.span), query: query.span, at: now.seconds, limit: 512,
                into: &out)
            {
                answered += 1
            } else {
                forwarder.receive(
                    names[asked.name], asked.type, for: Audience(of: question), from: client, at: now)
            }
        }

        mutating func endTurn(_ at: Int) {
            forwarder.endTurn(at: Self.tick(at))
            for action in forwarder.takeActions() {
                switch action {
                case .ask(let request, _, .addresses(let names, _)): underWay.append((at + roundTrip, request, names))
                case .reply(let clients, _, _, _, way: _):
                    answered += clients.count
                    for client in clients { worstWait = max(worstWait, at - askedAt[client]!) }
                default: Issue.record("\(action)")
                }
            }
        }

        mutating func advance(to at: Int) {
            while let next = underWay.first, next.at <= at {
                underWay.removeFirst()
                forwarder.expire(at: Self.tick(next.at))
                let all = next.names.map {
                    NameAddresses(
                        name: $0, ipv4: .addresses([.v4(192, 0, 2, 1)], ttl: UInt32(ttl)),
                        ipv6: .addresses([IPAddress("2001:db8::1")!], ttl: UInt32(ttl)))
                }
                forwarder.settle(next.request, .addresses(all), at: Self.tick(next.at))
                endTurn(next.at)
            }
            forwarder.expire(at: Self.tick(at))
        }
    }

    @Test(arguments: [UInt64(1), 2, 3]) func noLookupMoreThanFlightsRequire(seed: UInt64) {
        let replay = Self.replay(seed: seed)
        let expected = Self.expected(replay)
        var house = House()
        for (client, asked) in replay.enumerated() {
            if client > 0, asked.at > replay[client - 1].at { house.endTurn(replay[client - 1].at) }
            house.advance(to: asked.at)
            house.ask(asked, client: client)
        }
        let end = replay.last!.at
        house.endTurn(end)
        house.advance(to: end + 1000)
        let (counters, answered, worstWait) = (house.forwarder.counters, house.answered, house.worstWait)
        let asked = house.forwarder.overview(of: .httpdns).counters
        print(
            "seed \(seed): \(Self.questions) questions in \(end / 1000) s cost \(asked.queries) requests for "
                + "\(asked.names) names; \(counters.flights) flights, \(counters.joined) joined")
        #expect(answered == Self.questions)
        #expect(asked.names == UInt64(expected.lookups))
        #expect(asked.queries == UInt64(expected.requests))
        #expect(house.forwarder.overview(of: .fallback).counters.queries == 0)
        #expect(worstWait == Self.roundTrip)
    }
}
