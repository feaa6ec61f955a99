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

    /// The file with every key and section in force; explanations begin with `# `, what goes on with a list `#"`.
    private var uncommented: String {
        text.replacing(",\n#\"", with: ", \"").split(separator: "\n", omittingEmptySubsequences: false)
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

    @Test("the manual page has every key of a group, with its default")
    func manualOfGroups() throws {
        let page = try #require(manual.firstMatch(of: #/(?s)\n\.Sh \[upstreams\.NAME\]\n(.*?)\n\.Sh /#)?.1)
        let items = page.split(separator: "\n.It Ic ").dropFirst()
        // Those of an account are described with [httpdns] and [tls], and named here.
        let keys = Key.keys(of: .servers)
        #expect(items.map { String($0.prefix { $0 != "\n" }) } == keys.map(\.name))
        for name in ["provider", "dnsIp", "batch", "confIp", "serverName"] {
            #expect(page.contains("\n.Ic \(name)") && !keys.map(\.name).contains(name))
        }
        for (key, item) in zip(keys, items) {
            let said = item.firstMatch(of: #/(?s)\nDefault:\n\.Li (.*?)(?: [.,])?(?:\n|$)/#)?.1
            #expect(said?.replacing("\\(dq", with: "\"") == key.show(Settings.Group(name: "a"))[...], "\(key.name)")
        }
    }

    @Test("each number has a range, which the manual page has too, and nothing beside it is taken")
    func ranges() throws {
        let named = Key.keys(of: .named).map {
            (key: $0.of(\Settings.upstreams[0], .upstreams), section: "upstreams.NAME")
        }
        var count = 0
        for (key, section) in Key.all.map({ ($0, $0.section.rawValue) }) + named {
            var settings = Settings()
            settings.upstreams = [Settings.Group(name: "NAME")]
            guard let range = key.expected.firstMatch(of: /^a whole number.* from (\d+) to (\d+)$/),
                let low = Int(range.1), let high = Int(range.2)
            else {
                #expect(Int(key.show(settings)) == nil, "\(key.path) has no range")
                continue
            }
            count += 1
            for value in [low, high] {
                try key.read(.integer(value), &settings)
                #expect(key.show(settings) == "\(value)")
            }
            for value in [low - 1, high + 1] {
                #expect(
                    message("[\(section)]\n\(key.name) = \(value)")
                        == "test.toml:2: \(section).\(key.name): \(value) is not right; give \(key.expected)")
            }
            // Not all keys of an account are described again with groups; 0 stands for no account.
            let page = try #require(manual.split(separator: "\n.Sh ").first { $0.hasPrefix("[\(section)]\n") })
            let items = page.split(separator: "\n.It Ic ").dropFirst()
            guard let item = items.first(where: { $0.hasPrefix("\(key.name)\n") }) else {
                #expect(Key.keys(of: .httpdns).contains { $0.name == key.name } && key.section == .upstreams)
                continue
            }
            let said = "\(key.name == "dnsId" ? 1 : low) to \(high)"
            #expect(item.replacing("\n", with: " ").contains(said), "\(section).\(key.name): \(said)")
        }
        #expect(count > 25)
    }

    @Test("no line is wider than a terminal of 120 columns")
    func width() {
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 120 })
    }
}
