internal import Base
internal import Cryptography
public import DNSWire
public import HTTP

/// An account of Alibaba Cloud's HTTPDNS (EMAS), version 2: `/v2/d` in clear over TLS, or encrypted with AES-128-CBC
/// over HTTP.
///
/// Decisions where the documentation is silent: values are in the URL as they are signed, since none has a character
/// that needs an escape there. An answer in another mode than the request's is refused, as an attacker on the path
/// could have written it.
public final class AlibabaAccount: ServiceAccount {
    public let sessionID: String?
    public let validity: UInt64

    private let id: [UInt8]
    /// The client subnet as a parameter, or as an encrypted member; empty without a client subnet.
    private let route: [UInt8]
    private let signer: RequestSigner
    /// Octets of the session's identifier, written as twice as many digits: twelve characters, as in the service's own
    /// SDKs.
    private static let sessionLength = 6
    /// The cipher for names; nil in https mode, where TLS protects names.
    private let cipher: PayloadCipher?
    private let list: AlibabaList

    /// - Parameters:
    ///   - aesKey: The key's hexadecimal digits, as the secret is.
    ///   - traces: Whether requests have a random ``sessionID``.
    init(_ signing: Signing, aesKey: [UInt8]?, traces: Bool = false) throws(RequestError) {
        func octets(_ digits: [UInt8], of key: String) throws(RequestError) -> [UInt8] {
            guard let octets = Hexadecimal.decode(digits.span), !octets.isEmpty else { throw .badSecret(key: key) }
            return octets
        }
        let key = try octets(signing.secret, of: "dnsKey")
        let namesKey = if let aesKey { try octets(aesKey, of: "aesKey") } else { [UInt8]?.none }
        id = Array("\(signing.id)".utf8)
        let (before, after) = aesKey != nil ? (",\"cip\":\"", "\"") : ("cip=", "&")
        route = signing.route.isEmpty ? [] : Array(before.utf8) + signing.route + Array(after.utf8)
        validity = signing.validity
        var digits: [UInt8] = []
        if traces { Hexadecimal.append(randomBytes(Self.sessionLength).span, to: &digits) }
        sessionID = traces ? String(decoding: digits, as: UTF8.self) : nil
        list = AlibabaList(signing)
        do throws(CryptographyError) {
            signer = try RequestSigner(hmacSHA256: key)
            cipher = if let namesKey { try PayloadCipher(.aes, key: namesKey) } else { nil }
        } catch {
            throw .encryption(error)
        }
    }

    public func appendTarget(
        _ names: [Name], family: Families, at unixSeconds: UInt64, to request: inout [UInt8]
    ) throws(RequestError) {
        let queried = family.choose("4", "6", both: "4,6")
        request.append("/v2/d?")
        // The signature covers the parameters in the order of their names, without empty ones.
        let signed = request.count
        if let cipher {
            var plain = [UInt8]("{\"dn\":\"", capacity: 256)
            try plain.appendNames(names, to: .alibaba)
            plain.append("\",\"q\":\"")
            plain.append(queried)
            plain.append("\"")
            plain += route
            plain.append("}")
            request.append("enc=")
            try request.appendEncrypted(plain, with: cipher)
        } else {
            request += route
            request.append("dn=")
            try request.appendNames(names, to: .alibaba)
        }
        request.append("&exp=")
        request.appendDecimal(unixSeconds &+ validity)
        request.append("&id=", id)
        request.append(cipher == nil ? "&m=0&q=" : "&m=1")
        if cipher == nil { request.append(queried) }
        request.append("&v=1.0")
        var signature: [UInt8] = []
        signer.appendSignature(of: request.span.extracting(signed...), to: &signature)
        request.append("&s=")
        request += signature
        // The session's identifier is not signed.
        if let sessionID { request += "&sid=\(sessionID)".utf8 }
    }

    /// Reads `{"code":"success","mode":0,"data":…}`, with the addresses in `data`: an object, or its ciphertext after
    /// the initialization vector, in base64.
    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families, reasons: inout [AbsenceReason]
    ) throws(ServiceFailure) -> [NameAddresses] {
        let envelope = try response.json(("code", "success"))
        let data = try envelope.member("data")
        guard try envelope.integer(envelope.member("mode")) == (cipher == nil ? 0 : 1),
            envelope.isString(data) == (cipher != nil)
        else { throw .unparsable }
        guard let cipher else { return try Self.results(envelope, data, names, family, &reasons, isEncrypted: false) }
        let ciphertext = try envelope.unescaped(data)
        // All defects give the same failure.
        do {
            guard let payload = Base64.standard.decode(ciphertext) else { throw ServiceFailure.undecryptable }
            let json = try JSONText(cipher.decrypt(payload.span), isInAnyScript: false)
            return try Self.results(json, JSONText.root, names, family, &reasons, isEncrypted: true)
        } catch {
            throw .undecryptable
        }
    }

    /// Reads `{"cip":…,"answers":[{"dn":…,"v4":{"ips":[…],"ttl":…,"no_ip_code":…},"v6":{…}}]}`.
    private static func results(
        _ json: JSONText, _ data: Int, _ names: [Name], _ family: Families, _ reasons: inout [AbsenceReason],
        isEncrypted: Bool
    ) throws(ServiceFailure) -> [NameAddresses] {
        var answer = JSONAnswer(names, family, isEncrypted: isEncrypted)
        for name in try json.elements(of: json.member("answers", of: data)) {
            let (v4, v6) = (try json.member("v4", of: name), try json.member("v6", of: name))
            let ipv4 = try answer.list(json, v4, "ips", of: .ipv4)
            let ipv6 = try answer.list(json, v6, "ips", of: .ipv6)
            let index = try answer.add(json, json.string(json.member("dn", of: name)), ipv4, ipv6)
            if ipv4.isEmpty { try add(json, v4, names[index], .ipv4, to: &reasons) }
            if ipv6.isEmpty { try add(json, v6, names[index], .ipv6, to: &reasons) }
        }
        return try answer.results()
    }

    /// Adds the reason for which an object of a family has no address, if the object gives one.
    private static func add(
        _ json: JSONText, _ object: Int, _ name: Name, _ family: Families, to reasons: inout [AbsenceReason]
    ) throws(ServiceFailure) {
        let code = try json.member("no_ip_code", of: object)
        guard json.isString(code), let octets = try? json.unescaped(code),
            let reason = AbsenceReason(name, family, code: octets)
        else { return }
        reasons.append(reason)
    }

    public func listTarget(at unixSeconds: UInt64) throws(RequestError) -> [UInt8] { list.target(at: unixSeconds) }

    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        try list.parse(response)
    }
}
