import Base

/// Reads a body in chunks (RFC 9112 §7.1), in any pieces. Extensions and trailers are dropped.
///
/// Each line of the body ends with CR LF and has no other control character: a proxy on the way that interprets a
/// single LF or CR in another way than this reader would see other requests in the same octets.
struct ChunkReader {
    /// The longest line with a chunk's size, with its extensions, in octets.
    static let lineLimit = 1024
    /// The octets of such a line that do not count against ``spare``, since no size within the limit needs more digits.
    private static let plainLine = 8

    private enum State {
        case size
        case octets(remaining: Int)
        case end
        case trailers
        case whole
    }

    private var state = State.size
    private var line: [UInt8] = []
    /// Octets that all extensions, leading zeros and trailers together may still take.
    private var spare = HTTPResponseReader.headLimit

    var isWhole: Bool { if case .whole = state { true } else { false } }

    /// Octets of a line that has not ended yet.
    var held: Int { line.count }

    /// - Parameter limit: The longest body, in octets.
    /// - Returns: How many of `bytes` belong to this body. If the body is not complete, all of them do.
    mutating func read(_ bytes: ArraySlice<UInt8>, into body: inout [UInt8], limit: Int) throws(HTTPError) -> Int {
        var position = bytes.startIndex
        while position < bytes.endIndex, !isWhole {
            if case .octets(let remaining) = state {
                let taken = min(remaining, bytes.endIndex - position)
                body += bytes[position..<position + taken]
                position += taken
                state = taken == remaining ? .end : .octets(remaining: remaining - taken)
            } else {
                line.append(bytes[position])
                position += 1
                try checkLength()
                guard line.last == UInt8(ascii: "\n") else { continue }
                try endLine(room: limit - body.count)
                line.removeAll(keepingCapacity: true)
            }
        }
        return position - bytes.startIndex
    }

    private func checkLength() throws(HTTPError) {
        switch state {
        case .size: guard line.count <= Self.lineLimit else { throw .badChunk }
        case .end: guard line.count <= 2 else { throw .badChunk }
        default: guard line.count <= spare + 2 else { throw .headTooLong }
        }
    }

    private mutating func endLine(room: Int) throws(HTTPError) {
        let length = line.count - 2
        guard length >= 0, line[length] == UInt8(ascii: "\r") else { throw .badChunk }
        for octet in line[..<length] where octet < 0x20 && octet != 0x09 || octet == 0x7F { throw .badChunk }
        switch state {
        case .size:
            let size = try Self.size(line.span.extracting(..<length), room: room)
            spare -= max(0, length - Self.plainLine)
            guard spare >= 0 else { throw .badChunk }
            state = size == 0 ? .trailers : .octets(remaining: size)
        case .end:
            state = .size
        default:
            spare -= length
            if length == 0 { state = .whole }
        }
    }

    /// The size in a chunk's first line: hexadecimal digits, then extensions.
    private static func size(_ text: Span<UInt8>, room: Int) throws(HTTPError) -> Int {
        let end = firstIndex(of: UInt8(ascii: ";"), in: text, text.indices) ?? text.count
        let digits = trimmed(text, 0..<end)
        guard !digits.isEmpty, digits.lowerBound == 0 else { throw .badChunk }
        var size = 0
        for index in digits {
            guard let digit = Hexadecimal.value(text[index]) else { throw .badChunk }
            // Beyond the limit the exact size does not matter. The size stays small, so that it cannot overflow.
            size = min(size * 16 + Int(digit), room + 1)
        }
        guard size <= room else { throw .bodyTooLong }
        return size
    }
}
