import Foundation
import Testing

/// Every input that is kept of each reader, without libFuzzer.
@Suite struct SeedTests {
    private static let corpus = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus")

    @Test(arguments: Target.all.map(\.name)) func seedsOfEachReader(name: String) throws {
        let target = try #require(Target.all.first { $0.name == name })
        let seeds = try Data(contentsOf: Self.corpus.appending(path: name + ".txt")).split(
            separator: UInt8(ascii: "\n"))
        #expect(!seeds.isEmpty)
        for seed in seeds {
            let (name, octets) = try #require(Self.read(seed))
            #expect(!name.isEmpty)
            target.run(octets)
        }
    }

    @Test func eachFileIsOfAReader() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
        #expect(Set(files) == Set(Target.all.map { $0.name + ".txt" }))
    }

    /// An input as corpus.py writes it: its name, a space and its octets; nil: it is written otherwise.
    private static func read(_ line: Data) -> (name: Data, octets: [UInt8])? {
        guard let space = line.firstIndex(of: UInt8(ascii: " ")) else { return nil }
        var (octets, rest) = ([UInt8](), line[(space + 1)...])
        while let octet = rest.popFirst() {
            guard octet == UInt8(ascii: "\\") else {
                octets.append(octet)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "\\"): octets.append(UInt8(ascii: "\\"))
            case UInt8(ascii: "n"): octets.append(UInt8(ascii: "\n"))
            case UInt8(ascii: "r"): octets.append(UInt8(ascii: "\r"))
            case UInt8(ascii: "x"):
                guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else { return nil }
                octets.append(value)
                rest = rest.dropFirst(2)
            default: return nil
            }
        }
        return (line[..<space], octets)
    }
}
