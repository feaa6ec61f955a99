import Foundation
import Testing

@Suite struct ArchitectureTests {
    /// The package's folder.
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Every Swift file in Sources, as a path from the package's folder.
    private static func sources() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: root.appending(path: "Sources").path).sorted()
            .flatMap { module in
                let folder = root.appending(path: "Sources/\(module)").resolvingSymlinksInPath()
                return try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
                    .filter { $0.hasSuffix(".swift") }.map { "Sources/\(module)/\($0)" }
            }
    }

    /// The modules of the manifest in its order, with what each needs of others.
    private static func needs() throws -> [(module: String, others: Set<String>)] {
        let text = try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8)
        let products = ["argumentParser": "ArgumentParser", "logging": "Logging"]
        let targets =
            /\n +module\(\s*"(\w+)"([^)]*)\)|executableTarget\(\s*name: "(httpdnsd)",\s*dependencies: \[([^\]]*)\]/
        return text.matches(of: targets).map { match in
            let others = (match.2 ?? match.4)!.split { !$0.isLetter && !$0.isNumber }
            return (String((match.1 ?? match.3)!), Set(others.map { products[String($0)] ?? String($0) }))
        }
    }

    @Test("no source breaks a rule of the house")
    func sourcesKeepTheRules() throws {
        let sources = try Self.sources()
        let needs = Dictionary(uniqueKeysWithValues: try Self.needs().map { ($0.module, $0.others) })
        #expect(sources.contains("Sources/Base/IPAddress.swift"))
        for path in sources {
            let text = try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
            for violation in Rules.violations(path: path, text: text, needs: needs) { Issue.record("\(violation)") }
            if Rules.unsafeFiles.contains(path) { #expect(text.contains("unsafe"), "\(path) needs it no more") }
        }
        #expect(Rules.unsafeFiles.union(Rules.readingFiles).isSubset(of: sources))
    }

    @Test("no file needs more than a few others to be understood, and they it")
    func circles() throws {
        let modules = Dictionary(grouping: try Self.sources()) { $0.split(separator: "/")[1] }
        for (module, paths) in modules {
            var texts: [String: String] = [:]
            for path in paths {
                texts[path] = try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
            }
            let circles = Circles(texts)
            for circle in circles.found() where circle.count > Rules.maximumCircle {
                Issue.record("\(module) has a circle of \(circle.count) files: \(circles.reasons(circle))")
            }
        }
    }

    @Test(
        "a circle is found by the types that files define and use",
        arguments: [
            (["a": "struct A { let b: B }", "b": "class B {}; func b(_ a: A) {}"], [["a", "b"]]),
            (
                ["a": "enum A { case b(B) }", "b": "protocol B { var c: C }", "c": "typealias C = A"],
                [["a", "b", "c"]]
            ),
            (["a": "struct A { let b: B }", "b": "public final class B {}"], []),
            (["a": "struct A { let b: B }", "b": "struct B {}", "c": "extension B { var a: A }"], []),
            (["a": "struct A { let b: B }", "b": "struct B {} // A\nlet b = \"A\"\nlet c = #\"\\(A)\"#"], []),
            (["a": "struct A { let b: B }", "b": "struct B {}; let b = \"\\(f(\"x\") + A.name)\""], [["a", "b"]]),
            (["a": "struct A { let b: B }", "b": "struct B {}; let b = c.A"], []),
            (["a": "struct A { let b: B }", "b": "struct B {}; let b = \"\"\"\n  \"A\"\n  \"\"\""], []),
            (["a": "struct A { let b: B }\nprivate struct C {}", "b": "struct B { struct D { let c: C } }"], []),
            (
                [
                    "a": "struct A { let b: B }", "b": "struct B { let a: A }", "c": "actor C { let d: D; let a: A }",
                    "d": "enum D { case c(C) }",
                ],
                [["a", "b"], ["c", "d"]]
            ),
        ] as [([String: String], [[String]])])
    func foundCircles(_ texts: [String: String], _ circles: [[String]]) {
        #expect(Circles(texts).found() == circles)
    }

    @Test(
        "the manifest has the modules in the order of the document's table, and each needs only such as stand before it"
    )
    func floors() throws {
        let page = try String(contentsOf: Self.root.appending(path: "docs/architecture.md"), encoding: .utf8)
        let order = page.matches(of: /\n\| \d \| `(\w+)` \|/).map { String($0.1) }
        let needs = try Self.needs()
        #expect(order.count > 15 && needs.map(\.module) == order)
        for (index, need) in needs.enumerated() {
            #expect(need.others.isDisjoint(with: order[index...]), "\(need.module)")
            // Neither sees the other.
            #expect(need.module != "Control" || !need.others.contains("Upstreams"))
            #expect(need.module != "Daemon" || !need.others.contains("DemoService"))
        }
    }

    private static let some: [String: Set<String>] = [
        "DNSWire": ["Base"], "DNSCache": ["DNSWire"], "Transport": ["CLinux"],
    ]

    @Test(
        "each broken rule is caught, on its line",
        arguments: [
            ("Sources/Base/A.swift", "import Glibc\n", 1, .forbiddenImport("Glibc")),
            ("Sources/DNSWire/A.swift", "import Base\n\nimport DNSCache\n", 3, .forbiddenImport("DNSCache")),
            ("Sources/Elsewhere/A.swift", "@_spi(Inside) import COpenSSL\n", 1, .forbiddenImport("COpenSSL")),
            ("Sources/DNSWire/A.swift", "public import Foundation\n", 1, .forbiddenImport("Foundation")),
            ("Sources/DNSWire/A.swift", "  import FoundationEssentials\n", 1, .forbiddenImport("FoundationEssentials")),
            ("Sources/DNSWire/A.swift", "@preconcurrency import Dispatch", 1, .forbiddenImport("Dispatch")),
            ("Sources/DNSWire/A.swift", "import Base; import Glibc", 1, .forbiddenImport("Glibc")),
            ("Sources/Configuration/A.swift", "import func Glibc.getenv", 1, .forbiddenImport("Glibc")),
            ("Sources/DNSCache/A.swift", "@_exported public import Glibc\n", 1, .forbiddenImport("Glibc")),
            (
                "Sources/Forwarding/Deeper/A.swift", "\n\n@_spi(Inside) internal import Glibc\n", 3,
                .forbiddenImport("Glibc")
            ),
            (
                "Sources/Base/A.swift", String(repeating: "\n", count: Rules.maximumLines + 1),
                Rules.maximumLines + 1, .tooManyLines(Rules.maximumLines + 1)
            ),
            ("Sources/Base/A.swift", "let a = 1\nlet b = try! c()\n", 2, .forcedTry),
            ("Sources/Base/A.swift", "let a = 1\nfatalError()\n", 2, .unexplainedFatalError),
            ("Sources/Base/A.swift", "default: fatalError(\"no\")", 1, .unexplainedFatalError),
            ("Sources/Base/A.swift", "// TODO: later\n", 1, .unfinished("TODO")),
            ("Sources/Base/A.swift", "\nlet a = unsafe b\n", 2, .unsafeHere),
            ("Sources/Daemon/Resolving/A.swift", "let a = try SystemFile.read(b, limit: 1)\n", 1, .readsHere),
            ("Sources/Daemon/Listening/A.swift", "nonisolated(unsafe) let a = b\n", 1, .unsafeHere),
            ("Sources/Base/A.swift", "let a = 1  // FIXME\n", 1, .unfinished("FIXME")),
            ("Sources/Forwarding/A.swift", "let a = desk.groups[0]\n", 1, .behindDesk),
        ] as [(String, String, Int, Violation.Rule)])
    func planted(_ path: String, _ text: String, _ line: Int, _ rule: Violation.Rule) {
        let found = Rules.violations(path: path, text: text, needs: Self.some)
        #expect(found == [Violation(path: path, line: line, rule: rule)])
    }

    @Test(
        "what is allowed is not caught",
        arguments: [
            ("Sources/Base/A.swift", "// import Glibc\nlet important = 1\nlet imports = \"x\"\n"),
            ("Sources/Base/A.swift", String(repeating: "\n", count: Rules.maximumLines)),
            ("Sources/Base/A.swift", String(repeating: "\n", count: Rules.maximumLines - 1) + "let a = 1"),
            ("Sources/Base/A.swift", "// Never try! here.\nlet a = try? b()\n"),
            ("Sources/Base/A.swift", "fatalError()  // The kernel has no random bytes.\n"),
            ("Sources/Base/A.swift", "    // The kernel has no random bytes.\n    fatalError()\n"),
            ("Sources/DNSWire/A.swift", "public import Base\nlet methodTODOs = 1\n"),
            ("Sources/DNSCache/A.swift", "internal import Synchronization\nimport DNSWire\n"),
            ("Sources/Transport/A.swift", "import Glibc\nimport Dispatch\nimport Synchronization\nimport CLinux\n"),
            ("Sources/Transport/A.swift", "let a = unsafe b\n"),
            ("Sources/Base/A.swift", "// It would be unsafe.\nlet unsafeName = 1\n"),
        ])
    func allowed(_ path: String, _ text: String) {
        #expect(Rules.violations(path: path, text: text, needs: Self.some) == [])
    }
}
