import Base

/// A domain name in uncompressed wire form and ASCII lower case, so that equal names (RFC 4343) have equal octets.
public struct Name: Hashable, Sendable {
    /// Length octets and labels, of which the root's empty label is the last: 1…255 octets.
    public let wire: [UInt8]

    /// The longest name in wire form, in octets (RFC 1035 §2.3.4).
    public static let maximumLength = 255
    /// The longest label, in octets (RFC 1035 §2.3.4).
    public static let maximumLabelLength = 63

    public static let root = Name(canonical: [0])

    /// - Parameter wire: A whole valid name in lower case.
    package init(canonical wire: [UInt8]) { self.wire = wire }

    /// Hashes the name as a whole: hashing each octet is slow.
    public func hash(into hasher: inout Hasher) { hasher.combine(octets: wire) }

    /// Copies a validated uncompressed name, in lower case. Length octets (at most 63) cannot be confused with letters,
    /// so all octets are treated alike.
    ///
    /// - Precondition: The `length` octets at `offset` are a whole valid name, the root label included.
    public init(wire: Span<UInt8>, at offset: Int, length: Int) {
        var copy = wire.bytes(in: offset..<offset + length)
        var octets = copy.mutableSpan
        for index in octets.indices { octets[index] = lowercased(octets[index]) }
        self.wire = copy
    }

    /// The number of labels before the root, such as 0 for the root and 3 for `www.example.com`.
    public var labelCount: Int { Name.labels(wire).count }

    /// The offsets of the labels of a valid uncompressed name, without the root.
    package static func labels(_ wire: [UInt8]) -> [Int] {
        var (labels, offset) = ([Int](), 0)
        while wire[offset] != 0 {
            labels.append(offset)
            offset += Int(wire[offset]) + 1
        }
        return labels
    }

    /// Whether this is `parent` or a name under it; `notexample.com` is not within `example.com`.
    public func isWithin(_ parent: Name) -> Bool { parent.contains(wire.span) }

    /// Whether a name in wire form, in any case of letters, is this name or under it; false for invalid octets.
    public func contains(_ other: Span<UInt8>) -> Bool {
        var offset = 0
        while other.count - offset > wire.count { offset += Int(other[offset]) + 1 }
        guard other.count - offset == wire.count else { return false }
        // Eight octets at a time: the names in each answer are compared.
        let wire = wire.span
        var index = 0
        while index &+ 8 <= wire.count {
            guard other.integer64(at: offset &+ index).asciiLowercased == wire.integer64(at: index) else {
                return false
            }
            index &+= 8
        }
        while index < wire.count {
            guard lowercased(other[offset &+ index]) == wire[index] else { return false }
            index &+= 1
        }
        return true
    }

    /// Whether the name has a label, and each label has only letters, digits, `-` and `_`, so that no octet has a
    /// meaning in the syntax of a URL or a list.
    public var isHostname: Bool {
        let wire = wire.span
        var start = 1
        while wire[start &- 1] > 0 {
            let end = start &+ Int(wire[start &- 1])
            while start < end {
                if !Name.isHostnameOctet(wire[start]) { return false }
                start &+= 1
            }
            start &+= 1
        }
        return wire.count > 1
    }

    /// Appends the name as text, without a final dot. False if it is not ``isHostname``; then nothing is appended.
    public func appendHostname(to text: inout [UInt8]) -> Bool {
        guard isHostname else { return false }
        let start = text.count
        // The length octets of all labels but the first become the dots.
        text.append(contentsOf: wire[1..<wire.count - 1])
        var dot = Int(wire[0])
        while start + dot < text.count {
            let length = Int(text[start + dot])
            text[start + dot] = UInt8(ascii: ".")
            dot += length + 1
        }
        return true
    }

    /// - Parameter octet: Not an upper-case letter; names here have none.
    @inline(__always)
    package static func isHostnameOctet(_ octet: UInt8) -> Bool {
        // Most octets are letters: saves 90 instructions for a name of 24 octets.
        if octet &- UInt8(ascii: "a") < 26 { return true }
        // One bit for each allowed octet: in 0…63 "-" and the digits, in 64…127 "_" and the lower-case letters.
        let allowed: UInt64 = octet < 64 ? 0x03FF_2000_0000_0000 : 0x07FF_FFFE_8000_0000
        return octet < 128 && allowed >> UInt64(octet & 63) & 1 == 1
    }
}

