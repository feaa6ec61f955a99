import Base
import Configuration
import DNSWire
import Foundation
import Testing

@testable import Forwarding
@testable import Upstreams

@Suite struct ReportLineTests {
    private func settings(_ credential: Credential, appId: String = "") -> Settings.Group {
        var settings = Settings.Group(credential: credential)
        settings.appId = appId
        return settings
    }

    private let server = Server(Endpoint(.v4(119, 29, 29, 98), port: 80), .account)

    private func lookup(_ failure: Failure?) -> AbnormalLookup {
        AbnormalLookup(
            names: [Name("a.example")!, Name("b.example")!], families: .both, server: server, failure: failure,
            spend: 1234,
            fellBack: true)
    }

    @Test func theWholeLine() {
        let line = ReportLine(settings(.aes(id: 12345, key: Secret(Array("Swift-HTTPDNS-16".utf8))), appId: "home"))
        #expect(
            line.text(lookup(Failure(.timedOut, "no answer within 2000 ms")), at: 1_744_702_568_123)
                == #"{"eventName":"HDNSGetHostByName","eventTime":1744702568123,"dnsId":12345,"appId":"home","#
                + #""encryptType":"AesHttp","dnsIp":"119.29.29.98","req_dn":"a.example,b.example","req_type":"addrs","#
                + #""req_timeout":2000,"spend":1234,"errorCode":2,"statusCode":0,"isCache":0,"count":1,"fellBack":true,"#
                + #""error":"no answer within 2000 ms"}"#)
    }

    @Test func itIsJSONAndKeepsSecrets() throws {
        let hostile = "quote \" backslash \\ newline \n tab \t null \0 escape \u{1B} delete \u{7F} é 移动 😀"
        for (credential, kind) in [
            (.https(token: Secret(Array("678905432".utf8))), "Https"),
            (.aes(id: 1, key: Secret(Array("Swift-HTTPDNS-16".utf8))), "AesHttp"),
            (.des(id: 1, key: Secret(Array("Swift!01".utf8))), "DesHttp"),
        ] as [(Credential, String)] {
            let line = ReportLine(settings(credential, appId: hostile))
            let text = line.text(lookup(Failure(.badAnswer, hostile, statusCode: 500)), at: 1)
            #expect(!text.contains { $0.isNewline || $0.asciiValue.map { $0 < 0x20 } ?? false })
            for secret in ["678905432", "Swift"] { #expect(!text.contains(secret)) }
            let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            #expect(object["appId"] as? String == hostile)
            #expect(object["error"] as? String == hostile)
            #expect(object["encryptType"] as? String == kind)
            #expect(object["statusCode"] as? Int == 500)
            #expect(object["errorCode"] as? Int == 3)
            #expect((object["dnsId"] == nil) == (kind == "Https"))
        }
    }

    @Test func whatIsNotKnown() throws {
        let line = ReportLine(settings(.des(id: 1, key: Secret(Array("Swift!01".utf8)))))
        var abnormal = lookup(nil)
        abnormal.families = .ipv6
        abnormal.server = nil
        let text = line.text(abnormal, at: 1)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        #expect(object["dnsIp"] as? String == "")
        #expect(object["req_type"] as? String == "aaaa")
        #expect(object["errorCode"] as? Int == 1)
    }

    @Test func errorCodes() throws {
        let line = ReportLine(settings(.des(id: 1, key: Secret(Array("Swift!01".utf8)))))
        for (kind, code) in [
            (.timedOut, 2), (.badAnswer, 3), (.unreachable, 1), (.untrusted, 1), (.unauthorized, 1), (.tooOften, 1),
        ] as [(Failure.Kind, Int)] {
            #expect(line.text(lookup(Failure(kind, "x")), at: 1).contains("\"errorCode\":\(code),"))
        }
    }
}

@Suite struct ReportQueueTests {
    private static let start = Tick(nanoseconds: 7_000_000_000)
    private func at(_ milliseconds: Int) -> Tick { Self.start.advanced(milliseconds: milliseconds) }
    private func text(_ batch: [UInt8]?) -> String? { batch.map { String(decoding: $0, as: UTF8.self) } }

