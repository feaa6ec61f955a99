import Configuration
import Foundation
import Testing

/// `config/httpdnsd.toml`, which documents every key.
@Suite struct ShippedFileTests {
    private let text: String

    init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        text = try String(contentsOf: root.appending(path: "config/httpdnsd.toml"), encoding: .utf8)
    }

    /// The file with every key and section in force; explanations begin with `# `.
    private var uncommented: String {
        text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.firstMatch(of: /^#[A-Za-z\[]/) == nil ? $0 : $0.dropFirst() }
            .joined(separator: "\n")
    }

    /// `section.key` of each line that sets one.
    private func keys(of text: String) -> [String] {
        var section = ""
        return text.split(separator: "\n").compactMap { line in
            if let header = line.firstMatch(of: /^\[(\w+)\]$/) { section = String(header.1) }
            return line.firstMatch(of: /^(\w+) *=/).map { section + "." + $0.1 }
        }
    }

    @Test("as shipped it changes nothing and runs on the local resolver alone")
    func asShipped() throws {
        #expect(try load(text) == Settings())
        #expect(keys(of: text) == [])
    }

    @Test("it shows every key there is, once, in the order of the sections")
    func everyKey() throws {
        let httpdns = try load("[httpdns]\ntoken = \"1\"")
        #expect(keys(of: uncommented) == keys(of: httpdns.effectiveText))
    }

    @Test("every value it shows is the default")
    func defaults() throws {
        #expect(message(uncommented).contains("httpdns.token: missing"))
        let withToken = uncommented.replacing("\ntoken = \"\"\n", with: "\ntoken = \"1\"\n")
        #expect(try load(withToken) == load("[httpdns]\ntoken = \"1\""))
        // A value that were not the default would still be equal if its line were not read at all.
        for key in keys(of: uncommented) {
            let name = key.split(separator: ".")[1]
            let broken = uncommented.replacing("\n\(name) = ", with: "\n\(name) = 1979-05-27 #")
            #expect(message(broken).contains(".\(name): "), "\(key)")
        }
    }

    @Test("no line is wider than a terminal of 120 columns")
    func width() {
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 120 })
    }
}
