import Testing

/// Tests of the runner: a wrong scenario must fail, and the failure must name the line.
@Suite struct ScenarioRunnerTests {
    private static let right = """
        # A scenario that is right in every line of it.
        0s client 1 asks www.example.com A
        0s expect ask httpdns www.example.com
        0.9s httpdns answers 1.2.3.4 ttl 60
        0.9s expect client 1 NOERROR 1.2.3.4 ttl 60
        """

    private func fault(_ text: String) -> String? {
        do {
            try ScenarioRunner(file: "x.scenario", text: text).run()
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test func whatIsRightPasses() {
        #expect(fault(Self.right) == nil)
    }

    @Test(arguments: [
        // A changed line, the line that must fail, and the words of the failure.
        ("NOERROR 1.2.3.4 ttl 60", "NOERROR 1.2.3.5 ttl 60", 5, "client 1 NOERROR 1.2.3.4 ttl 60"),
        ("NOERROR 1.2.3.4 ttl 60", "NOERROR 1.2.3.4 ttl 59", 5, "expected"),
        ("NOERROR 1.2.3.4 ttl 60", "SERVFAIL", 5, "expected"),
        ("expect client 1", "expect client 2", 5, "expected"),
        ("0.9s expect client 1 NOERROR 1.2.3.4 ttl 60", "", 5, "not expected, at 0.9 s"),
        ("0.9s expect client 1", "0.95s expect client 1", 5, "not expected, at 0.9 s"),
        ("0s expect ask httpdns www.example.com", "", 4, "ask httpdns www.example.com"),
        ("expect ask httpdns www", "expect ask httpdns 2 www", 3, "expected"),
        ("0s expect ask httpdns www.example.com", "0s expect nothing", 3, "not expected, at 0.0 s"),
        ("0.9s httpdns answers", "2.5s httpdns answers", 4, "again httpdns www.example.com"),
        ("0.9s httpdns answers", "0.9s httpdns 2 answers", 4, "no such query"),
        ("0.9s httpdns answers", "0.9s httpdns answers late", 4, "no such query"),
        ("0.9s httpdns answers", "0.9s fallback answers", 4, "no such query"),
        ("0.9s httpdns answers 1.2.3.4 ttl 60", "0.9s httpdns answers 1.2.3.4", 4, "not understood"),
        ("0.9s httpdns answers 1.2.3.4 ttl 60", "0.9s httpdns fails somehow", 4, "not understood"),
        ("0.9s httpdns answers 1.2.3.4 ttl 60", "0.9s httpdns fails too often retry soon", 4, "not understood"),
        ("0.9s httpdns", "0.9s httpsdns", 4, "not understood"),
        ("0s client 1", "0s families become both\n0s client 1", 2, "not understood"),
        ("0s client 1", "0s servers of httpdns become ipv4\n0s client 1", 2, "not understood"),
        ("0s client 1", "0s network goes\n0s client 1", 2, "not understood"),
        ("0.9s httpdns answers", "1 httpdns answers", 4, "no time"),
        ("0.9s expect", "0.5s expect", 5, "backwards"),
        ("asks www.example.com A", "asks www.example.com", 2, "not understood"),
        ("asks www.example.com A", "asks www.example.com A please", 2, "one thing too many"),
        ("asks www.example.com A", "asks www{2-1}.example.com A", 2, "no range"),
        ("0s client 1 asks", "0s each 5 client 1 asks", 2, "no range"),
        ("# A scenario that is right in every line of it.", "", 1, "says the behaviour"),
        ("0s client 1", "set noSuchKey 1\n0s client 1", 2, "no such setting"),
    ])
    func whatIsWrongFails(_ change: (String, String, Int, String)) throws {
        let text = Self.right.replacing(change.0, with: change.1)
        try #require(text != Self.right)
        let fault = fault(text)
        #expect(fault?.hasPrefix("x.scenario:\(change.2): ") == true, "\(fault ?? "passed")")
        #expect(fault?.contains(change.3) == true, "\(fault ?? "passed")")
    }
}
