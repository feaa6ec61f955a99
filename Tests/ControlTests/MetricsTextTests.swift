import Testing

@testable import Control

@Suite struct MetricsTextTests {
    @Test(
        "a label's value ends where its quotation mark is",
        arguments: [
            ("plain", "plain"), ("a\"b", "a\\\"b"), ("a\"\u{301}b", "a\\\"\u{301}b"), ("a\r\nb", "a\r\\nb"),
            ("\\\u{308}", "\\\\\u{308}"),
        ])
    func labels(value: String, escaped: String) {
        #expect(Array(MetricsText.escaped(value).utf8) == Array(escaped.utf8))
    }
}
