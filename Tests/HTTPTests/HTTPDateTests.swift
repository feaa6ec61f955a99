import Testing

@testable import HTTP

@Suite struct HTTPDateTests {
    /// The first of RFC 9110 §5.6.7, the others from Python's datetime.
    @Test(
        arguments: [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (1_798_675_199, "Wed, 30 Dec 2026 23:59:59 GMT"), (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] as [(UInt64, String)])
    func writtenAndRead(_ seconds: UInt64, _ text: String) {
        #expect(String(decoding: HTTPDate.text(seconds), as: UTF8.self) == text)
        #expect(HTTPDate.unixSeconds(Array(text.utf8).span) == seconds)
    }

    @Test func eachDayOfAnAgeIsReadAsItWasWritten() {
        for day in 0..<60_000 as Range<UInt64> {
            let seconds = day * 86_400 + day % 86_400
            #expect(HTTPDate.unixSeconds(HTTPDate.text(seconds).span) == seconds)
        }
    }
}
