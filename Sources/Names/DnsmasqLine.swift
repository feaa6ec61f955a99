import Base

/// A line of dnsmasq's settings that names domains: `server=/a.example/b.example/192.0.2.1`, `local=/a.example/`,
/// `address=/a.example/0.0.0.0`. Some lists of names have this form; the server is ignored.
struct DnsmasqLine {
    /// The names, with a slash before and after each.
    private let names: Range<Int>

    private static let keys: [StaticString] = ["server=/", "address=/", "local=/"]

    /// - Parameter whole: The line with its comment, since a `#` may be part of the line.
    /// - Returns: Nil if the line has another form, or gives names an address other than an unreachable one.
    init?(_ text: Span<UInt8>, _ whole: Range<Int>) {
        let line = trimmed(text, whole)
        guard let key = Self.keys.first(where: { isEqual(text, line.prefix($0.utf8CodeUnitCount), to: $0) }) else {
            return nil
        }
        let untilBlank = line.lowerBound..<(firstIndex(of: UInt8(ascii: " "), in: text, line) ?? line.upperBound)
        let end = firstIndex(of: UInt8(ascii: "\t"), in: text, untilBlank) ?? untilBlank.upperBound
        let start = line.lowerBound + key.utf8CodeUnitCount - 1
        guard let last = lastIndex(of: UInt8(ascii: "/"), in: text, start..<end), last > start else { return nil }
        names = start..<last + 1
        let value = last + 1..<end
        guard lowercased(text[line.lowerBound]) == UInt8(ascii: "a"), !value.isEmpty, !isEqual(text, value, to: "#")
        else { return }
        guard IPAddress(parsing: text.extracting(value))?.isNoHost ?? false else { return nil }
    }

    /// Calls `take` with each name; returns whether all were taken.
    func allNames(_ text: Span<UInt8>, _ take: (Range<Int>) -> Bool) -> Bool {
        var start = names.lowerBound + 1
        var areTaken = true
        while let end = firstIndex(of: UInt8(ascii: "/"), in: text, start..<names.upperBound) {
            areTaken = take(start..<end) && areTaken
            start = end + 1
        }
        return areTaken
    }
}
