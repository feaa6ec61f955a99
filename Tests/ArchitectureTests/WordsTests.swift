import Foundation
import Testing

/// What docs/troubleshooting.md says of the log must be what the log says.
@Suite struct WordsTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The lines of the log that it quotes: between back quotes, in the column of the tables that is about the log.
    private static func quoted() throws -> [String] {
        let document = try String(contentsOf: root.appending(path: "docs/troubleshooting.md"), encoding: .utf8)
        var lines: [String] = []
        var column: Int?
        for row in document.split(separator: "\n") {
            guard row.hasPrefix("|") else {
                column = nil
                continue
            }
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            if let column, column < cells.count {
                lines += cells[column].matches(of: /`([^`]+)`/).map { String($0.1) }
            } else {
                column = cells.firstIndex { ["the log says", "what it says when all is well"].contains($0) }
            }
        }
        return lines
    }

    /// The texts of each source file, without comments, what is put into them left out.
    private static func texts() throws -> [String] {
        var texts: [String] = []
        let modules = [
            "httpdnsd", "Daemon", "Control", "Upstreams", "Streams", "Log", "HTTP", "HTTPDNS", "Cryptography",
            "DNSCache", "Transport", "Forwarding",
        ]
        for module in modules {
            let folder = root.appending(path: "Sources/\(module)")
            for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where path.hasSuffix(".swift")
            {
                let lines = try String(contentsOf: folder.appending(path: path), encoding: .utf8).split(separator: "\n")
                let code = lines.filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
                texts.append(
                    code.replacing("\\\n", with: "").replacing(/\s+/, with: " ").replacing("\\\"", with: "\""))
            }
        }
        return texts
    }

    /// What stands in a quoted line for something else: the system's words, an example of a value, a group's name.
    private static let examples = [
        "Connection refused", "Network is unreachable", "Address already in use", "Permission denied", "connect",
        "recv", "http_proxy", "resolv.conf ADDRESS",
        "what is wrong, and what would be right", " https ", "alert", "certificate ", "FILE:LINE",
        "fallback", "tls://", "N answers", "N times",
    ]

    /// The parts of a quoted line that stand for themselves: between names in capitals, numbers, and joints at which
    /// texts are put together.
    private static func parts(_ line: String) -> [String] {
        let line = examples.reduce(line) { $0.replacing($1, with: "…") }
        return line.split(separator: /…|: |; |, |\b[A-Z]+\b(?:[:.][A-Z]+)*|\b\d[\d.]*(?::\d+)?\b|[()]/)
            .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " :;,")) }
            .filter { $0.count > 2 }
    }

    /// Whether one file has all the parts of a line; what stands before and behind a colon may be another's.
    private static func isSaid(_ line: Substring, _ texts: [String]) -> Bool {
        let parts = parts(String(line))
        if texts.contains(where: { text in parts.allSatisfy { text.contains($0) } }) { return true }
        guard let colon = line.firstRange(of: ": ") else { return false }
        return isSaid(line[..<colon.lowerBound], texts) && isSaid(line[colon.upperBound...], texts)
    }

    @Test("each line of the log that the document quotes is one that is said")
    func linesAreSaid() throws {
        let (lines, texts) = (try Self.quoted(), try Self.texts())
        #expect(lines.count > 50)
        for line in lines where !Self.isSaid(line[...], texts) { Issue.record("no file says “\(line)”") }
    }
}