extension Name: CustomStringConvertible {
    /// The presentation form without the final dot, in lower case; the root is `.`. Octets with a meaning in zone files
    /// are escaped with a backslash, octets outside printable ASCII as `\DDD` (RFC 1035 §5.1, RFC 4343 §2.1).
    public var description: String {
        var text: [UInt8] = []
        Name.append(wire.span, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// The ``description`` with the final dot.
    var absolute: String { wire.count == 1 ? "." : "\(self)." }

    /// Appends the text of a name in the form of ``description``; false: it has other octets than a host name.
    /// - Parameter wire: The name in wire form, in any case of letters.
    @discardableResult
    public static func append(_ wire: Span<UInt8>, to text: inout [UInt8]) -> Bool {
        guard wire.count > 1 else {
            text.append(UInt8(ascii: "."))
            return true
        }
        var isHostname = true
        // `next` is the next length octet. The root's length octet ends the text, as does the end of an invalid name.
        var next = Int(wire[0]) + 1
        for index in 1..<wire.count - 1 {
            let octet = lowercased(wire[index])
            if index == next {
                text.append(UInt8(ascii: "."))
                next += Int(wire[index]) + 1
            } else if isHostnameOctet(octet) {
                text.append(octet)
            } else {
                isHostname = false
                append(escaped: octet, to: &text)
            }
        }
        return isHostname
    }

    private static func append(escaped octet: UInt8, to text: inout [UInt8]) {
        guard 0x21...0x7E ~= octet else { return text.append(contentsOf: ("\\" + decimalEscape(octet)).utf8) }
        if ".\\\"();@$".utf8.contains(octet) { text.append(UInt8(ascii: "\\")) }
        text.append(octet)
    }

    /// An unprintable octet as `\DDD`.
    static func decimalEscape(_ octet: UInt8) -> String {
        let digits = String(octet)
        return String(repeating: "0", count: 3 - digits.count) + digits
    }
}

extension Name {
    /// Parses presentation form: labels between dots, the final dot optional, `\X` and `\DDD` escapes (RFC 1035 §5.1).
    ///
    /// Nil: an empty text or label, a label over 63 or a name over 255 octets, a broken escape, or an octet that is not
    /// printable ASCII (international names must come in their `xn--` form).
    public init?(_ text: String) {
        guard text != "." else {
            self = .root
            return
        }
        var wire: [UInt8] = [0]
        var lengthOffset = 0
        var octets = text.utf8.makeIterator()
        while let octet = octets.next() {
            switch octet {
            case UInt8(ascii: "."):
                guard wire[lengthOffset] > 0 else { return nil }
                lengthOffset = wire.count
                wire.append(0)
                continue
            case UInt8(ascii: "\\"):
                guard let escaped = Name.escaped(&octets) else { return nil }
                wire.append(lowercased(escaped))
            case 0x21...0x7E: wire.append(lowercased(octet))
            default: return nil
            }
            guard wire[lengthOffset] < Name.maximumLabelLength, wire.count < Name.maximumLength else { return nil }
            wire[lengthOffset] += 1
        }
        guard wire.count > 1 else { return nil }
        // Without a final dot the last label is still open: the root closes it.
        if wire[lengthOffset] > 0 { wire.append(0) }
        self.init(canonical: wire)
    }

    /// The octet that an escape means, from the characters after the backslash; nil if the escape is broken.
    private static func escaped(_ octets: inout String.UTF8View.Iterator) -> UInt8? {
        func digit(_ octet: UInt8) -> Int? { octet >= 0x30 && octet <= 0x39 ? Int(octet) - 0x30 : nil }
        guard let first = octets.next() else { return nil }
        guard let hundreds = digit(first) else { return first >= 0x21 && first <= 0x7E ? first : nil }
        guard let second = octets.next(), let tens = digit(second), let third = octets.next(), let ones = digit(third)
        else { return nil }
        return UInt8(exactly: hundreds * 100 + tens * 10 + ones)
    }
}

/// A set of names, for example in an operator's command.
public enum NameScope: Hashable, Sendable {
    case only(Name)
    /// The name and all names under it.
    case under(Name)

    /// All names.
    public static let all = NameScope.under(.root)

    /// Whether a name is in the scope.
    public func contains(_ name: Name) -> Bool {
        switch self {
        case .only(let only): name == only
        case .under(let parent): name.isWithin(parent)
        }
    }
}
