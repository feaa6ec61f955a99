import Base
import Cryptography
import DNSWire
import HTTP
import HTTPDNS
import TestSupport

func names(_ texts: String...) -> [Name] { texts.map { Name($0)! } }

func addresses(_ texts: String...) -> [IPAddress] { texts.map { IPAddress($0)! } }

func decrypted(_ hexadecimal: Substring, _ cipher: PayloadCipher) throws -> String? {
    let payload = Hexadecimal.decode(Array(hexadecimal.utf8).span)
    return try payload.map { text(try cipher.decrypt($0.span)) }
}

func hexadecimal(_ octets: [UInt8]) -> [UInt8] {
    var digits: [UInt8] = []
    Hexadecimal.append(octets.span, to: &digits)
    return digits
}

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// The accounts whose answers are encrypted, each with what encrypts them.
func encryptedAccounts() throws -> [(TencentAccount, PayloadCipher)] {
    [
        (try TencentAccount(.aes(id: 1, key: Secret(aesKey))), try PayloadCipher(.aes, key: aesKey)),
        (try TencentAccount(.des(id: 1, key: Secret(desKey))), try PayloadCipher(.des, key: desKey)),
    ]
}

extension HTTPResponse {
    init(ok body: String) { self.init(status: 200, body: Array(body.utf8)) }

    init(encrypted text: String, _ cipher: PayloadCipher) throws {
        self.init(payload: try cipher.encrypt(Array(text.utf8).span))
    }

    /// The hexadecimal of what was encrypted, or of what somebody made of it.
    init(payload: [UInt8]) { self.init(status: 200, body: hexadecimal(payload)) }
}

extension ServiceAccount {
    /// The whole request, as upstreams send it.
    func request(
        _ names: [Name], family: Families, host: String, at unixSeconds: UInt64 = 0
    ) throws(RequestError) -> [UInt8] {
        try HTTPRequestWriter(host: host, keepsConnection: true).get { request throws(RequestError) in
            try appendTarget(names, family: family, at: unixSeconds, to: &request)
        }
    }
}
