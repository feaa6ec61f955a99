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

    @Test("no source breaks a rule of the house")
    func sourcesKeepTheRules() throws {
        let sources = try Self.sources()
        #expect(sources.contains("Sources/Base/IPAddress.swift"))
        for path in sources {
            let text = try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
            for violation in Rules.violations(path: path, text: text) { Issue.record("\(violation)") }
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

    @Test("the manifest gives each module what the table of floors allows it, and no more")
    func manifest() throws {
        let text = try String(contentsOf: Self.root.appending(path: "Package.swift"), encoding: .utf8)
        // What stands behind it is added for the fuzzer alone, which reaches everything.
        let manifest = try #require(text.split(separator: "\nif Context.environment[\"HTTPDNSD_FUZZ\"]").first)
        let products = ["argumentParser": "ArgumentParser", "logging": "Logging"]
        // Part of the toolchain: no dependency in the manifest.
        let toolchain: Set<String> = ["Glibc", "Dispatch", "Synchronization"]
        var modules: Set<String> = []
        func check(_ name: Substring, _ dependencies: Substring) {
            modules.insert(String(name))
            let given = dependencies.split { !$0.isLetter && !$0.isNumber }.map { products[String($0)] ?? String($0) }
            let allowed = Rules.imports[String(name)]?.subtracting(toolchain)
            if name == "httpdnsd" {
                // Logging reaches it through Daemon.
                #expect(Set(given).isSubset(of: allowed ?? []), "\(name)")
            } else {
                #expect(Set(given) == allowed, "\(name)")
            }
        }
        for match in manifest.matches(of: /\n +module\(\s*"(\w+)"([^)]*)\)/) { check(match.1, match.2) }
        for match in manifest.matches(of: /executableTarget\(\s*name: "(\w+)",\s*dependencies: \[([^\]]*)\]/) {
            check(match.1, match.2)
        }
        #expect(modules == Set(Rules.imports.keys))
    }

    @Test("the floors have no circle, and only the two top ones see everything")
    func floors() {
        // Top of the house first: a module may import only what stands behind it.
        let order = [
            "httpdnsd", "Daemon", "DemoService", "Control", "Upstreams", "Streams", "Log", "Counters", "Transport",
            "Forwarding",
            "HTTPDNS",
            "HTTP",
            "Cryptography",
            "DNSCache", "Configuration", "Names", "DNSWire", "Base",
        ]
        #expect(Set(order) == Set(Rules.imports.keys))
        for (index, module) in order.enumerated() {
            #expect(Rules.imports[module]?.isDisjoint(with: order[...index]) == true, "\(module)")
        }
        #expect(Rules.imports["Daemon"]?.contains("DemoService") == false)
        #expect(Rules.imports["Control"]?.contains("Upstreams") == false)
        for (library, owners) in [
            "COpenSSL": ["Cryptography"], "CSystemd": ["Daemon", "Log"], "CLinux": ["Transport"],
            "CMemory": ["DNSCache"], "CNGHTTP2": ["HTTP"],
            "ArgumentParser": ["httpdnsd"],
            "Logging": ["Control", "Daemon", "Log", "Upstreams", "httpdnsd"],
            "Glibc": ["Transport"], "Foundation": [],
        ] as [String: Set<String>] {
            #expect(Set(Rules.imports.filter { $0.value.contains(library) }.keys) == owners, "\(library)")
        }
        for module in [
            "Base", "DNSWire", "Names", "Configuration", "DNSCache", "Cryptography", "HTTP", "HTTPDNS", "Forwarding",
        ] {
            #expect(Rules.imports[module]?.isDisjoint(with: ["Glibc", "Dispatch"]) == true, "\(module)")
        }
    }

    @Test(
        "each broken rule is caught, on its line",
        arguments: [
            ("Sources/Base/A.swift", "import Glibc\n", 1, .forbiddenImport("Glibc")),
            ("Sources/Base/A.swift", "\n\nimport DNSWire\n", 3, .forbiddenImport("DNSWire")),
            ("Sources/DNSWire/A.swift", "public import Foundation\n", 1, .forbiddenImport("Foundation")),
            ("Sources/DNSWire/A.swift", "  import FoundationEssentials\n", 1, .forbiddenImport("FoundationEssentials")),
            ("Sources/DNSWire/A.swift", "@preconcurrency import Dispatch", 1, .forbiddenImport("Dispatch")),
            ("Sources/DNSWire/A.swift", "import Base; import Glibc", 1, .forbiddenImport("Glibc")),
            ("Sources/Configuration/A.swift", "import func Glibc.getenv", 1, .forbiddenImport("Glibc")),
            ("Sources/DNSCache/A.swift", "@_exported public import Glibc\n", 1, .forbiddenImport("Glibc")),
            ("Sources/Cryptography/A.swift", "@_spi(Inside) import DNSWire\n", 1, .forbiddenImport("DNSWire")),
            ("Sources/HTTPDNS/A.swift", "internal import COpenSSL\n", 1, .forbiddenImport("COpenSSL")),
            ("Sources/Forwarding/A.swift", "private import Transport\n", 1, .forbiddenImport("Transport")),
            ("Sources/Forwarding/Deeper/A.swift", "import HTTPDNS\n", 1, .forbiddenImport("HTTPDNS")),
            ("Sources/Transport/A.swift", "import DNSWire\n", 1, .forbiddenImport("DNSWire")),
            ("Sources/Daemon/A.swift", "import DemoService\n", 1, .forbiddenImport("DemoService")),
            ("Sources/Daemon/A.swift", "import COpenSSL\n", 1, .forbiddenImport("COpenSSL")),
            ("Sources/Daemon/A.swift", "import ArgumentParser\n", 1, .forbiddenImport("ArgumentParser")),
            ("Sources/httpdnsd/A.swift", "import CSystemd\n", 1, .forbiddenImport("CSystemd")),
            ("Sources/Elsewhere/A.swift", "let a = 1\n", 1, .unknownModule("Elsewhere")),
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
        #expect(Rules.violations(path: path, text: text) == [Violation(path: path, line: line, rule: rule)])
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
            ("Sources/Daemon/A.swift", "import Logging\nimport CSystemd\nimport Configuration\nimport Dispatch\n"),
            ("Sources/httpdnsd/A.swift", "import ArgumentParser\nimport DemoService\nimport Daemon\n"),
            ("Sources/Transport/A.swift", "let a = unsafe b\n"),
            ("Sources/Base/A.swift", "// It would be unsafe.\nlet unsafeName = 1\n"),
        ])
    func allowed(_ path: String, _ text: String) {
        #expect(Rules.violations(path: path, text: text) == [])
    }
}
