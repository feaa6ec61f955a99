internal import Base
internal import Cryptography
internal import DNSWire
internal import HTTP
internal import HTTPDNS

/// One lookup, as parsed from a request.
struct ServiceRequest {
    let names: [Name]
    let family: Families
    /// `ip=`: an address of the network of the client; echoed as the client's address.
    let routeIp: IPAddress?
    let wantsName: Bool
    let wantsTTL: Bool
    let wantsClient: Bool
}

/// Checks credentials and holds the account's ciphers.
final class ServiceAccounts {
    private let account: DemoAccount
    private let unixSeconds: () -> UInt64
    private let aes: PayloadCipher
    private let des: PayloadCipher

    init(_ account: DemoAccount, unixSeconds: @escaping () -> UInt64) throws(CryptographyError) {
        self.account = account
        self.unixSeconds = unixSeconds
        aes = try PayloadCipher(.aes, key: account.aesKey)
        des = try PayloadCipher(.des, key: account.desKey)
    }

    /// Parses `/d?…` or `/conf?…`. The credential is the token under TLS, and otherwise the id and one of the keys.
    /// - Returns: The lookup, nil if the service's own configuration is asked for; and the cipher for the answer, nil
    ///   under TLS.
    func parse(
        _ target: [UInt8], isSecure: Bool
    ) throws(HTTPStatus) -> (lookup: ServiceRequest?, cipher: PayloadCipher?) {
        let bytes = target.span
        let query = firstIndex(of: UInt8(ascii: "?"), in: bytes, 0..<bytes.count) ?? bytes.count
        let isConfiguration = isEqual(bytes, 0..<query, to: "/conf")
        guard isConfiguration || isEqual(bytes, 0..<query, to: "/d") else { throw .notFound }
        let parameters = Parameters(query: target.dropFirst(query + 1))
        let cipher = try cipher(parameters, isSecure: isSecure)
        return (try isConfiguration ? nil : lookup(parameters, cipher), cipher)
    }

    private func lookup(_ parameters: Parameters, _ cipher: PayloadCipher?) throws(HTTPStatus) -> ServiceRequest {
        guard var text = parameters["dn"] else { throw .badRequest }
        if let cipher {
            guard let decrypted = Self.decrypt(text, cipher) else { throw .unauthorized }
            text = decrypted
        }
        return ServiceRequest(
            names: try names(text), family: try family(parameters["type"]),
            routeIp: parameters["ip"].flatMap { Self.address($0, cipher) },
            wantsName: parameters.isSet("query"), wantsTTL: parameters.isSet("ttl"),
            wantsClient: parameters.isSet("clientip"))
    }

    private func cipher(_ parameters: Parameters, isSecure: Bool) throws(HTTPStatus) -> PayloadCipher? {
        if isSecure {
            guard parameters["token"] == account.token else { throw .unauthorized }
            return nil
        }
        guard parameters["id"] == Array(String(account.id).utf8) else { throw .unauthorized }
        // The documented default is DES.
        guard let algorithm = parameters["alg"] else { return des }
        if algorithm == Array("aes".utf8) { return aes }
        guard algorithm == Array("des".utf8) else { throw .badRequest }
        return des
    }

    private func family(_ type: [UInt8]?) throws(HTTPStatus) -> Families {
        guard let type else { return .ipv4 }
        if isEqual(type.span, type.indices, to: "aaaa") { return .ipv6 }
        if isEqual(type.span, type.indices, to: "addrs") { return .both }
        guard type.isEmpty || isEqual(type.span, type.indices, to: "a") else { throw .badRequest }
        return .ipv4
    }

    /// Parses `NAME,…`, optionally followed by `;EXPIRY`, which the service's newer SDKs append.
    private func names(_ text: [UInt8]) throws(HTTPStatus) -> [Name] {
        let listed = text.prefix { $0 != UInt8(ascii: ";") }
        if listed.count < text.count {
            let expiry = decimal(text.span, listed.count + 1..<text.count, maximum: .max)
            guard let expiry else { throw .badRequest }
            guard UInt64(expiry) >= unixSeconds() else { throw .unauthorized }
        }
        let parts = listed.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard parts.count <= Provider.tencent.facts.namesPerRequest else { throw .badRequest }
        var names: [Name] = []
        for part in parts {
            guard let name = Name(String(decoding: part, as: UTF8.self)), name.isHostname else { throw .badRequest }
            names.append(name)
        }
        return names
    }

    /// An address in plain text, as the SDKs send it, or encrypted, as documented.
    private static func address(_ text: [UInt8], _ cipher: PayloadCipher?) -> IPAddress? {
        if let address = IPAddress(parsing: text.span) { return address }
        guard let cipher, let decrypted = decrypt(text, cipher) else { return nil }
        return IPAddress(parsing: decrypted.span)
    }

    private static func decrypt(_ text: [UInt8], _ cipher: PayloadCipher) -> [UInt8]? {
        guard let payload = Hexadecimal.decode(text.span) else { return nil }
        return try? cipher.decrypt(payload.span)
    }
}

/// The parameters `NAME=VALUE&…` of a URL, without percent-encoding, which no value of the service needs.
struct Parameters {
    let query: ArraySlice<UInt8>

    /// The value of the first parameter of that name.
    subscript(_ name: String) -> [UInt8]? {
        for parameter in query.split(separator: UInt8(ascii: "&")) {
            let parts = parameter.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            if parts[0].elementsEqual(name.utf8) { return parts.count > 1 ? Array(parts[1]) : [] }
        }
        return nil
    }

    func isSet(_ name: String) -> Bool { self[name] == [UInt8(ascii: "1")] }
}
