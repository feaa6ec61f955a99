import DNSWire
import Testing

/// How a name was spelled on its way to a resolver does not show in what a client gets.
struct RepeatedLabelsTests {
    /// A name's octets with its letters as they are; `*` at the end: a pointer to the question's second label.
    private static func wire(_ text: String) -> [UInt8] {
        let isCompressed = text.hasSuffix("*")
        let labels = text.split(separator: ".").filter { $0 != "*" }
        return labels.flatMap { [UInt8($0.utf8.count)] + $0.utf8 } + (isCompressed ? [0xC0, 0x10] : [0])
    }

    private static func record(_ owner: String, _ type: RecordType, _ data: [UInt8]) -> [UInt8] {
        wire(owner) + [0, UInt8(type.rawValue), 0, 1, 0, 0, 0, 30, 0, UInt8(data.count)] + data
    }

    /// The records as they are kept from a response to www.example.com.
    /// - Parameters:
    ///   - owner: to which an alias leads, since records of other names are not passed on; the alias is not given back.
    ///   - proofs: Records of the authority section.
    private static func kept(
        _ records: [[UInt8]], of owner: String = "www.example.com", proofs: [[UInt8]] = []
    ) throws(WireError) -> [UInt8] {
        let isAlias = owner.lowercased() != "www.example.com"
        let alias = isAlias ? record("www.example.com", .cname, wire(owner)) : []
        let count = UInt8(records.count + (isAlias ? 1 : 0))
        let head: [UInt8] = [0x12, 0x34, 0x81, 0x80, 0, 1, 0, count, 0, UInt8(proofs.count), 0, 0]
        let message = head + wire("wWw.ExamPle.CoM") + [0, 1, 0, 1] + alias + records.joined() + proofs.joined()
        return Array(try read(message).answer.body[(21 + alias.count)...])
    }

    private typealias Row = (what: String, owner: String, type: RecordType, sent: String, shown: String)

    @Test(
        arguments: [
            ("made for a DNAME", "www.example.com", .cname, "wWw.New.net", "www.New.net"),
            ("of another day's spelling", "www.example.com", .cname, "WWW.Other.cOM", "www.Other.com"),
            ("an owner that is not compressed", "wWw.ExamPle.CoM", .cname, "New.net", "New.net"),
            ("further down the chain", "wWw.New.net", .cname, "WwW.Last.neT", "www.Last.net"),
            ("a DNAME's own name", "ExamPle.CoM", .dname, "New.neT", "New.neT"),
            ("a name server of the zone", "ExamPle.CoM", .ns, "NS1.eXAMPLE.coM", "NS1.example.com"),
            ("compressed", "ExamPle.*", .ns, "NS1.ExamPle.*", "NS1.example.*"),
            (
                "a printer", "_ipp._tcp.Example.com", .ptr, "The Printer._ipp._TCP.EXAMPLE.Com",
                "The Printer._ipp._tcp.example.com"
            ),
            ("nothing repeated", "www.example.com", .cname, "WWW1.EXAMPLES.NET", "WWW1.EXAMPLES.NET"),
            ("the root", "www.example.com", .cname, "", ""),
        ] as [Row])
    private func names(_ row: Row) throws {
        let sent = Self.record(row.owner, row.type, Self.wire(row.sent))
        #expect(
            try Self.kept([sent], of: row.owner) == Self.record(row.owner.lowercased(), row.type, Self.wire(row.shown)))
    }

    @Test func namesBehindNumbersAndBeforeThem() throws {
        let numbers = [UInt8](repeating: 0x41, count: 20)
        for (type, before, names, after) in [
            (.mx, [0, 0x41], ["Mail.EXAMPLE.com"], []),
            (.srv, [0x41, 0x42, 0x43, 0x44, 0x45, 0x46], ["Host.Example.com"], []),
            (.soa, [], ["NS.Example.com", "Admin.wWw.Example.com"], numbers),
        ] as [(RecordType, [UInt8], [String], [UInt8])] {
            let data = before + names.flatMap(Self.wire) + after
            let shown = names.map {
                $0.replacing("EXAMPLE", with: "example").replacing("Example", with: "example")
                    .replacing("wWw", with: "www")
            }
            #expect(
                try Self.kept([Self.record("Example.com", type, data)], of: "Example.com")
                    == Self.record("example.com", type, before + shown.flatMap(Self.wire) + after))
        }
    }

    /// What signatures are made over with its letters, and what is no name.
    @Test(arguments: [RecordType.nsec, .txt, .svcb, RecordType(rawValue: 250 - 1)])
    func otherDataStays(type: RecordType) throws {
        let record = Self.record("www.example.com", type, Self.wire("WwW.ExAmPle.COM"))
        #expect(try Self.kept([record]) == record)
    }

    /// A name that others point to is shown in one way only.
    @Test func aSharedLabelKeepsItsFirstMeaning() throws {
        let pointer = Self.record("www.example.com", .ptr, Self.wire("The Printer.*"))
        // The owner is a pointer to the printer's name.
        let at = 33 + pointer.count - 14
        let text = [0xC0, UInt8(at)] + Self.record("", .nsec, [1, 0x41]).dropFirst()
        #expect(try Self.kept([pointer], proofs: [text]) == pointer + text)
    }

    /// In small letters the pointer that is hidden in the label leads to itself: the message is not what it seems.
    @Test func aPointerHiddenInALabelIsNoWayToALoop() throws {
        // At 33: a label of two octets, a pointer to 0x41 - which is "A" - and behind it a name that begins inside of it.
        let hidden: [UInt8] = [2, 0xC0, 0x41, 0]
        let filler = Self.record("www.example.com", .txt, [UInt8](repeating: 0, count: 2))
        let owner = hidden + [0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]
        let before = 33 + filler.count
        let user = [0xC0, UInt8(before + 1)] + Self.record("", .a, [192, 0, 2, 2]).dropFirst()
        #expect(throws: WireError.self) { try Self.kept([filler, owner, user]) }
    }
}
