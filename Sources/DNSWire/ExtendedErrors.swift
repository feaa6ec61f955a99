import Base

/// Extended errors (RFC 8914) as an answer stores them: consecutive OPT options at the end of its body.
///
/// A resolver's errors are passed on with their texts, within bounds, since a resolver or a forger may send anything.
struct ExtendedErrors {
    /// The options, whole.
    private(set) var options: [UInt8] = []
    private var count = 0

    /// The most errors of a response. Further errors are dropped. Resolvers send a few at most.
    static let maximumCount = 8
    /// The longest text in octets. A longer text is cut.
    static let maximumTextLength = 255
    /// Octets of an option before its text: its code and length, and the error's own code.
    static let headLength = 6

    /// Appends an error from the data of a resolver's option: INFO-CODE and EXTRA-TEXT (§2).
    ///
    /// - Parameters:
    ///   - range: The range of the data in `message`; an option without a code is skipped.
    ///   - question: The offset of the queried name. The text may repeat the name in the random spelling of the query,
    ///     which clients must not see: words that equal its labels are put in lower case.
    mutating func append(_ message: Span<UInt8>, _ range: Range<Int>, question: Int) {
        guard range.count >= 2, count < ExtendedErrors.maximumCount else { return }
        count += 1
        let text = range.dropFirst(2)
        var end = min(text.upperBound, text.lowerBound + ExtendedErrors.maximumTextLength)
        // Do not cut inside a character of UTF-8.
        if end < text.upperBound { while end > text.lowerBound, message[end] & 0xC0 == 0x80 { end -= 1 } }
        append(code: message.integer16(at: range.lowerBound), textLength: end - text.lowerBound)
        let start = options.count
        options += message.bytes(in: text.lowerBound..<end)
        lowercaseLabels(from: start, of: message, question)
    }

    /// - Parameter text: Cut to ``maximumTextLength`` octets, at the end of a character.
    mutating func append(_ code: ExtendedError, text: String = "") {
        var octets = text.utf8.prefix(ExtendedErrors.maximumTextLength)
        while String(octets) == nil { octets = octets.dropLast() }
        append(code: code.rawValue, textLength: octets.count)
        options += octets
    }

    private mutating func append(code: UInt16, textLength: Int) {
        options.append16(EDNS.extendedErrorOption)
        options.append16(UInt16(2 + textLength))
        options.append16(code)
    }

    private mutating func lowercaseLabels(from start: Int, of message: Span<UInt8>, _ question: Int) {
        var word = start
        for index in start...options.count
        where index == options.count || !Name.isHostnameOctet(lowercased(options[index])) {
            let letters = options[word..<index]
            if letters.contains(where: { lowercased($0) != $0 }), WireName.hasLabel(message, at: question, letters) {
                for letter in word..<index { options[letter] = lowercased(options[letter]) }
            }
            word = index + 1
        }
    }

    /// The option for one error without a text; undefined for nil.
    static func option(_ error: ExtendedError?) -> InlineArray<6, UInt8> {
        let (option, code) = (EDNS.extendedErrorOption, error?.rawValue ?? 0)
        return [UInt8(option >> 8), UInt8(option & 0xFF), 0, 2, UInt8(code >> 8), UInt8(code & 0xFF)]
    }

    /// The range of the first options between `start` and the end of `bytes` that fit into `room` octets.
    static func range(_ bytes: Span<UInt8>, from start: Int, fitting room: Int) -> Range<Int> {
        var end = start
        while let (_, data) = bytes.option(at: end, before: bytes.count), data.upperBound - start <= room {
            end = data.upperBound
        }
        return start..<end
    }

    /// Whether `range` contains whole extended error options and nothing else.
    static func areValid(_ message: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var offset = range.lowerBound
        var count = 0
        while offset < range.upperBound {
            guard let (code, data) = message.option(at: offset, before: range.upperBound), count < maximumCount,
                code == EDNS.extendedErrorOption, (2...2 + maximumTextLength).contains(data.count)
            else { return false }
            offset = data.upperBound
            count += 1
        }
        return true
    }
}

extension Answer {
    /// The codes of the answer's extended errors, in order.
    public var extendedErrors: [ExtendedError] {
        var codes: [ExtendedError] = []
        var offset = body.count - Int(head.extendedErrorLength)
        let bytes = body.span
        while offset >= 0, let (_, data) = bytes.option(at: offset, before: bytes.count), data.count >= 2 {
            codes.append(ExtendedError(rawValue: bytes.integer16(at: data.lowerBound)))
            offset = data.upperBound
        }
        return codes
    }

    /// The text of the answer's first extended error, in plain characters; empty without an error.
    public var extendedErrorText: String {
        let start = body.count - Int(head.extendedErrorLength)
        guard let (_, data) = body.span.option(at: start, before: body.count) else { return "" }
        return String(decoding: body[data].dropFirst(2), as: UTF8.self).plain()
    }

    /// Inserts an error before the answer's present errors.
    /// - Parameter text: For a person; may be empty. At most 255 octets of it are sent.
    public mutating func add(_ error: ExtendedError, text: String = "") {
        var own = ExtendedErrors()
        own.append(error, text: text)
        body.insert(contentsOf: own.options, at: body.count - Int(head.extendedErrorLength))
        head.extendedErrorLength += UInt16(own.options.count)
    }

    /// - Precondition: The answer has no extended errors yet.
    mutating func append(_ errors: ExtendedErrors) {
        precondition(head.extendedErrorLength == 0)
        body += errors.options
        head.extendedErrorLength = UInt16(errors.options.count)
    }
}
