import Base
import DNSWire
import Testing

/// HTTPS and SVCB records of names whose addresses come from elsewhere (RFC 9460).
@Suite struct ServiceBindingTests {
    private static let hints: [IPAddress] = [.v4(1, 2, 3, 4), .v4(1, 2, 3, 5), IPAddress("2001:db8::1")!]

    /// What becomes of one record of the name that is asked; nil: it is left out.
    private static func bound(_ data: String, to hints: [IPAddress] = hints) -> [UInt8]? {
        let record = Wire.record(Wire.pointer, .https, hex(data))
        return Wire.answer(.https, [record]).bound(to: hints, for: 30)?.records().first?.rdata
    }

    @Test(
        "RFC 9460 appendix D: records without hints stay as they are",
        arguments: [
            "0001 00", "0010 03666f6f076578616d706c6503636f6d00 0003 0002 0035",
            "0001 03666f6f076578616d706c6503636f6d00 029b 0005 68656c6c6f",
            "0001 03666f6f076578616d706c6503636f6d00 029b 0009 68656c6c6fd2716f6f",
        ])
    func vectors(_ data: String) { #expect(Self.bound(data, to: []) == hex(data)) }

    @Test("RFC 9460 §7.3: hints of the owner are replaced, and stand in the order of their keys")
    func replaced() {
        let before =
            "0001 00 0001 0003 026832 0004 0004 c0000201 0005 0004 deadbeef 0006 0010 20010db8000000000000000000000099"
        #expect(
            Self.bound(before)
                == hex(
                    "0001 00 0001 0003 026832 0004 0008 01020304 01020305 0005 0004 deadbeef "
                        + "0006 0010 20010db8000000000000000000000001"))
        #expect(Self.bound(before, to: []) == hex("0001 00 0001 0003 026832 0005 0004 deadbeef"))
        // Where there were none, too: they say the same as A and AAAA.
        #expect(
            Self.bound("0001 00 0001 0003 026832", to: [.v4(1, 2, 3, 4)])
                == hex("0001 00 0001 0003 026832 0004 0004 01020304"))
    }

    @Test("RFC 9460 §2.5: those of another target are left out, for its addresses are looked up")
    func otherTarget() {
        let target = "03666f6f076578616d706c6503636f6d00"
        #expect(Self.bound("0001 \(target) 0004 0004 c0000201") == hex("0001 \(target)"))
        let own = "03777777076578616d706c6503636f6d00"
        #expect(
            Self.bound("0001 \(own) 0004 0004 c0000201", to: [.v4(1, 2, 3, 4)])
                == hex("0001 \(own) 0004 0004 01020304"))
    }

    @Test("RFC 9460 §2.4.2: an alias leads to its target, and says nothing else")
    func alias() {
        let target = "03666f6f076578616d706c6503636f6d00"
        #expect(Self.bound("0000 \(target)") == hex("0000 \(target)"))
        #expect(Self.bound("0000 \(target) 0004 0004 c0000201") == hex("0000 \(target)"))
    }

    @Test("RFC 9460 §8: what is left out is not mandatory")
    func mandatory() {
        let before = "0010 00 0000 0004 0001 0004 0001 0009 026832 0568332d3139 0004 0004 c0000201"
        #expect(
            Self.bound(before, to: [])
                == hex("0010 00 0000 0002 0001 0001 0009 026832 0568332d3139"))
        #expect(
            Self.bound(before, to: [.v4(1, 2, 3, 4)])
                == hex("0010 00 0000 0004 0001 0004 0001 0009 026832 0568332d3139 0004 0004 01020304"))
        #expect(Self.bound("0001 00 0000 0002 0004 0004 0004 c0000201", to: []) == hex("0001 00"))
    }

    @Test("the hints of one family are left out, with the signature of their record")
    func withoutHints() throws {
        let records = [
            Wire.record(
                Wire.pointer, .https,
                hex("0001 00 0000 0002 0006 0004 0004 c0000201 0006 0010 20010db8000000000000000000000001")),
            Wire.record(Wire.pointer, .rrsig, [0, 65] + [UInt8](repeating: 7, count: 20)),
        ]
        let answer = Wire.answer(.https, records)
        let ipv4 = try #require(answer.withoutHints(ipv4: false, ipv6: true)).records()
        #expect(ipv4.map(\.rdata) == [hex("0001 00 0004 0004 c0000201")] && ipv4[0].ttl == answer.records()[0].ttl)
        #expect(answer.withoutHints(ipv4: true, ipv6: true)?.records().map(\.rdata) == [hex("0001 00")])
        #expect(answer.withoutHints(ipv4: false, ipv6: false) == nil)
        #expect(Wire.answer(.https, [records[1]]).withoutHints(ipv4: true, ipv6: true) == nil)
    }

    @Test("a record that a lenient client might read goes with its hints")
    func invalidWithoutHints() throws {
        let valid = Wire.record(Wire.pointer, .https, hex("0001 00"))
        let invalid = Wire.record(Wire.pointer, .https, hex("0001 00 0004 0004 c0000201 0001 0003 026832"))
        let rest = try #require(Wire.answer(.https, [valid, invalid]).withoutHints(ipv4: true, ipv6: false))
        #expect(rest.records().map(\.rdata) == [hex("0001 00")])
    }

    @Test("hints do not stay because the names of the answer have too many labels")
    func manyLabelsWithoutHints() throws {
        let target = [[UInt8]](repeating: [1, UInt8(ascii: "b")], count: 110).joined() + [0]
        let offset = 12 + Wire.asked.wire.count + 4 + 12
        let owner: [UInt8] = [0xC0, UInt8(offset)]
        let record = Wire.record(owner, .https, hex("0001 00 0004 0004 c0000201"))
        let answer = Wire.answer(
            .https, [Wire.record(Wire.pointer, .cname, Array(target))] + [[UInt8]](repeating: record, count: 170))
        let rest = try #require(answer.withoutHints(ipv4: true, ipv6: false))
        #expect(rest.records().isEmpty && !rest.head.authenticData)
    }

    @Test(
        "RFC 9460 §2.2: what is not valid is left out",
        arguments: [
            "", "00", "0001", "0001 c00c", "0001 00 0003 0002 0035 0001 0003 026832",
            "0001 00 0001 0003 026832 0001 0003 026832",
            "0001 00 0004", "0001 00 0004 0004 c00002", "0001 03666f6f",
            // alpn: empty, an empty name, a name that is longer than the value.
            "0001 00 0001 0000", "0001 00 0001 0001 00", "0001 00 0001 0004 02683200", "0001 00 0001 0003 036832",
            "0001 00 0001 0004 02683201",
            // no-default-alpn with a value; a port of one octet, of three and of none.
            "0001 00 0001 0003 026832 0002 0001 00", "0001 00 0003 0001 35", "0001 00 0003 0003 000035",
            "0001 00 0003 0000",
            // mandatory: empty, half a key, itself, not in ascending order, twice, a key that is not there.
            "0001 00 0000 0000 0001 0003 026832", "0001 00 0000 0003 000100 0001 0003 026832",
            "0001 00 0000 0002 0000 0001 0003 026832", "0001 00 0000 0004 0003 0001 0001 0003 026832 0003 0002 0035",
            "0001 00 0000 0004 0001 0001 0001 0003 026832", "0001 00 0000 0002 0003 0001 0003 026832",
            "0001 00 0000 0004 0001 0003 0001 0003 026832 0004 0004 c0000201",
            // Hints that are no addresses, though others take their place.
            "0001 00 0004 0000", "0001 00 0004 0003 c00002", "0001 00 0006 0004 c0000201", "0001 00 0006 0000",
        ])
    func invalid(_ data: String) { #expect(Self.bound(data) == nil) }

    @Test("RFC 9460 §2.4.1: an alias of the name that is asked is followed, and leads to its addresses")
    func behindAnAlias() throws {
        let target = Name("cdn.example.net")!
        let records = [
            Wire.record(Wire.pointer, .cname, target.wire),
            Wire.record(target.wire, .https, hex("0001 00 0004 0004 c0000201")),
            Wire.record(target.wire, .rrsig, [0, 65] + [UInt8](repeating: 7, count: 20)),
        ]
        let bound = try #require(Wire.answer(.https, records).bound(to: [.v4(1, 2, 3, 4)], for: 30))
        #expect(bound.records().map(\.type) == [.cname, .https])
        #expect(bound.records()[1].rdata == hex("0001 00 0004 0004 01020304"))
        #expect(bound.records().map(\.ttl) == [60, 30])
        #expect(bound.keep == 30)
        #expect(!bound.head.authenticData)
    }

    @Test("values that are right stay, and those of an alias are ignored")
    func valid() {
        for data in [
            "0001 00 0001 0006 026832 026833 0002 0000", "0001 00 0003 0002 0000",
            "0001 00 0000 0004 0001 0003 0001 0003 026832 0003 0002 0035",
            "0001 00 0005 0000", "0001 00 fff0 0001 00",
        ] { #expect(Self.bound(data, to: []) == hex(data), "\(data)") }
        #expect(Self.bound("0000 03666f6f00 0001 0000") == hex("0000 03666f6f00"))
    }

    @Test("RFC 9460 §4.2: the resolver's addresses are not passed on, wherever it puts them", arguments: [0, 1, 2])
    func addressesBeside(_ section: Int) throws {
        let (v6, other) = ([UInt8](repeating: 6, count: 16), Name("b.example")!)
        let strangers = [
            Wire.record(Wire.pointer, .a, [6, 6, 6, 6]), Wire.record(Wire.pointer, .aaaa, v6),
            Wire.record(other.wire, .a, [6, 6, 6, 6]),
            Wire.record(Wire.pointer, .svcb, hex("0001 00 0004 0004 06060606")),
            Wire.record(Wire.pointer, .txt, [1, 65]),
            Wire.record(Wire.pointer, .ns, other.wire), Wire.record(Wire.pointer, .rrsig, [0, 1] + v6),
        ]
        let own = [
            Wire.record(Wire.pointer, .cname, other.wire), Wire.record(Wire.pointer, .dname, other.wire),
            Wire.record(Wire.pointer, .https, hex("0001 00")),
        ]
        let proofs = [
            Wire.record(Wire.pointer, .soa, hex("00 00 00000001 00000002 00000003 00000004 00000005")),
            Wire.record(Wire.pointer, .nsec, other.wire + [0, 1, 64]),
            Wire.record(Wire.pointer, .nsec3, [1, 0, 0, 0, 0, 0]),
        ]
        var sections = [own, proofs, []]
        sections[section] += strangers
        let answer = Wire.answer(.https, sections[0], authority: sections[1], additional: sections[2])
        let bound = try #require(answer.bound(to: [], for: 30))
        #expect(bound.records().map(\.type) == [.cname, .dname, .https, .soa, .nsec, .nsec3])
        #expect(bound.head.answerCount == 3 && bound.head.authorityCount == 3 && bound.head.additionalCount == 0)
    }

    @Test("RFC 9460 §4.2: addresses beside the record are not passed on")
    func additional() throws {
        let bound = try #require(
            Wire.answer(
                .https, [Wire.record(Wire.pointer, .https, hex("0001 00"))],
                additional: [Wire.record(Wire.pointer, .a, [192, 0, 2, 1])]
            ).bound(to: [], for: 30))
        #expect(bound.head.additionalCount == 0)
        #expect(bound.records().map(\.type) == [.https])
        #expect(bound.keep == 60)
    }

    @Test("as many mandatory parameters as a message holds are checked at once")
    func manyMandatory() {
        func octets(_ value: Int) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xFF)] }
        func isTaken(_ mandatory: Range<Int>) -> Bool {
            var data = hex("0001 00 0000") + octets(2 * mandatory.count)
            for key in mandatory { data += octets(key) }
            for key in 100..<10_900 { data += octets(key) + [0, 0] }
            let answer = Wire.answer(.https, [Wire.record(Wire.pointer, .https, data)])
            return answer.bound(to: [], for: 30)?.records().first?.rdata == data
        }
        // The least of some times: other tests run beside this one.
        let times = (0..<3).map { _ in ContinuousClock().measure { #expect(isTaken(100..<10_900)) } }
        #expect(times.min()! < .milliseconds(500), "\(times)")
        // The last key, and the first, are not there.
        #expect(!isTaken(100..<10_901))
        #expect(!isTaken(99..<10_900))
    }

    @Test func eightOfAFamilyAreEnough() throws {
        let many = (1...20).map { IPAddress.v4(1, 2, 3, UInt8($0)) }
        let data = try #require(Self.bound("0001 00", to: many))
        #expect(data == hex("0001 00 0004 0020") + many.prefix(8).flatMap(\.octets))
    }

    /// RFC 9461 §5: the parameters of a DNS server, in the order of their keys.
    @Test func whereADNSServerIs() {
        let data = Answer.serviceData(
            priority: 2, target: Name("ns.example")!, alpn: ["h2", "dot"], port: 8443, dohPath: "/q{?dns}",
            hints: [.v4(1, 2, 3, 4), IPAddress("2001:db8::1")!])
        #expect(
            data
                == hex(
                    "0002 026e73076578616d706c6500 0001 0007 02683203646f74 0003 0002 20fb 0004 0004 01020304"
                        + "0006 0010 20010db8000000000000000000000001 0007 0008 2f717b3f646e737d"))
        let least = Answer.serviceData(
            priority: 1, target: Name("ns.example")!, alpn: ["dot"], port: nil, dohPath: nil, hints: [])
        #expect(least == hex("0001 026e73076578616d706c6500 0001 0004 03646f74"))
    }
}
