/// Iterates over the lines of a text.
package struct TextLines {
    /// The number of the last line, from 1.
    package private(set) var number = 0
    private var start = 0

    package init() {}

    /// The next line, without its end; nil after the last line. Byte order marks before the line are skipped: files
    /// that were joined from several files contain them.
    package mutating func next(in text: Span<UInt8>) -> Range<Int>? {
        guard start < text.count else { return nil }
        number += 1
        let end = firstIndex(of: UInt8(ascii: "\n"), in: text, start..<text.count) ?? text.count
        defer { start = end + 1 }
        while end - start >= 3, text[start] == 0xEF, text[start + 1] == 0xBB, text[start + 2] == 0xBF { start += 3 }
        return start..<end
    }
}

/// Removes the first word of a part of a text; nil: the part has no word.
package func takeWord(_ text: Span<UInt8>, _ part: inout Range<Int>) -> Range<Int>? {
    guard let start = part.first(where: { !isWhiteSpace(text[$0]) }) else { return nil }
    let end = (start..<part.upperBound).first { isWhiteSpace(text[$0]) } ?? part.upperBound
    part = end..<part.upperBound
    return start..<end
}
