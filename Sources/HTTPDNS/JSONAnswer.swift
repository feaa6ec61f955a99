internal import Base
internal import DNSWire
internal import HTTP

/// What an answer in JSON says of the names that were asked, gathered while it is read.
struct JSONAnswer {
    private let asked: AskedNames
    private let families: Families
    private let isEncrypted: Bool
    private var found: [NameAddresses?]
    private var next = 0

    init(_ names: [Name], _ families: Families, isEncrypted: Bool = false) {
        asked = AskedNames(names: names, isExact: isEncrypted)
        (self.families, self.isEncrypted) = (families, isEncrypted)
        found = [NameAddresses?](repeating: nil, count: names.count)
    }

    /// Reads an object with a list of addresses and its `ttl`.
    /// - Parameters:
    ///   - addresses: The member that is the list.
    ///   - family: Of what family the addresses must be.
    func list(
        _ reader: inout JSONReader, _ text: Span<UInt8>, addresses: StaticString, of family: Families
    ) throws(ServiceFailure) -> AddressList {
        var list = AddressList()
        try reader.object(text) { reader, text, member throws(ServiceFailure) in
            if isSame(text, member, as: addresses) {
                try read(&reader, text, into: &list, of: family)
            } else if isSame(text, member, as: "ttl") {
                try readTTL(&reader, text, into: &list)
            } else {
                try reader.skip(text)
            }
        }
        list.finish()
        return list
    }

    /// Reads an array of addresses of these families.
    func read(
        _ reader: inout JSONReader, _ text: Span<UInt8>, into list: inout AddressList, of families: Families
    ) throws(ServiceFailure) {
        try reader.array(text) { reader, text, _ throws(ServiceFailure) in
            guard let address = IPAddress(parsing: text.extracting(try reader.string(text))),
                families.contains(address.isIPv4 ? .ipv4 : .ipv6)
            else { throw .unparsable }
            list.add(address)
        }
    }

    func readTTL(_ reader: inout JSONReader, _ text: Span<UInt8>, into list: inout AddressList) throws(ServiceFailure) {
        let most = isEncrypted ? ServiceProtocol.maximumEncryptedTTL : ServiceProtocol.maximumTTL
        (list.ttl, list.hasTTL) = (UInt32(try reader.integer(text, maximum: Int(most))), true)
    }

    /// The index of the name that stands at this place of the text.
    /// - Throws: ``ServiceFailure/otherName`` if it was not asked.
    mutating func index(_ text: Span<UInt8>, _ name: Range<Int>) throws(ServiceFailure) -> Int {
        guard let index = asked.index(of: text, name, next: next) else { throw .otherName }
        next = index + 1
        return index
    }

    /// Adds what is said of the name that stands at this place of the text; each may stand there once.
    mutating func add(
        _ text: Span<UInt8>, _ name: Range<Int>, _ ipv4: AddressList, _ ipv6: AddressList
    ) throws(ServiceFailure) {
        let index = try index(text, name)
        guard found[index] == nil else { throw .unparsable }
        set(index, ipv4, ipv6)
    }

    /// Sets what is said of the name with this index.
    mutating func set(_ index: Int, _ ipv4: AddressList, _ ipv6: AddressList) {
        found[index] = NameAddresses(asked.names[index], ipv4, ipv6, asked: families)
    }

    /// - Throws: ``ServiceFailure/unparsable`` if nothing is said of any name.
    func results() throws(ServiceFailure) -> [NameAddresses] {
        let results = found.compactMap(\.self)
        guard !results.isEmpty else { throw .unparsable }
        return results
    }
}

extension HTTPResponse {
    /// Checks that the response can be an answer in JSON.
    /// - Throws: What the service says is wrong: `{"code":…}` or `{"msg":…}`, or else the status.
    func checkStatus() throws(ServiceFailure) {
        guard isWhole else { throw .cutOff }
        if status != 200 { throw refusal ?? .status(status) }
    }

    private var refusal: ServiceFailure? {
        var (code, time): (Range<Int>?, UInt64?)
        var reader = JSONReader()
        do throws(ServiceFailure) {
            try reader.object(body.span) { reader, body, member throws(ServiceFailure) in
                if reader.isString(body), isSame(body, member, as: "code") || isSame(body, member, as: "msg") {
                    code = try reader.string(body)
                } else if isSame(body, member, as: "timestamp"), !reader.isString(body) {
                    time = UInt64(try reader.integer(body, maximum: .max))
                } else {
                    try reader.skip(body)
                }
            }
            try reader.end(body.span)
        } catch {
            return nil
        }
        return code.map { .refused(ServiceRefusal(Array(body.span, $0), status: status, serviceTime: time)) }
    }
}

extension [UInt8] {
    /// A part of a text.
    init(_ text: Span<UInt8>, _ range: Range<Int>) {
        self.init()
        append(text.extracting(range))
    }
}
