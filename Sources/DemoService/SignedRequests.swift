internal import Base
internal import DNSWire
internal import HTTPDNS

/// The protocols of the providers that sign their requests, spoken over TLS.
///
/// A request is right if the account itself, with the same secret and at the time that the request speaks of, would have
/// written the same target.
final class SignedRequests {
    private let accounts: [Provider: any ServiceAccount]
    private let unixSeconds: () -> UInt64

    init(_ account: DemoAccount, unixSeconds: @escaping () -> UInt64) throws(RequestError) {
        var accounts: [Provider: any ServiceAccount] = [:]
        for provider in Provider.allCases where provider != .tencent {
            accounts[provider] = try ServiceCredential.signed(
                provider, id: account.id, secret: account.secret, aesKey: nil
            ).account()
        }
        (self.accounts, self.unixSeconds) = (accounts, unixSeconds)
    }

    /// The body of an answer; nil if the target is none of these providers'.
    func answer(_ target: [UInt8], _ result: (Name, Families) -> NameAddresses) throws(Refusal) -> [UInt8]? {
        let query = target.firstIndex(of: UInt8(ascii: "?")) ?? target.count
        let path = String(decoding: target[..<query], as: UTF8.self)
        guard let form = Form.all.first(where: { path.hasPrefix($0.path) || path.hasSuffix($0.suffix) }),
            let account = accounts[form.provider]
        else { return nil }
        let parameters = Parameters(target, from: min(query + 1, target.count))
        let most = form.provider.facts.namesPerRequest
        guard let listed = parameters[form.names], let time = parameters[form.time],
            let expiry = decimal(time.span, time.indices, maximum: .max)
        else { throw .badRequest }
        let names = listed.split(separator: UInt8(ascii: ",")).compactMap { Name(String(decoding: $0, as: UTF8.self)) }
        let family = form.family(parameters[form.type].map { String(decoding: $0, as: UTF8.self) } ?? "")
        let ends = UInt64(expiry) / (form.provider == .volcengine ? 1000 : 1)
        guard !names.isEmpty, names.count <= most, ends >= unixSeconds() else { throw .unauthorized }
        let begun = ends &- UInt64(form.provider.facts.validity)
        var expected: [UInt8] = []
        try? account.appendTarget(names, family: family, at: begun, to: &expected)
        guard target == expected else { throw .unauthorized }
        return Array(form.body(names.map { result($0, family) }, unixSeconds()).text.utf8)
    }
}

/// What is different about the providers' requests and answers.
private struct Form: Sendable {
    let provider: Provider
    let path: String
    var suffix = "\n"
    /// The parameters with the names, the families and the time.
    let names: String
    let type: String
    let time: String
    let body: @Sendable ([NameAddresses], UInt64) -> JSON

    func family(_ text: String) -> Families {
        switch text {
        case "4", "ipv4", "A": .ipv4
        case "6", "ipv6", "AAAA": .ipv6
        default: .both
        }
    }

    static let all: [Form] = [
        Form(provider: .alibaba, path: "/v2/d", names: "dn", type: "q", time: "exp") { results, _ in
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
        Form(provider: .alibabaV1, path: "\n", suffix: "/sign_d", names: "host", type: "query", time: "t") {
            results, _ in
            results[0].version1
        },
        Form(provider: .alibabaV1, path: "\n", suffix: "/sign_resolve", names: "host", type: "query", time: "t") {
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

    /// 60 where there is nothing.
    fileprivate var ttl: UInt64 { if case .addresses(_, let ttl) = self { UInt64(ttl) } else { 60 } }

    fileprivate func json(_ list: String) -> JSON { .object([(list, .array(texts)), ("ttl", .integer(ttl))]) }
}
