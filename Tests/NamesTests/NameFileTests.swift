import TestSupport
import Testing

@testable import Names

/// What a reading of a file of names means for the names that were there before.
@Suite struct NameFileTests {
    private static func list(_ lines: Int, odd: Int) -> String {
        (0..<lines).map { $0 < odd ? "<p>" : "n\($0).example" }.joined(separator: "\n") + "\n"
    }

    /// What a file may hold: its text, nil if it cannot be read; and the patterns that it has for either use, nil if it is not used
    /// whatever was there before.
    private static let texts: [(name: String, text: String?, servers: [String]?, answers: [String]?)] = [
        ("right", "new.example\n", ["new.example"], ["new.example"]),
        ("without its last line feed", "new.example", nil, ["new.example"]),
        ("unreadable, gone, a pipe or a folder", nil, nil, nil), ("empty", "", nil, []),
        ("a comment", "# a\n\n! b\n", nil, []),
        ("a comment in each form", "# a\n", nil, []), ("an exception", "@@||new.example^\n", nil, []),
        ("a line that is none", "new.example\n<p>\n", nil, ["new.example"]),
        ("a rule", "||new.example^\n", nil, ["new.example"]), ("HTML", "<html>\n<p>Not found</p>\n</html>\n", nil, []),
        ("gzip", "\u{1F}\u{FFFD}\u{8}\u{0}\u{0}\u{3}", nil, []),
        ("UTF-16", "\u{FFFD}\u{FFFD}n\u{0}e\u{0}w\u{0}\n\u{0}", nil, []),
        ("networks", "192.0.2.0/24\n", ["192.0.2.0/24"], []), ("everything", ".\n", ["."], []),
    ]

    private func read(
        _ text: String?, _ use: NameFile.Use, after before: NameFile? = nil, mayBeWritten: Bool = false,
        copy: String? = nil
    ) -> NameFile.Outcome {
        let reading: Result<[UInt8], NameFile.Fault> =
            text.map { .success(Array($0.utf8)) } ?? .failure(.unreadable("gone"))
        return NameFile.read(reading, for: use, after: before, mayBeWritten: mayBeWritten) {
            copy.map { Array($0.utf8) }
        }
    }

    private func names(_ outcome: NameFile.Outcome) -> [String]? { outcome.names?.taken.patterns.map(\.description) }

    @Test(arguments: texts.indices)
    func whatAReadingMeans(_ row: Int) throws {
        let (name, text, servers, answers) = Self.texts[row]
        for (use, new) in [(NameFile.Use.servers, servers), (.answers, answers)] {
            let before = try #require(read("old.example\nolder.example\n", use).names)
            let old = ["old.example", "older.example"]
            let isKept = (new ?? []).isEmpty
            for copy in [nil, "copied.example\n"] {
                // While the daemon runs the copy is not looked at.
                let running = read(text, use, after: before, copy: copy)
                #expect(names(running) == (isKept ? old : new), "\(name), \(use)")
                #expect((running.fault != nil) == isKept && !running.isCopy)
                // At a start there is nothing but the copy.
                let start = read(text, use, copy: copy)
                let fromCopy = copy != nil && isKept
                #expect(names(start) == (fromCopy ? ["copied.example"] : new), "\(name), \(use)")
                #expect(start.isCopy == fromCopy && (start.fault != nil) == (fromCopy || new == nil))
            }
        }
    }

    /// Many editors end a file so; nothing in it tells whether there was to be more.
    @Test func whatToDoAboutALastLineWithoutALineFeedIsSaid() {
        let fault = read("a.example\nb.example", .servers).fault
        #expect(fault == .cutOff && "\(fault!)".hasSuffix("write the rest, or end the last line with a line feed"))
    }

    @Test func aCopyThatIsNone() {
        for copy in ["", "<p>", "a..b\n"] {
            #expect(read("", .servers, copy: copy).names == nil)
            #expect(names(read(nil, .answers, copy: copy)) == [])
        }
        #expect(read(nil, .answers).names == nil)
    }

    @Test func aListThatHadNoNamesMayHaveNone() {
        let outcome = read("# a\n", .answers, after: read("", .answers).names)
        #expect(outcome.fault == nil && names(outcome) == [])
        // Exceptions are kept with the names.
        let before = read("a.example\n@@||b.a.example^\n", .answers).names
        #expect(read("<p>\n", .answers, after: before).names?.released.count == 1)
    }