    @Test func reportsGatherAndGoOutTogether() {
        var queue = ReportQueue()
        #expect(queue.nextDeadline == nil)
        queue.add(Array("1".utf8), at: at(0))
        queue.add(Array("2".utf8), at: at(3000))
        #expect(queue.nextDeadline == at(5000))
        #expect(queue.nextBatch(at: at(4999)) == nil)
        #expect(text(queue.nextBatch(at: at(5000))) == "1\n2\n")
        #expect(queue.isSending)
        #expect(queue.nextDeadline == at(10_000))
        // Only one batch is sent at a time.
        queue.add(Array("3".utf8), at: at(5001))
        #expect(queue.nextBatch(at: at(20_000)) == nil)
        queue.settle(.accepted, at: at(6000))
        #expect(queue.nextDeadline == at(11_000))
        #expect(text(queue.nextBatch(at: at(11_000))) == "3\n")
        queue.settle(.accepted, at: at(11_001))
        #expect(queue.nextDeadline == nil && queue.dropped == 0 && queue.failures == 0)
    }

    @Test func aFullBatchGoesOutAtOnceAndNoLargerThanItMay() {
        var queue = ReportQueue()
        let report = [UInt8](repeating: 0x78, count: 999)
        for _ in 0..<100 { queue.add(report, at: at(0)) }
        #expect(queue.nextDeadline == at(0))
        #expect(queue.nextBatch(at: at(0))?.count == 49_000)
        queue.settle(.accepted, at: at(1))
        #expect(queue.nextBatch(at: at(1))?.count == 49_000)
        queue.settle(.accepted, at: at(2))
        #expect(queue.nextBatch(at: at(2)) == nil)
        #expect(queue.nextBatch(at: at(5002))?.count == 2000)
        // A single report may be longer.
        queue.settle(.accepted, at: at(6000))
        queue.add([UInt8](repeating: 0x78, count: 100_000), at: at(6000))
        #expect(queue.nextBatch(at: at(6000))?.count == 100_001)
    }

    @Test func whatFailsIsSentAgainInOrderAfterADoublingPause() {
        var queue = ReportQueue()
        queue.add(Array("1".utf8), at: at(0))
        var now = 5000
        for pause in [5000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000] {
            #expect(text(queue.nextBatch(at: at(now))) == "1\n")
            queue.settle(.failed, at: at(now))
            now += pause
            #expect(queue.nextDeadline == at(now))
        }
        queue.add(Array("2".utf8), at: at(now - 1))
        #expect(queue.nextDeadline == at(now))
        #expect(text(queue.nextBatch(at: at(now))) == "1\n2\n")
        #expect(queue.failures == 8)
        queue.settle(.accepted, at: at(now))
        #expect(queue.failures == 0)
        queue.add(Array("3".utf8), at: at(now))
        #expect(queue.nextDeadline == at(now + 5000))
    }

    @Test func whatIsRefusedIsNotSentAgain() {
        var queue = ReportQueue()
        queue.add(Array("1".utf8), at: at(0))
        queue.add(Array("2".utf8), at: at(0))
        _ = queue.nextBatch(at: at(5000))
        queue.settle(.refused, at: at(5000))
        #expect(queue.dropped == 2 && queue.failures == 1 && queue.nextDeadline == nil)
        queue.add(Array("3".utf8), at: at(5001))
        #expect(queue.nextDeadline == at(10_001))
        #expect(text(queue.nextBatch(at: at(10_001))) == "3\n")
    }

    @Test func theOldestMakeRoomAndAreCounted() {
        var queue = ReportQueue()
        let fits = ReportQueue.limit / 1000
        func report(_ number: Int) -> [UInt8] {
            Array("\(number)".utf8) + [UInt8](repeating: 0x20, count: 999 - "\(number)".utf8.count)
        }
        for number in 0..<fits + 10 { queue.add(report(number), at: at(0)) }
        #expect(queue.dropped == 10)
        #expect(text(queue.nextBatch(at: at(0)))?.hasPrefix("10 ") == true)
        // While a batch is under way, more reports come than fit beside it.
        for number in 0..<fits { queue.add(report(number), at: at(0)) }
        queue.settle(.failed, at: at(1))
        #expect(queue.dropped == UInt64(10 + fits))
        #expect(text(queue.nextBatch(at: at(5001)))?.hasPrefix("0 ") == true)
    }

    @Test func theLogTakesSoManyASecond() {
        var rate = LogRate()
        func allowed(_ milliseconds: Int, _ count: Int) -> Int {
            (0..<count).reduce(0) { sum, _ in sum + (rate.allows(at: at(milliseconds)) ? 1 : 0) }
        }
        #expect(allowed(0, 100) == 10)
        #expect(allowed(999, 1) == 0)
        #expect(allowed(1000, 1) == 1)
        #expect(rate.takeUnreported() == 91)
        #expect(rate.takeUnreported() == 0)
    }
}
