import Testing

@testable import Configuration

/// The cases follow TOML 1.0.0, section by section.
@Suite struct TOMLReaderTests {
    @Test(
        "each kind of value is read",
        arguments: [
            ("true", .boolean(true)), ("false", .boolean(false)),
            ("0", .integer(0)), ("+0", .integer(0)), ("-0", .integer(0)), ("+99", .integer(99)), ("-17", .integer(-17)),
            ("1_000", .integer(1000)), ("5_349_221", .integer(5_349_221)), ("1_2_3", .integer(123)),
            ("0xDEAD_beef", .integer(0xDEAD_BEEF)), ("0x00F", .integer(15)), ("0o755", .integer(0o755)),
            ("0b1101_0110", .integer(0b1101_0110)), ("9223372036854775807", .integer(.max)),
            ("-9223372036854775808", .integer(.min)),
            ("1.0", .other("a number with a fraction")), ("-5e+22", .other("a number with a fraction")),
            ("6.626e-34", .other("a number with a fraction")), ("1e06", .other("a number with a fraction")),
            ("-inf", .other("a number with a fraction")), ("nan", .other("a number with a fraction")),
            ("1979-05-27", .other("a date or time")), ("07:32:00.999", .other("a date or time")),
            ("1979-05-27T00:32:00-07:00", .other("a date or time")),
            ("''", .text("")), ("\"\"", .text("")), ("'C:\\Users\\n'", .text("C:\\Users\\n")),
            ("'a \"b\" # c'", .text("a \"b\" # c")), ("\"a 'b' # c\"", .text("a 'b' # c")), ("\"\t\"", .text("\t")),
            ("\"\\b\\t\\n\\f\\r\\\"\\\\\"", .text("\u{8}\t\n\u{C}\r\"\\")),
            ("\"\\u00E9\\U0001F600\"", .text("é😀")), ("\"é😀\"", .text("é😀")),
            ("\"\"\"\"\"\"", .text("")), ("''''''", .text("")), ("\"\"\"\r\na\r\nb\"\"\"", .text("a\r\nb")),
            ("\"\"\"a \\\n\n   b \\  \r\n\tc\"\"\"", .text("a b c")), ("\"\"\"a\\\\\nb\"\"\"", .text("a\\\nb")),
            ("\"\"\"a \"\"b\"\" c\"\"\"\"\"", .text("a \"\"b\"\" c\"\"")), ("\"\"\"\"a\"\"\"\"", .text("\"a\"")),
            ("'''\na ''b'' \\\n'''''", .text("a ''b'' \\\n''")), ("\"\"\"\\\"\"\"\"", .text("\"")),
            ("[]", .list([])), ("[ # a\n\n]", .list([])), ("[1,2]", .list([.integer(1), .integer(2)])),
            ("[\n'a' # ]\n, \"]\"\n,\n]", .list([.text("a"), .text("]")])),
            ("[[1, 'a'], [[]]]", .list([.list([.integer(1), .text("a")]), .list([.list([])])])),
            ("[{ a = 1, b.c = [2] }, {}]", .list([.other("a table"), .other("a table")])),
        ] as [(String, Given)])
    func value(_ text: String, _ expected: Given) throws {
        for end in ["", "\n", " # end", "\t\r\n"] {
            let items = try TOMLReader(file: "f", "a = " + text + end).items
            #expect(items.map(\.path) == [["a"]] && items.map(\.given) == [expected] && items.map(\.line) == [1])
        }
        // In an inline table, where a comment or a line's end may stand only inside of lists and strings.
        #expect(try TOMLReader(file: "f", "b = {a = \(text)}").items.last?.given == expected)
        #expect(try TOMLReader(file: "f", "b = [\(text)]").items.last?.given == .list([expected]))
    }

    @Test(
        "what is no value is refused",
        arguments: [
            "", "True", "yes", "a", "0123", "-01", "+-1", "++1", "1__0", "_1", "1_", "0x", "0x_1", "0x1_", "0xg", "0b2",
            "0o8", "0X1", "-0x1", "+0b1", "9223372036854775808", "-9223372036854775809", "0xFFFFFFFFFFFFFFFF", "1 2",
            "\"", "'", "\"a\nb\"", "'a\nb'", "\"a\\\nb\"", "\"\\a\"", "\"\\x41\"", "\"\\e\"", "\"\\u12\"",
            "\"\\u123g\"",
            "\"\\uD800\"", "\"\\U00110000\"", "\"\\u0000\"", "\"\0\"", "\"\u{7F}\"", "'\u{1}'", "\"\r\"",
            "\"\"\"\r\"\"\"",
            "\"\"\"a", "\"\"\"a\"\"", "'''a''", "\"\"\"a\"\"\"\"\"\"", "'''a''''''", "\"\"\"a \\ b\"\"\"",
            "\"a\" \"b\"", "\"a\"b",
            "[", "[1", "[1,", "[,]", "[1,,2]", "[1 2]", "[1}", "[}", "['a'\n'b']",
            "{", "{}}", "{a}", "{a=}", "{a=1", "{a=1,}", "{,}", "{a=1 b=2}", "{a=1,,b=2}", "{a=1\n}", "{\n}",
            "{a=1,a=2}",
            "{a.b=1,a=2}", "{a=1,a.b=2}", "{a={},a.b=2}", "{a=1 # b\n}", "[{a=1,a=2}]", "[{a.b=1,a.b=2}]",
        ])
    func wrongValue(_ text: String) {
        for context in ["a = \(text)", "[t]\na = \(text)\n", "b = [\(text)"] {
            #expect(throws: ConfigurationError.self, "\(context)") { try TOMLReader(file: "f", context) }
        }
    }

