import Base
import Configuration
import Cryptography
import DNSWire
import HTTP
import HTTPDNS

@testable import DemoService

/// The signed-request protocols of some providers, over TLS.
///
/// The signatures follow the providers' documents and do not use the code of accounts under test, so that an error
/// there is found. Both use MD5 and HMAC of the same library.
final class SignedRequests {
    private let id: [UInt8]
    private let secret: [UInt8]
    private let md5: RequestSigner
    private let hmac: RequestSigner
    private let unixSeconds: () -> UInt64

    init(_ account: DemoAccount, unixSeconds: @escaping () -> UInt64) throws(CryptographyError) {
        let secret = account.secret
        (id, self.secret) = (Array("\(account.id)".utf8), secret)
        md5 = try RequestSigner()
        hmac = try RequestSigner(hmacSHA256: Hexadecimal.decode(secret.span) ?? [])
        self.unixSeconds = unixSeconds
    }

    /// The body of an answer; nil for a target of another protocol.
    func answer(_ target: [UInt8], _ result: (Name, Families) -> NameAddresses) throws(HTTPStatus) -> [UInt8]? {
        let query = target.firstIndex(of: UInt8(ascii: "?")) ?? target.count
        let path = String(decoding: target[..<query], as: UTF8.self)
        guard let form = Form.all.first(where: { $0.path.map(path.hasPrefix) ?? path.hasSuffix($0.suffix) }) else {
            return nil
        }
        let start = min(query + 1, target.count)
        let parameters = Parameters(query: target[start...])
        guard let listed = parameters[form.names], let time = parameters[form.time],
            let expiry = decimal(time.span, time.indices, maximum: .max)
        else { throw .badRequest }
        let texts = listed.split(separator: UInt8(ascii: ","))
        let names = texts.compactMap { Name(String(decoding: $0, as: UTF8.self)) }
        let family = form.family(parameters[form.type].map { String(decoding: $0, as: UTF8.self) } ?? "")
        let ends = UInt64(expiry) / (form.provider == .volcengine ? 1000 : 1)
        let isOwn =
            form.path == nil ? path.hasPrefix("/\(String(decoding: id, as: UTF8.self))/") : parameters[form.id] == id
        let given = parameters[form.signature]
        guard isOwn, given == signature(form, listed, time, parameters, target[start...]), !names.isEmpty,
            names.count == texts.count, names.count <= form.provider.facts.namesPerRequest, ends >= unixSeconds()
        else { throw .unauthorized }
        return Array(form.body(names.map { result($0, family) }, unixSeconds()).text.utf8)
    }

    /// The expected signature of a request.
    private func signature(
        _ form: Form, _ names: [UInt8], _ time: [UInt8], _ parameters: Parameters, _ query: ArraySlice<UInt8>
    ) -> [UInt8] {
        switch form.provider {
        case .alibaba:
            // All parameters except signature and session, sorted by name.
            let others = query.split(separator: UInt8(ascii: "&")).filter {
                !$0.starts(with: "s=".utf8) && !$0.starts(with: "sid=".utf8)
            }
            return signature(of: sorted(others.map { Array($0) }), joinedBy: "&", hmac)
        case .volcengine:
            let values = ["account_id", "timestamp", "ip", "type", "domain"].map { parameters[$0] ?? [] }
            return signature(of: sorted(values + [secret]), joinedBy: "_", md5)
        default: return signature(of: [names, secret, time], joinedBy: "-", md5)
        }
    }

    private func sorted(_ parts: [[UInt8]]) -> [[UInt8]] { parts.sorted { $0.lexicographicallyPrecedes($1) } }

    private func signature(of parts: [[UInt8]], joinedBy separator: String, _ signer: RequestSigner) -> [UInt8] {
        let text = Array(parts.joined(separator: Array(separator.utf8)))
        var signature: [UInt8] = []
        signer.appendSignature(of: text.span, to: &signature)
        return signature
    }
}

/// The differences between the providers' requests and answers.
private struct Form: Sendable {
    let provider: Provider
    /// The beginning of the path; nil: the path begins with the account's number and ends with ``suffix``.
    var path: String?
    var suffix = ""
    /// The names of the parameters for the account's number, names, families, time and signature.
    var id = "account_id"
    let names: String
    let type: String
    let time: String
    var signature = "sign"
    let body: @Sendable ([NameAddresses], UInt64) -> JSON

    func family(_ text: String) -> Families {
        switch text {
        case "4", "ipv4", "A": .ipv4
        case "6", "ipv6", "AAAA": .ipv6
        default: .both
        }
    }

    static let all: [Form] = [
        Form(provider: .alibaba, path: "/v2/d", id: "id", names: "dn", type: "q", time: "exp", signature: "s") {
            results, _ in
            let answers = results.map { result in
                JSON.object([
                    ("dn", .string("\(result.name)")), ("v4", result.ipv4.json("ips")), ("v6", result.ipv6.json("ips")),
                ])
            }
            return .object([
                ("code", .string("success")), ("mode", .integer(0)),
                ("data", .object([("cip", .string("127.0.0.1")), ("answers", .array(answers))])),
            ])
        },
        Form(provider: .alibabaV1, suffix: "/sign_d", names: "host", type: "query", time: "t", signature: "s") {
            results, _ in
            results[0].version1
        },
        Form(provider: .alibabaV1, suffix: "/sign_resolve", names: "host", type: "query", time: "t", signature: "s") {
            results, _ in .object([("dns", .array(results.map(\.version1)))])
        },
        Form(provider: .baidu, path: "/v4/resolve", names: "dn", type: "type", time: "t") { results, now in
            let data = results.map { result in
                ("\(result.name)", JSON.object([("ipv4", result.ipv4.json("ip")), ("ipv6", result.ipv6.json("ip"))]))
            }
            return .object([("msg", .string("ok")), ("data", .object(data)), ("timestamp", .integer(now))])
        },
        Form(provider: .volcengine, path: "/resolve", names: "domain", type: "type", time: "timestamp") { results, _ in
            let (ipv4, ipv6) = (results[0].ipv4, results[0].ipv6)
            return .object([
                ("host", .string("\(results[0].name)")), ("ips", .array(ipv4.texts + ipv6.texts)),
                ("ttl", .integer(ipv4.texts.isEmpty ? ipv6.ttl : ipv4.ttl)),
            ])
        },
    ]
}

extension DemoAccount {
    /// The secret that signs requests: hexadecimal digits.
    var secret: [UInt8] {
        var digits: [UInt8] = []
        Hexadecimal.append(aesKey.span, to: &digits)
        return digits
    }
}

extension NameAddresses {
    fileprivate var version1: JSON {
        .object([
            ("host", .string("\(name)")), ("ips", .array(ipv4.texts)), ("ipsv6", .array(ipv6.texts)),
            ("ttl", .integer(ipv4.texts.isEmpty ? ipv6.ttl : ipv4.ttl)),
        ])
    }
}

extension FamilyAddresses {
    fileprivate var texts: [JSON] {
        if case .addresses(let addresses, _) = self { addresses.map { .string("\($0)") } } else { [] }
    }

    /// 60 without addresses.
    fileprivate var ttl: UInt64 { if case .addresses(_, let ttl) = self { UInt64(ttl) } else { 60 } }

    fileprivate func json(_ list: String) -> JSON { .object([(list, .array(texts)), ("ttl", .integer(ttl))]) }
}
