public import Base
internal import Cryptography
public import DNSWire
public import HTTP

/// An account of Tencent's HTTPDNS (`/d`, `/conf`).
public final class TencentAccount: ServiceAccount {
    /// The parameters of a request behind its names, for each choice of families.
    private let afterNames: (ipv4: [UInt8], ipv6: [UInt8], both: [UInt8])
    /// `id` and `alg`, or `token`, without a separator in front.
    private let credentials: [UInt8]
    /// Nil in https mode, where TLS protects the names.
    private let cipher: PayloadCipher?
    /// The route address to be encrypted anew for each request; nil when it goes in clear, or not at all.
    private let routeIpToEncrypt: [UInt8]?
    /// The length of an encrypted empty text without padding: that of AES's initialization vector.
    private let emptyPayloadLength: Int
    /// Seconds for which a request is valid; 0: for ever.
    private let authExpirySeconds: UInt64
    private let namesPerRequest = Provider.tencent.facts.namesPerRequest
    /// A buffer that is kept between requests to reuse its storage.
    private var joinedNames: [UInt8] = []
    private var end = RequestEnd()

    /// - Parameters:
    ///   - credential: The account's key or token, which also selects the mode.
    ///   - routeIp: The address for whose network answers are wanted (`ip=`); nil: the caller's own.
    ///   - routeIpEncrypted: Whether `ip=` is encrypted like the names; means nothing in https mode.
    ///   - authExpirySeconds: For how many seconds a request is valid, encoded as the service's own SDKs of 2025 do it,
    ///     so that a recorded request is useless later; 0: no limit is sent.
    public init(
        _ credential: ServiceCredential, routeIp: IPAddress? = nil, routeIpEncrypted: Bool = false,
        authExpirySeconds: Int = 0
    ) throws(RequestError) {
        switch credential {
        case .https(let token):
            guard !token.isEmpty, token.allSatisfy(isUnreserved) else { throw .badToken }
            credentials = Array("token=".utf8) + token
        case .aes(let id, _):
            credentials = Array("id=\(id)&alg=aes".utf8)
        case .des(let id, _):
            credentials = Array("id=\(id)&alg=des".utf8)
        case .signed: throw .badToken
        }
        self.authExpirySeconds = UInt64(max(0, authExpirySeconds))
        (cipher, emptyPayloadLength) = try Self.cipher(credential)
        let route = routeIp.map { Array($0.description.utf8) }
        routeIpToEncrypt = routeIpEncrypted && cipher != nil ? route : nil
        var tail = Array(ServiceProtocol.flags.utf8)
        if let route {
            tail += Array("&ip=".utf8)
            // An encrypted `ip=` is appended to each request, since each has its own initialization vector.
            if routeIpToEncrypt == nil { tail += route }
        }
        let start = [UInt8(ascii: "&")] + credentials
        afterNames = (
            ipv4: start + tail,
            ipv6: start + Array("&type=aaaa".utf8) + tail,
            both: start + Array("&type=addrs".utf8) + tail
        )
    }

    public var hasExpiry: Bool { authExpirySeconds > 0 }

    private static func cipher(_ credential: ServiceCredential) throws(RequestError) -> (PayloadCipher?, Int) {
        do throws(CryptographyError) {
            switch credential {
            case .https, .signed: return (nil, 0)
            case .aes(_, let key):
                return (try PayloadCipher(.aes, key: key), ServiceProtocol.initializationVectorLength)
            case .des(_, let key): return (try PayloadCipher(.des, key: key), 0)
            }
        } catch {
            throw .encryption(error)
        }
    }

    public func request(
        _ names: [Name], family: Families, host: String, at unixSeconds: UInt64
    ) throws(RequestError) -> [UInt8] {
        var joined = exchange(&joinedNames, with: [])
        defer { joinedNames = joined }
        joined.removeAll(keepingCapacity: true)
        try joined.appendNames(names, most: namesPerRequest)
        if authExpirySeconds > 0 {
            // One expiry for the whole batch, encrypted with the names.
            joined.append(UInt8(ascii: ";"))
            joined.appendDecimal(unixSeconds &+ authExpirySeconds)
        }
        let tail =
            switch family {
            case .ipv4: afterNames.ipv4
            case .ipv6: afterNames.ipv6
            default: afterNames.both
            }
        var request: [UInt8] = []
        // Hexadecimal doubles the length, encryption adds an IV and a block at most; the constants and an `ip=` fit
        // into 320.
        request.reserveCapacity(2 * joined.count + tail.count + host.utf8.count + 320)
        request.append(contentsOf: ServiceProtocol.requestLineStart.utf8)
        if let cipher {
            try Self.appendEncrypted(joined, with: cipher, to: &request)
        } else {
            request.append(contentsOf: joined)
        }
        request.append(contentsOf: tail)
        if let cipher, let routeIpToEncrypt {
            try Self.appendEncrypted(routeIpToEncrypt, with: cipher, to: &request)
        }
        try end.append(host: host, to: &request)
        return request
    }

    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families
    ) throws(ServiceFailure) -> [NameAddresses] {
        try read(response) { text throws(ServiceFailure) in
            try TencentAnswer.read(text, names: names, family: family, isEncrypted: cipher != nil)
        }
    }

    /// Reads the text of a body, decrypted if need be. Whatever is wrong with an encrypted body, the failure is the
    /// same.
    private func read<Content>(
        _ response: HTTPResponse, _ content: (Span<UInt8>) throws(ServiceFailure) -> Content
    ) throws(ServiceFailure) -> Content {
        guard response.status == 200 else { throw .status(response.status) }
        guard response.isWhole else { throw .cutOff }
        guard let cipher else { return try content(response.body.span) }
        guard let text = decrypted(response.body.span, cipher), let content = try? content(text.span) else {
            throw .undecryptable
        }
        return content
    }

    /// The text of an encrypted body, which may be empty; nil if it cannot be decrypted.
    private func decrypted(_ body: Span<UInt8>, _ cipher: PayloadCipher) -> [UInt8]? {
        guard let payload = Hexadecimal.decode(body.extracting(trimmed(body, 0..<body.count))) else { return nil }
        if payload.isEmpty || payload.count == emptyPayloadLength { return [] }
        return try? cipher.decrypt(payload.span)
    }

    public func configurationRequest(host: String, at unixSeconds: UInt64) throws(RequestError) -> [UInt8] {
        var request = Array(ServiceProtocol.configurationStart.utf8) + credentials
        try end.append(host: host, to: &request)
        return request
    }

    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        try read(response, ServiceConfiguration.init(parsing:))
    }

    private static func appendEncrypted(
        _ text: [UInt8], with cipher: PayloadCipher, to request: inout [UInt8]
    ) throws(RequestError) {
        do {
            let payload = try cipher.encrypt(text.span)
            Hexadecimal.append(payload.span, to: &request)
        } catch {
            throw .encryption(error)
        }
    }
}
