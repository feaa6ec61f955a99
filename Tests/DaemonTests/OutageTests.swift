import Base
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Forwarding

@Suite struct OutageTests {
    private var outage = Outage()

    private func server(failures: Int, answers: UInt64 = 0) -> ServerHealth {
        var health = ServerHealth()
        (health.consecutiveFailures, health.answers) = (failures, answers)
        return health
    }

    @Test mutating func allMustHaveFailedSeveralTimesAndOneAnswerEndsIt() {
        #expect(outage.update([server(failures: 2), server(failures: 9)]) == nil)
        #expect(outage.update([server(failures: 3, answers: 7), server(failures: 9)]) == true)
        #expect(outage.update([server(failures: 4, answers: 7), server(failures: 9)]) == nil)
        #expect(outage.update([server(failures: 4, answers: 7), server(failures: 0, answers: 1)]) == false)
        #expect(outage.update([server(failures: 4, answers: 7), server(failures: 0, answers: 1)]) == nil)
    }

    @Test mutating func otherServersAreNoAnswer() {
        _ = outage.update([server(failures: 3)])
        #expect(outage.update([server(failures: 0), server(failures: 0)]) == nil)
        #expect(outage.update([server(failures: 0), server(failures: 0, answers: 1)]) == false)
    }

    @Test mutating func withoutAServiceThereIsNone() {
        #expect(outage.update([]) == nil)
        _ = outage.update([server(failures: 3)])
        #expect(outage.update([]) == nil && !outage.isOut)
    }
}

@Suite struct OccasionTests {
    private let server = Server(Endpoint("192.0.2.2:443")!, .account)

    @Test func aFailureIsToldApartByWhoMustMendIt() {
        for (failure, event) in [
            (Failure(.untrusted, "certificate expired"), "certificate-refused"),
            (Failure(.unauthorized, "x", statusCode: 401), "account-refused"),
            (Failure(.badAnswer, "x", statusCode: 403), "account-refused"),
            (Failure(.badAnswer, "x", statusCode: 503), "service-fails"), (Failure(.timedOut, "x"), "service-fails"),
        ] {
            let lines = LogLines()
            lines.report.event(.failing(.httpdns, server, failure))
            #expect(lines.all == ["warning HTTPDNS 192.0.2.2:443 fails: \(failure.detail)"])
            #expect(
                lines.metadata == [["event": "\(event)", "server": "192.0.2.2:443", "reason": "\(failure.detail)"]])
        }
    }
}
