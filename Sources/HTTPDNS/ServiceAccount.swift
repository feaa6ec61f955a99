public import Base
internal import Cryptography
public import DNSWire
public import HTTP

/// One account of the HTTPDNS service: owns its credentials, writes the requests and reads the answers.
///
/// Not `Sendable`: the cipher reuses its context, so an account belongs to one queue.
public final class ServiceAccount {
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
    /// A buffer that is kept between requests to reuse its storage.
    private var joinedNames: [UInt8] = []

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

    private static func cipher(_ credential: ServiceCredential) throws(RequestError) -> (PayloadCipher?, Int) {
        do throws(CryptographyError) {
            switch credential {
            case .https: return (nil, 0)
            case .aes(_, let key):
                return (try PayloadCipher(.aes, key: key), ServiceProtocol.initializationVectorLength)
            case .des(_, let key): return (try PayloadCipher(.des, key: key), 0)
            }
        } catch {
            throw .encryption(error)
        }
    }

    /// Writes one HTTP/1.1 request that asks the service about all of `names` and leaves the connection open.
    /// - Parameters:
    ///   - names: One to ``ServiceProtocol/namesPerRequest`` names, no two alike.
    ///   - host: The value of the Host field: a server name or an address, with `:PORT` unless that is the scheme's
    ///     default. A bare IPv6 address is put in brackets.
    ///   - unixSeconds: The time of day, from which a request's validity is counted (`authExpirySeconds`).
    public func request(
        _ names: [Name], family: ServiceFamily, host: String, at unixSeconds: UInt64
    ) throws(RequestError) -> [UInt8] {
        guard !names.isEmpty, names.count <= ServiceProtocol.namesPerRequest else { throw .nameCount(names.count) }
        var joined = exchange(&joinedNames, with: [])
        defer { joinedNames = joined }
        joined.removeAll(keepingCapacity: true)
        for (index, name) in names.enumerated() {
            if index > 0 { joined.append(UInt8(ascii: ",")) }
            try Self.append(name, to: &joined)
        }
        if authExpirySeconds > 0 {
            // One expiry for the whole batch, encrypted with the names.
            joined.append(contentsOf: ";\(unixSeconds &+ authExpirySeconds)".utf8)
        }
        let tail =
            switch family {
            case .ipv4: afterNames.ipv4
            case .ipv6: afterNames.ipv6
            case .both: afterNames.both
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
        request.append(contentsOf: ServiceProtocol.requestLineEnd.utf8)
        try Self.appendHost(host, to: &request)
        request.append(contentsOf: ServiceProtocol.fields.utf8)
        return request
    }

    /// Reads the service's answer to a request of the same `names` and `family`.
    /// - Returns: In the order of `names`, at least one result; a name that the answer does not mention is absent. At
    ///   most ``ServiceProtocol/addressesPerFamily`` addresses a family, in the service's order and each once.
    public func parse(
        _ response: HTTPResponse, names: [Name], family: ServiceFamily
    ) throws(ServiceFailure) -> [NameResult] {
        try read(response) { text throws(ServiceFailure) in
            try ServiceAnswer.read(text, names: names, family: family, isEncrypted: cipher != nil)
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

    /// Writes one HTTP/1.1 request for the service's configuration, which holds its list of addresses.
    /// - Parameter host: As in ``request(_:family:host:at:)``.
    public func configurationRequest(host: String) throws(RequestError) -> [UInt8] {
        var request = Array(ServiceProtocol.configurationStart.utf8) + credentials
        request.append(contentsOf: ServiceProtocol.requestLineEnd.utf8)
        try Self.appendHost(host, to: &request)
        request.append(contentsOf: ServiceProtocol.fields.utf8)
        return request
    }

    /// Reads the service's answer to a ``configurationRequest(host:)``.
    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        try read(response, ServiceConfiguration.init(parsing:))
    }

    /// Appends the name in the service's form: lower case, no final dot.
    ///
    /// Anything but letters, digits, `-` and `_` in a label is refused: a `,` or `;` would ask for other names, and `&`
    /// or a space would forge the request itself.
    private static func append(_ name: Name, to text: inout [UInt8]) throws(RequestError) {
        guard name.appendHostname(to: &text) else { throw .forbiddenName(name) }
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

    private static func appendHost(_ host: String, to request: inout [UInt8]) throws(RequestError) {
        let bytes = host.utf8.span
        guard !bytes.isEmpty else { throw .forbiddenHost }
        var colons = 0
        for index in bytes.indices {
            guard isHostByte(bytes[index]) else { throw .forbiddenHost }
            if bytes[index] == UInt8(ascii: ":") { colons += 1 }
        }
        let bracketed = colons > 1 && bytes[0] != UInt8(ascii: "[")
        if bracketed { request.append(UInt8(ascii: "[")) }
        request.append(contentsOf: host.utf8)
        if bracketed { request.append(UInt8(ascii: "]")) }
    }
}

/// How an account proves itself to the service. Prints as its kind alone.
public enum ServiceCredential: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// TLS with a token that can stand in a URL without escapes (``isUnreserved(_:)``); by the documentation it is a
    /// decimal number.
    case https(token: [UInt8])
    /// HTTP, names and answers encrypted with AES-128-CBC; the key has 16 bytes.
    case aes(id: UInt32, key: [UInt8])
    /// HTTP, names and answers encrypted with DES-ECB; the key has 8 bytes.
    case des(id: UInt32, key: [UInt8])

    public var description: String {
        switch self {
        case .https: "https"
        case .aes: "aes"
        case .des: "des"
        }
    }

    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Which addresses of a name the service is asked for.
public enum ServiceFamily: Sendable, Hashable {
    case ipv4, ipv6, both

    package var includesIPv4: Bool { self != .ipv6 }
    package var includesIPv6: Bool { self != .ipv4 }
}
