import Foundation
import Testing

@testable import Forwarding

/// The page of scenarios describes their language: each word of its tables is in the code, and the other way round.
@Suite struct LanguageTests {
    private static let page = URL(filePath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Scenarios/README.md")

    /// The words in the first column of a section's table.
    private func words(of section: String) throws -> [String] {
        let text = try String(contentsOf: Self.page, encoding: .utf8)
        let parts = text.components(separatedBy: "\n## ")
        let part = try #require(parts.first { $0.hasPrefix("\(section)\n") })
        return part.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { row in
            String(row.dropFirst(3).prefix { $0 != "`" })
        }
    }

    private func first(_ lines: [String]) -> [String] { lines.map { String($0.prefix { $0 != " " }) } }

    @Test func settings() throws {
        #expect(try first(words(of: "Settings")).sorted() == ScenarioRunner.Setting.allCases.map(\.rawValue).sorted())
    }

    @Test func keys() throws {
        #expect(try words(of: "Keys").sorted() == ScenarioSettings.Key.allCases.map(\.rawValue).sorted())
    }

    @Test func groups() throws {
        #expect(try words(of: "Groups").sorted() == NamedGroup.Key.allCases.map(\.rawValue).sorted())
        let text = try String(contentsOf: Self.page, encoding: .utf8)
        for word in GroupID.words { #expect(text.contains("`\(word)`")) }
        for word in StepEnds.words.keys { #expect(text.contains("`\(word)`")) }
    }

    @Test func subjects() throws {
        #expect(try words(of: "Subjects").sorted() == ScenarioRunner.Subject.allCases.map(\.rawValue).sorted())
    }

    @Test func failures() throws {
        #expect(try words(of: "Failures").sorted() == Failure.Kind.words.values.sorted())
    }

    @Test func expectations() throws {
        #expect(try words(of: "Expectations").sorted() == ScenarioRunner.Said.allCases.map(\.rawValue).sorted())
    }
}
