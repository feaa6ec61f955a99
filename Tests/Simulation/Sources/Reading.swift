/// A reply, read with code of its own.
struct Reading {
    struct Record {
        let type: UInt16
        let ttl: UInt32
        let data: ArraySlice<UInt8>
    }
    let code: UInt8
    let isTruncated: Bool
    let isAuthentic: Bool
    let isCheckingDisabled: Bool
    private(set) var isDNSSECOK = false
    /// The client's and the server's cookie.
    private(set) var cookie: ArraySlice<UInt8> = []
    var records: [Record] = []
    /// INFO-CODEs of extended errors.
    var errors: [UInt16] = []

    init?(_ reply: [UInt8], of query: DNSQuery) {
        guard reply.count >= query.end, reply[2] & 0x80 != 0, reply[12..<query.end] == query.bytes[12..<query.end]
        else {
            return nil
        }
        func number(_ at: Int, _ octets: Int) -> UInt32 { reply[at..<at + octets].reduce(0) { $0 << 8 | UInt32($1) } }
        code = reply[3] & 15
        isTruncated = reply[2] & 2 != 0
        (isAuthentic, isCheckingDisabled) = (reply[3] & 0x20 != 0, reply[3] & 0x10 != 0)
        let counts = [6, 8, 10].map { Int(number($0, 2)) }
        var at = query.end
        for index in 0..<counts.reduce(0, +) {
            while at < reply.count, reply[at] > 0, reply[at] < 0xC0 { at += 1 + Int(reply[at]) }
            at += at < reply.count && reply[at] >= 0xC0 ? 2 : 1
            guard at + 10 <= reply.count, case let length = Int(number(at + 8, 2)), at + 10 + length <= reply.count
            else {
                return nil
            }
            let type = UInt16(number(at, 2))
            let data = reply[at + 10..<at + 10 + length]
            if index < counts[0] { records.append(Record(type: type, ttl: number(at + 4, 4), data: data)) }
            if type == 41 {
                isDNSSECOK = number(at + 6, 1) & 0x80 != 0
                var option = at + 10
                while option + 4 <= data.endIndex {
                    if number(option, 2) == 10 { cookie = data[(option + 4)..<option + 4 + Int(number(option + 2, 2))] }
                    if number(option, 2) == 15 { errors.append(UInt16(number(option + 4, 2))) }
                    option += 4 + Int(number(option + 2, 2))
                }
            }
            at += 10 + length
        }
        guard at == reply.count else { return nil }
    }
}
