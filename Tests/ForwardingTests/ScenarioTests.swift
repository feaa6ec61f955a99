import Foundation
import Testing

/// Each file in Scenarios tests one behaviour.
@Suite struct ScenarioTests {
    private static let folder = Bundle.module.bundleURL.appendingPathComponent("Scenarios")

    static let files: [String] = {
        let all = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
        return (all ?? []).filter { $0.hasSuffix(".scenario") }.sorted()
    }()

    @Test(arguments: files) func scenario(_ file: String) throws {
        let text = try String(contentsOf: Self.folder.appendingPathComponent(file), encoding: .utf8)
        try ScenarioRunner(file: file, text: text).run()
    }

    @Test func theScenariosAreThere() {
        #expect(Self.files.count > 40)
    }
}
