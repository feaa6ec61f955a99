// Messages as dnspython 2.3 makes them. To make them again, run this with python3 (the TSIG has the time of day in it):
//
//     import dns.message, dns.rrset, dns.flags, dns.edns, dns.name, dns.tsigkeyring, dns.opcode, dns.rcode
//     import random; random.seed(1)  # dnspython shuffles the records of an RRset
//     def q(name, type, **k):
//         m = dns.message.make_query(name, type, **k); m.id = 0x1234; return m
//     def show(key, wire): print(f'    static let {key} = hex(\n        "' + '"\n            + "'.join(wire.hex()[i:i+96] for i in range(0, len(wire.hex()), 96)) + '")')
//     def r(query, rcode=0, flags=0, answer=(), authority=(), additional=(), opt=None):
//         m = dns.message.make_response(query); m.flags |= dns.flags.RA | flags; m.set_rcode(rcode)
//         m.use_edns(-1)
//         for s, rrs in ((m.answer, answer), (m.authority, authority), (m.additional, additional)):
//             for rr in rrs: s.append(dns.rrset.from_text(*rr[:2], *rr[2:]))
//         if opt is not None: m.use_edns(0, options=opt, payload=1232)
//         return m.to_wire()
//     plain = q('www.Example.COM', 'A')
//     edns = q('www.Example.COM', 'A', use_edns=0, payload=4096, want_dnssec=True, options=[dns.edns.GenericOption(10, b'\1\2\3\4\5\6\7\x08')])
//     show('query', plain.to_wire())
//     show('ednsQuery', edns.to_wire())
//     t = q('www.example.com', 'A', use_edns=0, payload=1400)
//     t.use_tsig(dns.tsigkeyring.from_text({'key.example.com': 'c2VjcmV0c2VjcmV0'}), algorithm='hmac-sha256')
//     show('signedQuery', t.to_wire())
//     w = 'www.example.com.'; SOA = ('example.com.', 900, 'IN', 'SOA', 'ns1.example.com. host.example.com. 2024010101 7200 900 1209600 300')
//     show('chain', r(plain, flags=dns.flags.AD, answer=[(w, 300, 'IN', 'CNAME', 'web.example.net.'), ('web.example.net.', 60, 'IN', 'A', '192.0.2.1', '192.0.2.2')],
//       authority=[('example.net.', 3600, 'IN', 'NS', 'ns1.example.net.')], additional=[('ns1.example.net.', 3600, 'IN', 'A', '198.51.100.1')], opt=[]))
//     show('nxDomain', r(plain, 3, authority=[SOA], opt=[dns.edns.GenericOption(15, b'\0\6bogus')]))
//     show('noData', r(plain, authority=[SOA]))
//     show('noDataWithoutSOA', r(plain))
//     show('referral', r(plain, authority=[('example.com.', 3600, 'IN', 'NS', 'ns1.example.com.')]))
//     show('foreignSOA', r(plain, 3, authority=[('example.org.', 900, 'IN', 'SOA', 'ns1.example.org. host.example.org. 1 2 3 4 5')]))
//     show('danglingAlias', r(plain, authority=[('example.net.', 900, 'IN', 'SOA', 'ns1.example.net. host.example.net. 1 2 3 4 45')], answer=[(w, 300, 'IN', 'CNAME', 'web.example.net.')]))
//     show('aliasLoop', r(plain, answer=[(w, 300, 'IN', 'CNAME', 'a.example.com.'), ('a.example.com.', 300, 'IN', 'CNAME', w)]))
//     show('unrelated', r(plain, answer=[('other.example.com.', 300, 'IN', 'A', '192.0.2.66')]))
//     show('dname', r(plain, answer=[('example.com.', 500, 'IN', 'DNAME', 'example.net.'), ('www.example.net.', 70, 'IN', 'A', '192.0.2.9')]))
//     show('hugeTTL', r(plain, answer=[(w, 60, 'IN', 'A', '192.0.2.1')]).replace(bytes([0,0,0,60]), b'\x80\0\0\x3c'))
//     show('servFail', r(plain, 2, opt=[dns.edns.GenericOption(15, b'\0\x16')]))
//     m = dns.message.make_response(edns); m.use_edns(0); m.set_rcode(16); show('badVersion', m.to_wire())
//     show('truncated', r(plain, flags=dns.flags.TC, answer=[(w, 60, 'IN', 'A', '192.0.2.1')]))
//     many = q('example.com', 'ANY')
//     show('manyTypes', r(many, answer=[
//      ('example.com.', 1, 'IN', 'A', '192.0.2.1'), ('example.com.', 2, 'IN', 'AAAA', '2001:db8::1'),
//      ('example.com.', 3, 'IN', 'NS', 'ns1.example.com.'), ('example.com.', 4, 'IN', 'PTR', 'host.example.com.'),
//      ('example.com.', 5, 'IN', 'MX', '10 mail.example.com.'), ('example.com.', 6, 'IN', 'TXT', '"v=spf1 -all" "a\\"b\\\\c\\009\\255"'),
//      SOA[:1] + (7,) + SOA[2:], ('_sip._udp.example.com.', 8, 'IN', 'SRV', '1 2 5060 sip.example.com.'),
//      ('example.com.', 9, 'IN', 'CAA', '0 issue "ca.example; x=1"'), ('example.com.', 10, 'IN', 'HINFO', '"RFC8482" ""'),
//      ('example.com.', 11, 'IN', 'CNAME', 'a\\.b.example.com.'), ('example.com.', 12, 'IN', 'TYPE65280', '\\# 3 010aff'),
//      ('example.com.', 13, 'IN', 'TYPE65281', '\\# 0'), ('example.com.', 14, 'IN', 'DNAME', 'example.net.')]))
//     big = q('big.example.com', 'A', use_edns=0, payload=512)
//     show('bigQuery', big.to_wire())
//     show('big', r(big, answer=[('big.example.com.', 60, 'IN', 'A') + tuple(f'192.0.2.{i}' for i in range(24))],
//       authority=[('example.com.', 90, 'IN', 'NS', 'ns1.example.com.')], additional=[('ns1.example.com.', 120, 'IN', 'A') + tuple(f'198.51.100.{i}' for i in range(8))]))
//     longest = '.'.join(['a'*63, 'b'*63, 'c'*63, 'd'*61])
//     show('longestName', q(longest, 'A').to_wire())

