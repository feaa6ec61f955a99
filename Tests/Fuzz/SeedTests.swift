import Foundation
import Testing

/// Every input that is kept of each reader, without libFuzzer.
@Suite struct SeedTests {
    private static let corpus = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus")

    @Test(arguments: Target.all.map(\.name)) func seedsOfEachReader(name: String) throws {
        let target = try #require(Target.all.first { $0.name == name })
        let folder = Self.corpus.appending(path: name)
        let seeds = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        #expect(!seeds.isEmpty)
        for seed in seeds { target.run(Array(try Data(contentsOf: seed))) }
    }

    @Test func eachFolderIsOfAReader() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
        #expect(Set(folders) == Set(Target.all.map(\.name)))
    }
}