    @Test(
        "keys are bare, quoted or dotted, and stand in tables",
        arguments: [
            ("a=1", "a:1"), ("\t a \t=\t1\t", "a:1"), ("1234 = 1\n-_a = 2", "1234:1 -_a:2"), ("\"\" = 1", ":1"),
            ("'a.b' = 1", "a.b:1"), ("a . \"b\" .'c' = 1", "a/b/c:1"), ("3.14 = 1", "3/14:1"),
            ("a.b=1\nc=2\na.d=3", "a/b:1 c:2 a/d:3"),
            ("true = 1\ninf = 2", "true:1 inf:2"), ("\"\\u0061\" = 1", "a:1"),
            ("[a]\nb=1\n\n[ c . 'd' ] # e\nf=1", "a:1 a/b:2 c/d:4 c/d/f:5"), ("[a.b]\n[a]\nc=1", "a/b:1 a:2 a/c:3"),
            ("[a]\nb.c=1\n[a.b.d]\n[a.e]", "a:1 a/b/c:2 a/b/d:3 a/e:4"), ("[a]\n[a.b.c]\n[a.b]", "a:1 a/b/c:2 a/b:3"),
            ("a={b=1,c.d={}}\ne=1", "a:1 a/b:1 a/c/d:1 e:2"), ("a={}\nb=[{c=1},{c=1}]", "a:1 b:2"),
            ("[a]\nb={}\nc.d=1\nc.e=2", "a:1 a/b:2 a/c/d:3 a/c/e:4"), ("a.b={}\na.c=1", "a/b:1 a/c:2"),
            ("\r\n# é\r\na=1\r\n", "a:3"), ("", ""), ("#", ""), ("a='''\n\n'''\nb=1", "a:1 b:4"),
            ("a=[\n\n]\nb=1", "a:1 b:4"),
            ("\u{FEFF}a=1", "a:1"),
        ])
    func keys(_ text: String, _ expected: String) throws {
        let items = try TOMLReader(file: "f", text).items.map { "\($0.path.joined(separator: "/")):\($0.line)" }
        #expect(items.joined(separator: " ") == expected)
    }

    @Test(
        "what is given twice, closed or no key is refused on its line",
        arguments: [
            ("a=1\na=2", 2), ("a=1\n'a'=2", 2), ("a=1\na.b=2", 2), ("a.b=1\na=2", 2), ("a.b=1\na.b.c=2", 2),
            ("a={}\na.b=1", 2),
            ("a={b=1}\n[a]", 2), ("a={b.c=1}\n[a.b]", 2), ("a={b={}}\na.b.c=1", 2), ("a=1\n[a]", 2), ("a=1\n[a.b]", 2),
            ("a.b=1\n[a]", 2), ("[a]\n[a]", 2), ("[a]\nb=1\n[a.b]", 3), ("[a]\nb.c=1\n[a.b]", 3),
            ("[a]\nb.c=1\n[a.b.c]", 3),
            ("[a.b]\nc=1\n[a]\nb.d=1", 4), ("[a.b.c]\n[a]\nb.c.d=1", 3), ("[a.b.c]\n[a]\nb.d=1", 3),
            ("[a.b]\n[a]\nb=1", 3),
            ("[a]\n\n[a.b]\n[a]", 4), ("a=[]\n[a]", 2), ("[[a]]", 1), ("a=1\n[[a.b]]", 2),
            ("=1", 1), ("a", 1), ("a 1", 1), ("a.=1", 1), (".a=1", 1), ("a..b=1", 1), ("a b=1", 1), ("é=1", 1),
            ("a:b=1", 1),
            ("\"a=1", 1), ("\"\"\"a\"\"\"=1", 1), ("'''a'''=1", 1), ("'a\nb'=1", 1), ("a\n=1", 1), ("a=\n1", 1),
            ("a==1", 1),
            ("[]", 1), ("[a", 1), ("[a]]", 1), ("[a] b=1", 1), ("[a\n]", 1), ("[a.]", 1), ("[.a]", 1), ("[a b]", 1),
            ("[ [a]]", 1),
            ("a=1 b=2", 1), ("a=1,", 1), ("# \u{1}", 1), ("# \u{7F}", 1), ("a=1\rb=2", 1), ("\r", 1), ("\u{A0}a=1", 1),
            ("\n\u{FEFF}a=1", 2),
        ])
    func wrongKeys(_ text: String, _ line: Int) {
        let error = #expect(throws: ConfigurationError.self) { try TOMLReader(file: "f", text) }
        #expect(error?.line == line, "\(error.debugDescription)")
    }

    @Test("each item of a list has its line")
    func itemLines() throws {
        let text = "[a]\nb = [ 1, # [\n 2, '''\n\n''',\n [\n3],\n\n{ c = [\n4] }, 5,\n]\nd = [6]"
        #expect(try TOMLReader(file: "f", text).items.map(\.itemLines) == [[], [2, 3, 3, 6, 9, 10], [12]])
    }
}
