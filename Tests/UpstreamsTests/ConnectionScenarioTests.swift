import Foundation
import TestSupport
import Testing

@testable import Upstreams

/// Each file of Scenarios tests one behaviour of the connections to a server.
@Suite struct ConnectionScenarioTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appendingPathComponent("Scenarios")

    static let files: [String] = {
        let all = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
        return (all ?? []).filter { $0.hasSuffix(".scenario") }.sorted()
    }()

    @Test(arguments: files) func scenario(_ file: String) throws {
        let text = try String(contentsOf: Self.folder.appendingPathComponent(file), encoding: .utf8)
        try ConnectionScenario(file: file, text: text).run()
    }

    @Test func theScenariosAreThere() { #expect(Self.files.count > 30) }

    // MARK: The language

    /// The words in the first column of a section's table.
    private func words(of section: String) throws -> [String] {
        let text = try String(contentsOf: Self.folder.appendingPathComponent("README.md"), encoding: .utf8)
        let part = try #require(text.components(separatedBy: "\n## ").first { $0.hasPrefix("\(section)\n") })
        return part.split(separator: "\n").filter { $0.hasPrefix("| `") }
            .map { row in String(row.dropFirst(3).prefix { $0 != "`" }) }
    }

    @Test func theLanguageIsWhatItsPageSays() throws {
        #expect(try words(of: "Kinds") == ConnectionScenario.Kind.allCases.map(\.rawValue))
        #expect(try words(of: "Keys") == ConnectionScenario.Key.allCases.map(\.rawValue))
        #expect(try words(of: "Subjects") == ConnectionScenario.Subject.allCases.map(\.rawValue))
        #expect(try words(of: "Connections") == ConnectionScenario.Verb.allCases.map(\.rawValue))
        #expect(try words(of: "Expectations") == ConnectionScenario.Said.allCases.map(\.rawValue))
    }

    // MARK: The runner

    private static let right = """
        # A scenario that is right in every line of it.
        0s ask a
        0s expect dial 1
        0s expect send a on 1
        0.1s connection 1 is made
        0.2s connection 1 answers a
        0.2s expect answered a
        25.2s expect close 1
        """

    private func fault(_ text: String) -> String? {
        do {
            try ConnectionScenario(file: "x.scenario", text: text).run()
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test func whatIsRightPasses() { #expect(fault(Self.right) == nil) }

    /// A changed line, the line that must fail, and the words of the failure.
    @Test(arguments: [
        ("send a on 1", "send a on 2", 4, "but there is\n    send a on 1"),
        ("send a on 1", "send b on 1", 4, "not understood"),
        ("0s expect dial 1\n", "", 4, "not expected, at 0.0 s"), ("25.2s", "25.3s", 8, "not expected, at 25.2 s"),
        ("answers a", "answers b", 6, "b was not asked"),
        ("connection 1 is", "connection 2 is", 5, "no such connection"),
        ("is made", "is there", 5, "not understood"), ("0.1s", "1", 5, "no time"), ("0.1s", "0.3s", 6, "backwards"),
        ("0s ask a", "0s ask a{2-1}", 2, "no range"), ("0s ask a", "set noSuchKey 1\n0s ask a", 2, "no such setting"),
        ("# A scenario that is right in every line of it.", "", 1, "says the behaviour"),
    ])
    func whatIsWrongFails(_ change: (String, String, Int, String)) throws {
        let text = Self.right.replacing(change.0, with: change.1, maxReplacements: 1)
        try #require(text != Self.right)
        let fault = fault(text)
        #expect(fault?.hasPrefix("x.scenario:\(change.2): ") == true, "\(fault ?? "passed")")
        #expect(fault?.contains(change.3) == true, "\(fault ?? "passed")")
    }
}
