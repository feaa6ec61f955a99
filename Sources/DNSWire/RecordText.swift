import Base

extension DecodedRecord: CustomStringConvertible {
    /// A line of a zone file, in the form that dig prints: `www.example.com. 60 IN A 192.0.2.1`.
    public var description: String { "\(name.absolute) \(ttl) \(recordClass) \(type) \(data)" }

    /// The RDATA in presentation form. A, AAAA, CNAME, DNAME, NS, PTR, MX, TXT, SOA, SRV, CAA and HINFO have the form
    /// of their RFCs. Other types, and RDATA that does not fit its type, have the form of RFC 3597 §5, `\# 4 c0000201`.
    public var data: String { knownData ?? opaqueData }

    private var opaqueData: String {
        let digits = rdata.map { octet in (octet < 16 ? "0" : "") + String(octet, radix: 16) }
        return rdata.isEmpty ? "\\# 0" : "\\# \(rdata.count) \(digits.joined())"
    }

    private var knownData: String? {
        let bytes = rdata.span
        switch type {
        case .a, .aaaa:
            guard rdata.count == (type == .a ? 4 : 16) else { return nil }
            return IPAddress(bytes: bytes)?.description
        case .cname, .dname, .ns, .ptr: return names(1, at: 0, suffix: 0)
        case .mx: return names(1, at: 2, suffix: 0).map { "\(bytes.integer16(at: 0)) \($0)" }
        case .srv:
            return names(1, at: 6, suffix: 0).map {
                "\(bytes.integer16(at: 0)) \(bytes.integer16(at: 2)) \(bytes.integer16(at: 4)) \($0)"
            }
        case .soa:
            return names(2, at: 0, suffix: 20).map { names in
                let fields = (1...5).reversed().map { String(bytes.integer32(at: rdata.count - 4 * $0)) }
                return ([names] + fields).joined(separator: " ")
            }
        case .txt: return strings()?.joined(separator: " ")
        case .hinfo:
            guard let strings = strings(), strings.count == 2 else { return nil }
            return strings.joined(separator: " ")
        case .caa: return authorization
        default: return nil
        }
    }

    /// `count` uncompressed names from `offset` on, followed by `suffix` octets; nil: the RDATA has another form.
    private func names(_ count: Int, at offset: Int, suffix: Int) -> String? {
        var offset = offset
        let bytes = rdata.span
        var names: [String] = []
        for _ in 0..<count {
            guard let end = Name.uncompressedEnd(bytes, at: offset) else { return nil }
            names.append(Name(wire: bytes, at: offset, length: end - offset).absolute)
            offset = end
        }
        return offset + suffix == rdata.count ? names.joined(separator: " ") : nil
    }

    /// The whole RDATA as character-strings (RFC 1035 §3.3), quoted.
    private func strings() -> [String]? {
        var offset = 0
        var strings: [String] = []
        while offset < rdata.count {
            let end = offset + 1 + Int(rdata[offset])
            guard end <= rdata.count else { return nil }
            strings.append(DecodedRecord.quoted(rdata[offset + 1..<end]))
            offset = end
        }
        return strings.isEmpty ? nil : strings
    }

    /// CAA: flags, tag, value (RFC 8659 §4.1).
    private var authorization: String? {
        guard rdata.count >= 2, rdata[1] > 0, rdata.count >= 2 + Int(rdata[1]) else { return nil }
        let tag = rdata[2..<2 + Int(rdata[1])]
        guard tag.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        return "\(rdata[0]) \(String(decoding: tag, as: UTF8.self)) \(DecodedRecord.quoted(rdata[tag.endIndex...]))"
    }

    private static func quoted(_ octets: ArraySlice<UInt8>) -> String {
        var text = "\""
        for octet in octets {
            switch octet {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                text += "\\"
                text.unicodeScalars.append(Unicode.Scalar(octet))
            case 0x20...0x7E: text.unicodeScalars.append(Unicode.Scalar(octet))
            default: text += "\\" + Name.decimalEscape(octet)
            }
        }
        return text + "\""
    }
}
