import Base

/// A date of HTTP in the present form: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
package enum HTTPDate {
    private static let days: [StaticString] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    private static let months: [StaticString] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    private static let daysBeforeMonth = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334]

    /// Seconds since 1970; nil for any other text. The day of the week is ignored.
    static func unixSeconds(_ text: Span<UInt8>) -> UInt64? {
        guard text.count == 29, isEqual(text, 3..<5, to: ", "), isEqual(text, 25..<29, to: " gmt"),
            text[7] == 0x20, text[11] == 0x20, text[16] == 0x20, text[19] == 0x3A, text[22] == 0x3A,
            let month = months.firstIndex(where: { isEqual(text, 8..<11, to: $0) }),
            let day = decimal(text, 5..<7, maximum: .max), (1...31).contains(day),
            let year = decimal(text, 12..<16, maximum: .max), year >= 1970,
            let hour = decimal(text, 17..<19, maximum: .max), hour < 24,
            let minute = decimal(text, 20..<22, maximum: .max), minute < 60,
            let second = decimal(text, 23..<25, maximum: .max), second <= 60
        else { return nil }
        let past = year - 1
        let leapDays = past / 4 - past / 100 + past / 400 - (1969 / 4 - 1969 / 100 + 1969 / 400)
        let days = (year - 1970) * 365 + leapDays + begin(of: month, in: year) + day - 1
        return UInt64(((days * 24 + hour) * 60 + minute) * 60 + second)
    }

    /// - Parameter unixSeconds: Since 1970, up to the end of the year 9999.
    package static func text(_ unixSeconds: UInt64) -> [UInt8] {
        let days = Int(unixSeconds / 86_400)
        var (year, left) = (1970, days)
        while left >= length(of: year) {
            left -= length(of: year)
            year += 1
        }
        let month = months.indices.last { begin(of: $0, in: year) <= left } ?? 0
        let second = Int(unixSeconds % 86_400)
        var text: [UInt8] = []
        func add(_ number: Int, _ end: StaticString) {
            if number < 10 { text.append("0") }
            text.appendDecimal(UInt64(number))
            text.append(end)
        }
        func add(_ name: StaticString, _ end: StaticString) {
            text.append(name)
            text[text.count - 3] -= 0x20
            text.append(end)
        }
        // 1 January 1970 was a Thursday.
        add(Self.days[(days + 4) % 7], ", ")
        add(left - begin(of: month, in: year) + 1, " ")
        add(months[month], " ")
        add(year, " ")
        add(second / 3600, ":")
        add(second / 60 % 60, ":")
        add(second % 60, " GMT")
        return text
    }

    private static func length(of year: Int) -> Int {
        year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400)) ? 366 : 365
    }

    /// Days of the year before a month, 0 for January.
    private static func begin(of month: Int, in year: Int) -> Int {
        daysBeforeMonth[month] + (month > 1 ? length(of: year) - 365 : 0)
    }
}
