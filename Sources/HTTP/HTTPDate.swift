import Base

/// Reads a date of HTTP in the form that is written today: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
enum HTTPDate {
    private static let months: [StaticString] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    private static let daysBeforeMonth = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334]

    /// Seconds since 1970; nil for anything else. The day of the week is not looked at.
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
        let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
        let past = year - 1
        let leapDays = past / 4 - past / 100 + past / 400 - (1969 / 4 - 1969 / 100 + 1969 / 400)
        let days =
            (year - 1970) * 365 + leapDays + daysBeforeMonth[month] + (isLeap && month > 1 ? 1 : 0) + day - 1
        return UInt64(((days * 24 + hour) * 60 + minute) * 60 + second)
    }
}
