internal import Glibc

/// A moment's date and time as text.
package struct TimeText {
    /// `HH:MM:SS`
    package let time: String
    /// `YYYY-MM-DDTHH:MM:SS` (RFC 3339, without the zone)
    package let dated: String

    /// - Parameter seconds: The moment, in seconds since 1970.
    package init(utc seconds: UInt64) { unsafe self.init(seconds) { unsafe gmtime_r($0, $1) } }
    /// - Parameter seconds: The moment, in seconds since 1970.
    package init(local seconds: UInt64) { unsafe self.init(seconds) { unsafe localtime_r($0, $1) } }

    private init(
        _ seconds: UInt64, _ split: (UnsafePointer<time_t>, UnsafeMutablePointer<tm>) -> UnsafeMutablePointer<tm>?
    ) {
        var seconds = time_t(seconds)
        // Only numbers are read; the pointer to the zone's name is not followed.
        var parts = unsafe tm()
        _ = unsafe split(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        time = unsafe "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        dated = unsafe "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))T\(time)"
    }
}
