internal import Base
internal import Cryptography
public import DNSWire
public import HTTP

/// An account of Alibaba Cloud's HTTPDNS (EMAS), version 2: `/v2/d` in clear over TLS, or encrypted with AES-128-CBC
/// over HTTP.
///
/// Chosen, where the documentation is silent: values stand in the URL as they are signed, since none has a character
/// that needs an escape there. An answer in another mode than the request's is refused, as an attacker on the path
/// could have written it.
public final class AlibabaAccount: ServiceAccount {
    public var hasExpiry: Bool { true }

    /// What stands in front of the names, and behind the time, for each choice of families.
    private let beforeNames: [UInt8]
    private let afterTime: (ipv4: [UInt8], ipv6: [UInt8], both: [UInt8])
    /// What is encrypted behind the names.
    private let encryptedEnd: (ipv4: [UInt8], ipv6: [UInt8], both: [UInt8])
    private let validity: UInt64
    private let signer: RequestSigner
    /// Nil in https mode, where TLS protects the names.
    private let cipher: PayloadCipher?
    private let list: AlibabaList
    private let namesPerRequest = Provider.alibaba.facts.namesPerRequest
    private var end = RequestEnd()

    init(_ signing: Signing, aesKey: [UInt8]?) throws(RequestError) {
        guard let key = Hexadecimal.decode(signing.secret.span), !key.isEmpty else { throw .badSecret(key: "dnsKey") }
        let isEncrypted = aesKey != nil
        // Signed are the parameters in the order of their names, empty ones left out.
        let route = signing.routeIp.map { isEncrypted ? ",\"cip\":\"\($0)\"" : "cip=\($0)&" } ?? ""
        beforeNames = Array((isEncrypted ? "enc=" : route + "dn=").utf8)
        func afterTime(_ queried: String) -> [UInt8] {
            Array("&id=\(signing.id)\(isEncrypted ? "&m=1" : "&m=0&q=" + queried)&v=1.0".utf8)
        }
        self.afterTime = (ipv4: afterTime("4"), ipv6: afterTime("6"), both: afterTime("4,6"))
        func encryptedEnd(_ queried: String) -> [UInt8] { Array("\",\"q\":\"\(queried)\"\(route)}".utf8) }
        self.encryptedEnd = (ipv4: encryptedEnd("4"), ipv6: encryptedEnd("6"), both: encryptedEnd("4,6"))
        validity = signing.validity
        list = try AlibabaList(signing)
        do throws(CryptographyError) {
            signer = try RequestSigner(hmacSHA256: key)
            cipher = if let aesKey { try PayloadCipher(.aes, key: aesKey) } else { nil }
        } catch {
            throw .encryption(error)
        }
    }

    public func request(
        _ names: [Name], family: Families, host: String, at unixSeconds: UInt64
    ) throws(RequestError) -> [UInt8] {
        let (afterTime, encryptedEnd) =
            switch family {
            case .ipv4: (afterTime.ipv4, encryptedEnd.ipv4)
            case .ipv6: (afterTime.ipv6, encryptedEnd.ipv6)
            default: (afterTime.both, encryptedEnd.both)
            }
        var request: [UInt8] = []
        // Hexadecimal doubles what is encrypted; the constants, a client subnet and what encryption adds fit into 448.
        request.reserveCapacity(names.reduce(0) { $0 + 2 * $1.wire.count } + host.utf8.count + 448)
        request.append("GET /v2/d?")
        let signed = request.count
        request.append(contentsOf: beforeNames)
        if let cipher {
            try appendEncrypted(names, encryptedEnd, with: cipher, to: &request)
        } else {
            try request.appendNames(names, most: namesPerRequest)
        }
        request.append("&exp=")
        request.appendDecimal(unixSeconds &+ validity)
        request.append(contentsOf: afterTime)
        signer.appendSignature(from: signed, as: "&s=", to: &request)
        try end.append(host: host, to: &request)
        return request
    }

