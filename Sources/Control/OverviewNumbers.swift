import Counters

/// Numbers as people read them.
extension Overview {
    /// A share, 0…1, in whole per cent; 0 and 100 only if they are exact, else `under 1 %` and `over 99 %`.
    static func percent(_ share: Double) -> String {
        if share > 0, share < 0.01 { return "under 1 %" }
        return share > 0.99 && share < 1 ? "over 99 %" : "\(Int((share * 100).rounded())) %"
    }

    /// A number with commas: `1,234,567`.
    static func grouped(_ number: UInt64) -> String {
        number < 1000 ? "\(number)" : "\(grouped(number / 1000)),\(String(1000 + number % 1000).dropFirst())"
    }

    /// `1 answer`, `2,000 answers`.
    static func counted(_ number: UInt64, _ noun: String) -> String {
        "\(grouped(number)) \(noun)\(number == 1 ? "" : "s")"
    }

    /// A duration with two significant digits: `0.25 ms`, `2.5 ms`, `21 ms`, `1.5 s`.
    static func milliseconds(_ value: Double) -> String {
        if value >= 1000 { return "\(decimal(value / 1000, 1)) s" }
        return "\(decimal(value, value < 1 ? 2 : value < 10 ? 1 : 0)) ms"
    }

    /// - Parameter nanoseconds: A bound of the histogram; nil for a duration above all bounds.
    static func milliseconds(nanoseconds: UInt64?) -> String {
        guard let nanoseconds else {
            return "over \(milliseconds(nanoseconds: Durations.upperBound(Durations.bucketCount - 2) ?? 0))"
        }
        return nanoseconds < 100_000
            ? "\((nanoseconds + 500) / 1000) µs" : milliseconds(Double(nanoseconds) / 1_000_000)
    }

    /// A number with at most `decimals` decimals, without zeros at the end.
    static func decimal(_ value: Double, _ decimals: Int) -> String {
        if value < 0 { return "-" + decimal(-value, decimals) }
        var scale = 1
        for _ in 0..<decimals { scale *= 10 }
        var scaled = Int((value * Double(scale)).rounded())
        while scale > 1, scaled % 10 == 0 { (scaled, scale) = (scaled / 10, scale / 10) }
        return scale == 1 ? "\(scaled)" : "\(scaled / scale).\(String(scale + scaled % scale).dropFirst())"
    }

    static func octets(_ count: Int) -> String {
        if count < 10_000 { return "\(count) B" }
        if count < 10 << 20 { return "\(decimal(Double(count) / 1024, 0)) KiB" }
        return "\(decimal(Double(count) / Double(1 << 20), 1)) MiB"
    }

    /// A duration in its two largest units: `3 d 4 h`.
    static func span(_ seconds: UInt64) -> String {
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3600 { return "\(seconds / 60) min" }
        if seconds < 86_400 { return "\(seconds / 3600) h \(seconds % 3600 / 60) min" }
        return "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
    }
}
