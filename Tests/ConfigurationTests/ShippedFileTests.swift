import Foundation
import Testing

@testable import Configuration

/// `config/httpdnsd.toml`, which documents every key.
@Suite struct ShippedFileTests {
    private let text: String
    /// `config/man/httpdnsd.toml.5`.
    private let manual: String

    init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        text = try String(contentsOf: root.appending(path: "config/httpdnsd.toml"), encoding: .utf8)
        manual = try String(contentsOf: root.appending(path: "config/man/httpdnsd.toml.5"), encoding: .utf8)
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

    @Test("its example of groups is right, and so is that of the manual page")
    func groups() throws {
        let examples = [
            text.split(separator: "\n").drop { $0 != "#     [upstreams.office]" }
                .prefix { $0 == "#" || $0.hasPrefix("#     ") }.map { $0.dropFirst(6) }.joined(separator: "\n"),
            String(try #require(manual.firstMatch(of: #/(?s)\n(\[upstreams\.office\].*?)\.Ed/#)?.1)),
        ]
        let names = try examples.map { example in
            try load(example, files: ["/etc/httpdnsd/corp-ca.pem": "x"]).upstreams.map(\.name)
        }
        #expect(names == [["office", "portal"], ["office"]])
    }

    @Test("the manual page has every key of a group, with its default and range")
    func manualOfGroups() throws {
        let page = try #require(manual.firstMatch(of: #/(?s)\n\.Sh \[upstreams\.NAME\]\n(.*?)\n\.Sh /#)?.1)
        let items = page.split(separator: "\n.It Ic ").dropFirst()
        // Those of an account are described with [httpdns] and [tls], and named here.
        let keys = Key.ofGroup.filter { !Key<Settings.Group>.accountsOwn.contains($0.name) }
        #expect(items.map { String($0.prefix { $0 != "\n" }) } == keys.map(\.name))
        for name in ["provider", "dnsIp", "batch", "confIp", "serverName"] {
            #expect(page.contains("\n.Ic \(name)") && Key<Settings.Group>.accountsOwn.contains(name))
        }
        for (key, item) in zip(keys, items) {
            let said = item.firstMatch(of: #/(?s)\nDefault:\n\.Li (.*?)(?: [.,])?(?:\n|$)/#)?.1
            #expect(said?.replacing("\\(dq", with: "\"") == key.show(Settings.Group(name: "a"))[...], "\(key.name)")
            var group = Settings.Group(name: "a")
            do throws(Problem) {
                try key.read(.integer(-1), &group)
            } catch {
                guard let range = error.message.firstMatch(of: /from (\d+ to \d+)$/)?.1 else { continue }
                #expect(item.replacing("\n", with: " ").contains(range), "\(key.name)")
            }
        }
    }

    @Test("no line is wider than a terminal of 120 columns")
    func width() {
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 120 })
    }
}