    private func appendEncrypted(
        _ names: [Name], _ end: [UInt8], with cipher: PayloadCipher, to request: inout [UInt8]
    ) throws(RequestError) {
        var plain = Array("{\"dn\":\"".utf8)
        try plain.appendNames(names, most: namesPerRequest)
        plain.append(contentsOf: end)
        do {
            let payload = try cipher.encrypt(plain.span)
            Hexadecimal.append(payload.span, to: &request)
        } catch {
            throw .encryption(error)
        }
    }

    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families
    ) throws(ServiceFailure) -> [NameAddresses] {
        try response.checkStatus()
        let isEncrypted = cipher != nil
        var envelope = Envelope(
            answer: JSONAnswer(names, family, isEncrypted: isEncrypted), isEncrypted: isEncrypted)
        try envelope.read(response)
        guard let cipher else { return try envelope.answer.results() }
        // Whatever is wrong with it, the failure is the same.
        guard let text = envelope.decrypted(response.body, cipher) else { throw .undecryptable }
        do {
            var reader = JSONReader(isInAnyScript: false)
            try envelope.readData(&reader, text.span)
            try reader.end(text.span)
            return try envelope.answer.results()
        } catch {
            throw .undecryptable
        }
    }

    public func configurationRequest(host: String, at unixSeconds: UInt64) throws(RequestError) -> [UInt8] {
        try list.request(host: host, at: unixSeconds)
    }

    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        try list.parse(response)
    }
}

/// `{"code":"success","mode":0,"data":…}`, with the addresses in `data`, which is an object, or in base64 its
/// ciphertext behind the initialization vector.
private struct Envelope {
    var answer: JSONAnswer
    let isEncrypted: Bool
    /// The place of the code.
    private var code: Range<Int>?
    private var mode: Int?
    /// The place of the ciphertext.
    private var ciphertext: Range<Int>?
    /// Whether an object of addresses was read.
    private var hasData = false

    init(answer: JSONAnswer, isEncrypted: Bool) { (self.answer, self.isEncrypted) = (answer, isEncrypted) }

    mutating func read(_ response: HTTPResponse) throws(ServiceFailure) {
        let body = response.body.span
        var reader = JSONReader()
        try reader.object(body) { reader, body, member throws(ServiceFailure) in
            if isSame(body, member, as: "code") {
                code = try reader.string(body)
            } else if isSame(body, member, as: "mode") {
                mode = try reader.integer(body, maximum: .max)
            } else if !isSame(body, member, as: "data") {
                try reader.skip(body)
            } else if reader.isString(body) {
                ciphertext = try reader.string(body)
            } else if isEncrypted {
                try reader.skip(body)
            } else {
                try readData(&reader, body)
                hasData = true
            }
        }
        try reader.end(body)
        guard let code else { throw .unparsable }
        guard isSame(body, code, as: "success") else {
            throw .refused(ServiceRefusal(Array(body, code), status: response.status))
        }
        guard mode == (isEncrypted ? 1 : 0), isEncrypted ? ciphertext != nil : hasData else { throw .unparsable }
    }

    func decrypted(_ body: [UInt8], _ cipher: PayloadCipher) -> [UInt8]? {
        guard let ciphertext else { return nil }
        // A writer of JSON may have put a `\` before each `/`, which base64 has.
        let text = body[ciphertext].filter { $0 != UInt8(ascii: "\\") }
        guard let payload = Base64.standard.decode(text) else { return nil }
        return try? cipher.decrypt(payload.span)
    }

    /// `{"cip":…,"answers":[{"dn":…,"v4":{"ips":[…],"ttl":…},"v6":{…}}]}`
    mutating func readData(_ reader: inout JSONReader, _ text: Span<UInt8>) throws(ServiceFailure) {
        try reader.object(text) { reader, text, member throws(ServiceFailure) in
            guard isSame(text, member, as: "answers") else {
                try reader.skip(text)
                return
            }
            try reader.array(text) { reader, text, _ throws(ServiceFailure) in try readName(&reader, text) }
        }
    }

    private mutating func readName(_ reader: inout JSONReader, _ text: Span<UInt8>) throws(ServiceFailure) {
        var name: Range<Int>?
        var lists = (AddressList(), AddressList())
        try reader.object(text) { reader, text, member throws(ServiceFailure) in
            if isSame(text, member, as: "dn") {
                name = try reader.string(text)
            } else if isSame(text, member, as: "v4") {
                lists.0 = try answer.list(&reader, text, addresses: "ips", of: .ipv4)
            } else if isSame(text, member, as: "v6") {
                lists.1 = try answer.list(&reader, text, addresses: "ips", of: .ipv6)
            } else {
                try reader.skip(text)
            }
        }
        guard let name else { throw .unparsable }
        try answer.add(text, name, lists.0, lists.1)
    }
}