    /// A file of 20 lines and more is no list if more than half of them have none of the forms.
    @Test(
        arguments: [
            (19, 18, true), (19, 10, true), (20, 10, true), (20, 11, false), (1000, 500, true), (1000, 501, false),
            (1000, 1000, false),
        ])
    func mostLines(_ row: (lines: Int, odd: Int, isTaken: Bool)) throws {
        let text = Self.list(row.lines, odd: row.odd)
        #expect((read(text, .answers).fault == nil) == row.isTaken)
        #expect(read(text + "# a\n\n! b\n", .answers).fault == read(text, .answers).fault)
        let before = read("old.example\n", .answers).names
        #expect((names(read(text, .answers, after: before)) == ["old.example"]) == !row.isTaken)
        guard !row.isTaken else { return }
        #expect(read(text, .answers).fault?.line == 1)
    }

    /// Rules that a DNS server cannot follow have a known form.
    @Test func aListOfRulesIsAList() {
        let text = (0..<100).map { "/ad\($0)/\n" }.joined() + "||a.example^\n"
        #expect(names(read(text, .answers)) == ["a.example"])
    }

    /// A file that may be half-written takes no name from a wall, neither from the names in effect nor, at a start, from the copy.
    @Test func aFileThatMayBeHalfWritten() throws {
        let old = "old.example\nolder.example\n"
        let before = try #require(read(old, .servers).names)
        for (names, copy) in [(before, "copied.example\n"), (nil, old)] {
            let outcome = read("older.example\nnew.example\n", .servers, after: names, mayBeWritten: true, copy: copy)
            // In the order of the file: errors name its lines.
            #expect(self.names(outcome) == ["older.example", "new.example", "old.example"])
            let part = read("older.example\n", .servers, after: names, mayBeWritten: true, copy: copy)
            #expect(part.names == before)
            #expect(outcome.lacked.patterns.map(\.description) == ["old.example"])
            #expect(outcome.fault == nil && !outcome.isCopy)
            let whole = read("new.example\n" + old, .servers, after: names, mayBeWritten: true, copy: copy)
            #expect(self.names(whole)?.first == "new.example" && whole.lacked.count == 0)
        }
        #expect(names(read("new.example\n", .servers, mayBeWritten: true)) == ["new.example"])
        let list = read("new.example\n", .answers, after: read(old, .answers).names, mayBeWritten: true)
        #expect(names(list) == ["new.example"])
    }

    /// Each beginning of a wall's file, as it is while it is written: no name of before is given up but for whole lines.
    @Test func eachBeginningOfAFile() throws {
        let text = "a.example\nb.example\n*.c.example\n10.0.0.0/8\n"
        let before = try #require(read(text, .servers).names)
        for length in 0..<text.utf8.count {
            let part = String(decoding: text.utf8.prefix(length), as: UTF8.self)
            if !part.hasSuffix("\n") { #expect(read(part, .servers).names == nil) }
            for outcome in [read(part, .servers, after: before), read(part, .servers, copy: text)] {
                let isKept = names(outcome) == before.taken.patterns.map(\.description)
                #expect(isKept == !part.hasSuffix("\n"), "\(part.debugDescription)")
                #expect(isKept == (outcome.fault != nil))
            }
        }
    }

    /// Whatever a file holds, names that decide where names may go are never none at all.
    @Test func chance() throws {
        var chance = Chance.announced("NameFileTests.chance")
        let pieces = [
            "a", ".", "\n", "example", "<", "#", "||", "^", "0.0.0.0 ", "server=/", "/", "\u{FEFF}", "ü", "*.", "@@",
            "\0",
        ]
        let before = try #require(read("old.example\n", .servers).names)
        let list = try #require(read("old.example\n", .answers).names)
        for _ in 0..<3000 {
            let text = (0..<chance.below(12)).map { _ in pieces[chance.below(pieces.count)] }.joined()
            #expect(read(text, .servers, after: before).names?.taken.count ?? 0 > 0, "\(text.debugDescription)")
            #expect(read(text, .answers, after: list).names?.taken.count ?? 0 > 0, "\(text.debugDescription)")
            #expect(read(text, .servers).names?.taken.count != 0)
        }
    }
}
