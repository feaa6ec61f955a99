public import Base
internal import Cryptography
public import DNSWire
public import HTTP

/// An account of Tencent's HTTPDNS (`/d`, `/conf`).
public final class TencentAccount: ServiceAccount {
    /// The parameters `id` and `alg`, or `token`, without a leading separator.
    private let credentials: [UInt8]
    /// The parameters after the credentials and the families.
    private let tail: [UInt8]
    /// The cipher for names; nil in https mode, where TLS protects names.
    private let cipher: PayloadCipher?
    /// The route address that is encrypted for each request; nil if the address is sent in clear, or not at all.
    private let routeIpToEncrypt: [UInt8]?
    public let validity: UInt64

    /// - Parameters:
    ///   - credential: The account's key or token, which also selects the mode.
    ///   - routeIp: The address whose network the answers are for (`ip=`); nil for the caller's own address.
    ///   - routeIpEncrypted: Whether `ip=` is encrypted like the names; ignored in https mode.
    ///   - authExpirySeconds: For how many seconds a request is valid, encoded as in the service's own SDKs of 2025, so
    ///     that a recorded request is useless later. With 0 no limit is sent.
    ///   - timeout: The milliseconds after which the service gives up a lookup, see ``Provider/Facts/timeouts``; nil
    ///     for the service's default.
    public init(
        _ credential: Credential, routeIp: IPAddress? = nil, routeIpEncrypted: Bool = false,
        authExpirySeconds: Int = 0, timeout: Int? = nil
    ) throws(RequestError) {
        var encryption: (PayloadCipher.Algorithm, [UInt8])?
        switch credential {
        case .https(let token):
            guard !token.bytes.isEmpty, token.bytes.allSatisfy(isUnreserved) else { throw .badToken }
            credentials = Array("token=".utf8) + token.bytes
        case .aes(let id, let key):
            credentials = Array("id=\(id)&alg=aes".utf8)
            encryption = (.aes, key.bytes)
        case .des(let id, let key):
            credentials = Array("id=\(id)&alg=des".utf8)
            encryption = (.des, key.bytes)
        case .signed: throw .badToken
        }
        do throws(CryptographyError) {
            cipher = if let (algorithm, key) = encryption { try PayloadCipher(algorithm, key: key) } else { nil }
        } catch {
            throw .encryption(error)
        }
        validity = UInt64(max(0, authExpirySeconds))
        let route = routeIp.map { Array($0.description.utf8) }
        routeIpToEncrypt = routeIpEncrypted && cipher != nil ? route : nil
        var tail = Array(ServiceProtocol.flags.utf8)
        if let timeout { tail += Array("&timeout=\(timeout)".utf8) }
        if let route {
            tail += Array("&ip=".utf8)
            // An encrypted `ip=` is appended to each request, since each has its own initialization vector.
            if routeIpToEncrypt == nil { tail += route }
        }
        self.tail = tail
    }

    public func appendTarget(
        _ names: [Name], family: Families, at unixSeconds: UInt64, to request: inout [UInt8]
    ) throws(RequestError) {
        var joined: [UInt8] = []
        joined.reserveCapacity(256)
        try joined.appendNames(names, to: .tencent)
        if validity > 0 {
            // The whole batch has one expiry, which is encrypted with the names.
            joined.append(UInt8(ascii: ";"))
            joined.appendDecimal(unixSeconds &+ validity)
        }
        request.append("/d?dn=")
        if let cipher { try request.appendEncrypted(joined, with: cipher) } else { request += joined }
        request.append("&", credentials)
        request.append(family.choose("", "&type=aaaa", both: "&type=addrs"))
        request += tail
        if let cipher, let routeIpToEncrypt { try request.appendEncrypted(routeIpToEncrypt, with: cipher) }
    }

    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families, reasons: inout [AbsenceReason]
    ) throws(ServiceFailure) -> [NameAddresses] {
        try read(response) { text throws(ServiceFailure) in
            try TencentAnswer.read(text, names: names, family: family, isEncrypted: cipher != nil)
        }
    }

    /// Reads the text of a body, decrypted if necessary. All defects of an encrypted body give the same failure.
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

    /// The text of an encrypted body, which may be empty; nil: the body cannot be decrypted.
    private func decrypted(_ body: Span<UInt8>, _ cipher: PayloadCipher) -> [UInt8]? {
        guard let payload = Hexadecimal.decode(body.extracting(trimmed(body, 0..<body.count))) else { return nil }
        // This is an empty text, encrypted without padding.
        if payload.isEmpty || payload.count == cipher.ivLength { return [] }
        return try? cipher.decrypt(payload.span)
    }

    public func listTarget(at unixSeconds: UInt64) throws(RequestError) -> [UInt8] {
        Array("/conf?".utf8) + credentials
    }

    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        try read(response, ServiceConfiguration.init(parsing:))
    }
}