enum Vectors {
    static let query = hex(
        "12340100000100000000000003777777074578616d706c6503434f4d0000010001")
    static let ednsQuery = hex(
        "12340100000100000000000103777777074578616d706c6503434f4d0000010001000029100000008000000c000a0008"
            + "0102030405060708")
    static let signedQuery = hex(
        "12340100000100000000000203777777076578616d706c6503636f6d00000100010000290578000000000000036b6579"
            + "c01000fa00ff00000000003d0b686d61632d7368613235360000006b015c09012c00205cc4e3a5ce924049120643e818"
            + "2a31041a0518cd079641d4ef74dd0b62d43656123400000000")
    static let chain = hex(
        "123481a0000100030001000203777777074578616d706c6503434f4d0000010001c00c000500010000012c0011037765"
            + "62076578616d706c65036e657400c02d000100010000003c0004c0000202c02d000100010000003c0004c0000201c031"
            + "0002000100000e100006036e7331c031c06a0001000100000e100004c633640100002904d0000000000000")
    static let nxDomain = hex(
        "12348183000100000001000103777777074578616d706c6503434f4d0000010001c01000060001000003840021036e73"
            + "31c01004686f7374c01078a3f17500001c2000000384001275000000012c00002904d000000000000b000f0007000662"
            + "6f677573")
    static let noData = hex(
        "12348180000100000001000003777777074578616d706c6503434f4d0000010001c01000060001000003840021036e73"
            + "31c01004686f7374c01078a3f17500001c2000000384001275000000012c")
    static let noDataWithoutSOA = hex(
        "12348180000100000000000003777777074578616d706c6503434f4d0000010001")
    static let referral = hex(
        "12348180000100000001000003777777074578616d706c6503434f4d0000010001c0100002000100000e100006036e73"
            + "31c010")
    static let foreignSOA = hex(
        "12348183000100000001000003777777074578616d706c6503434f4d0000010001076578616d706c65036f7267000006"
            + "0001000003840021036e7331c02104686f7374c0210000000100000002000000030000000400000005")
    static let danglingAlias = hex(
        "12348180000100010001000003777777074578616d706c6503434f4d0000010001c00c000500010000012c0011037765"
            + "62076578616d706c65036e657400c03100060001000003840021036e7331c03104686f7374c031000000010000000200"
            + "000003000000040000002d")
    static let aliasLoop = hex(
        "12348180000100020000000003777777074578616d706c6503434f4d0000010001c00c000500010000012c00040161c0"
            + "10c02d000500010000012c0002c00c")
    static let unrelated = hex(
        "12348180000100010000000003777777074578616d706c6503434f4d0000010001056f74686572c01000010001000001"
            + "2c0004c0000242")
    static let dname = hex(
        "12348180000100020000000003777777074578616d706c6503434f4d0000010001c01000270001000001f4000d076578"
            + "616d706c65036e65740003777777076578616d706c65036e65740000010001000000460004c0000209")
    static let hugeTTL = hex(
        "12348180000100010000000003777777074578616d706c6503434f4d0000010001c00c000100018000003c0004c00002"
            + "01")
    static let servFail = hex(
        "12348182000100000000000103777777074578616d706c6503434f4d000001000100002904d0000000000006000f0002"
            + "0016")
    static let badVersion = hex(
        "12348100000100000000000103777777074578616d706c6503434f4d000001000100002904d0010000000000")
    static let truncated = hex(
        "12348380000100010000000003777777074578616d706c6503434f4d0000010001c00c000100010000003c0004c00002"
            + "01")
    static let manyTypes = hex(
        "123481800001000e00000000076578616d706c6503636f6d0000ff0001c00c00010001000000010004c0000201c00c00"
            + "1c000100000002001020010db8000000000000000000000001c00c00020001000000030006036e7331c00cc00c000c00"
            + "0100000004000704686f7374c00cc00c000f0001000000050009000a046d61696cc00cc00c001000010000000600140b"
            + "763d73706631202d616c6c076122625c6309ffc00c00060001000000070018c055c06778a3f17500001c200000038400"
            + "1275000000012c045f736970045f756470c00c0021000100000008000c0001000213c403736970c00cc00c0101000100"
            + "00000900160005697373756563612e6578616d706c653b20783d31c00c000d00010000000a0009075246433834383200"
            + "c00c000500010000000b000603612e62c00cc00cff0000010000000c0003010affc00cff0100010000000d0000c00c00"
            + "2700010000000e000d076578616d706c65036e657400")
    static let bigQuery = hex(
        "12340100000100000000000103626967076578616d706c6503636f6d00000100010000290200000000000000")
    static let big = hex(
        "12348180000100180001000803626967076578616d706c6503636f6d0000010001c00c000100010000003c0004c00002"
            + "0ac00c000100010000003c0004c0000214c00c000100010000003c0004c0000204c00c000100010000003c0004c00002"
            + "15c00c000100010000003c0004c0000217c00c000100010000003c0004c0000205c00c000100010000003c0004c00002"
            + "16c00c000100010000003c0004c000020dc00c000100010000003c0004c0000210c00c000100010000003c0004c00002"
            + "09c00c000100010000003c0004c000020bc00c000100010000003c0004c0000211c00c000100010000003c0004c00002"
            + "00c00c000100010000003c0004c0000207c00c000100010000003c0004c0000201c00c000100010000003c0004c00002"
            + "06c00c000100010000003c0004c000020cc00c000100010000003c0004c0000213c00c000100010000003c0004c00002"
            + "0ec00c000100010000003c0004c000020fc00c000100010000003c0004c0000203c00c000100010000003c0004c00002"
            + "08c00c000100010000003c0004c0000202c00c000100010000003c0004c0000212c010000200010000005a0006036e73"
            + "31c010c1ad00010001000000780004c6336402c1ad00010001000000780004c6336403c1ad00010001000000780004c6"
            + "336401c1ad00010001000000780004c6336406c1ad00010001000000780004c6336404c1ad00010001000000780004c6"
            + "336405c1ad00010001000000780004c6336407c1ad00010001000000780004c6336400")
    static let longestName = hex(
        "1234010000010000000000003f6161616161616161616161616161616161616161616161616161616161616161616161"
            + "616161616161616161616161616161616161616161616161616161613f62626262626262626262626262626262626262"
            + "62626262626262626262626262626262626262626262626262626262626262626262626262626262626262623f636363"
            + "636363636363636363636363636363636363636363636363636363636363636363636363636363636363636363636363"
            + "6363636363636363636363633d6464646464646464646464646464646464646464646464646464646464646464646464"
            + "64646464646464646464646464646464646464646464646464640000010001")
}

/// Octets from hexadecimal digits; blanks are skipped.
func hex(_ text: String) -> [UInt8] {
    let digits = text.filter { !$0.isWhitespace }.map { UInt8($0.hexDigitValue!) }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}
