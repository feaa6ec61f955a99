import Base
import Cryptography
import DNSWire
import HTTP

@testable import HTTPDNS

extension Target {
    /// The body of an answer: as it is, as hexadecimal of something encrypted, and as the text behind the encryption.
    static let service = Target(name: "service") { body in
        let family = [Families.ipv4, .ipv6, .both][choice(body, of: 3, salt: 1)]
        let names = choice(body, of: 2, salt: 2) == 0 ? Array(allNames[..<1]) : allNames
        let clear = parse(body, names, family, by: accounts.https)
        if case .success(let results) = clear { checkResults(results, names, family) }
        let (account, cipher) = accounts.encrypted[choice(body, of: accounts.encrypted.count, salt: 3)]
        switch choice(body, of: 4, salt: 4) {
        case 0:
            guard case .success(let results) = parse(body, names, family, by: account) else { return }
            checkResults(results, names, family)
        case 1:
            guard case .success(let results) = parse(hexadecimal(body), names, family, by: account) else { return }
            checkResults(results, names, family)
        default:
            // Nothing at all is "no record" there, too.
            let payload = try? cipher.encrypt(body.span)
            checkEncrypted(parse(hexadecimal(payload ?? []), names, family, by: account), clear, body)
        }
    }

    /// The body of an answer in JSON, by each provider that has such: in clear, and as the text behind the encryption.
    static let providers = Target(name: "providers") { body in
        let account = accounts.signed[choice(body, of: accounts.signed.count, salt: 1)]
        let family = choice(body, of: 2, salt: 2) == 0 ? Families.ipv4 : .both
        let names = choice(body, of: 2, salt: 3) == 0 ? Array(allNames[..<1]) : allNames
        switch choice(body, of: 8, salt: 4) {
        case 0: _ = readConfiguration(body, by: account)
        case 1:
            guard case .failure(let failure) = parse(body, allNames, .both, by: account, status: 403) else {
                check(false, "a refusal is an answer")
                return
            }
            let keys = AccountKeys("httpdns", names: "domains.intercept", .https(token: Secret([])))
            check(failure.words(keys).utf8.allSatisfy { (0x20...0x7E).contains($0) }, "what no log can hold")
        case 2:
            let (account, cipher) = accounts.alibaba
            let payload = (try? cipher.encrypt(body.span)) ?? []
            let data = Base64.standard.encode(payload)
            let envelope = Array("{\"code\":\"success\",\"mode\":1,\"data\":\"\(data)\"}".utf8)
            switch parse(envelope, allNames, .both, by: account) {
            case .success(let results): checkResults(results, allNames, .both)
            case .failure(let failure): check(failure == .undecryptable, "refused as \(failure)")
            }
        default:
            guard case .success(let results) = parse(body, names, family, by: account) else { return }
            checkResults(results, names, family)
        }
    }

    /// The service's own configuration, likewise.
    static let conf = Target(name: "conf") { body in
        let clear = readConfiguration(body, by: accounts.https)
        let (account, cipher) = accounts.encrypted[choice(body, of: accounts.encrypted.count, salt: 1)]
        let payload = try? cipher.encrypt(body.span)
        let encrypted = readConfiguration(hexadecimal(payload ?? []), by: account)
        check(encrypted == clear.mapError { _ in .undecryptable }, "it depends on the encryption")
        if case .failure(let failure) = readConfiguration(hexadecimal(body), by: account) {
            check(failure == .undecryptable, "refused as \(failure)")
        }
        guard case .success(let read) = clear else { return }
        check((1...ServiceConfiguration.maximumTTLMinutes).contains(read.ttlMinutes), "\(read.ttlMinutes) minutes")
        check(read.addresses.count <= ServiceProtocol.addressesPerService, "too many addresses")
        check(Set(read.addresses).count == read.addresses.count, "an address twice")
        check(read.addresses.allSatisfy(\.isOfOneMachine), "an address of no machine")
        let list = read.addresses.map(\.description).joined(separator: ";")
        let text = Array("log:0|domain:0|ip:\(list)|ttl:\(read.ttlMinutes)".utf8)
        check(readConfiguration(text, by: accounts.https) == .success(read), "written down it says something else")
    }
}

private let allNames = ["www.example.com", "example.com", "a-b_c.example.net"].map { Name($0)! }

/// Of one thread: libFuzzer has no other.
private struct Accounts: @unchecked Sendable {
    let https: TencentAccount
    let encrypted: [(TencentAccount, PayloadCipher)]
    let signed: [any ServiceAccount]
    let alibaba: (any ServiceAccount, PayloadCipher)

    init() throws {
        let (aes, des) = (Array("0123456789abcdef".utf8), Array("01234567".utf8))
        let secret = Array("00112233445566778899aabbccddeeff".utf8)
        signed = try Provider.allCases.filter { $0 != .tencent }.map { provider in
            try Credential.signed(provider, id: 1, secret: Secret(secret), aesKey: nil).account()
        }
        alibaba = (
            try Credential.signed(.alibaba, id: 1, secret: Secret(secret), aesKey: Secret(hexadecimal(aes))).account(),
            try PayloadCipher(.aes, key: aes)
        )
        https = try TencentAccount(.https(token: Secret(Array("424242".utf8))))
        encrypted = [
            (try TencentAccount(.aes(id: 1, key: Secret(aes))), try PayloadCipher(.aes, key: aes)),
            (try TencentAccount(.des(id: 1, key: Secret(des))), try PayloadCipher(.des, key: des)),
        ]
    }
}

private let accounts: Accounts = {
    guard let accounts = try? Accounts() else { fatalError("no accounts") }
    return accounts
}()

private func parse(
    _ body: [UInt8], _ names: [Name], _ family: Families, by account: any ServiceAccount, status: Int = 200
) -> Result<[NameAddresses], ServiceFailure> {
    do throws(ServiceFailure) {
        return .success(try account.parse(HTTPResponse(status: status, body: body), names: names, family: family))
    } catch {
        return .failure(error)
    }
}

private func readConfiguration(
    _ body: [UInt8], by account: any ServiceAccount
) -> Result<ServiceConfiguration, ServiceFailure> {
    do throws(ServiceFailure) {
        return .success(try account.parseConfiguration(HTTPResponse(status: 200, body: body)))
    } catch {
        return .failure(error)
    }
}

private func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    Hexadecimal.append(bytes.span, to: &text)
    return text
}

/// What was encrypted is read as it is in clear, but for long TTLs; some of it is refused, and always in the same way.
private func checkEncrypted(
    _ encrypted: Result<[NameAddresses], ServiceFailure>, _ clear: Result<[NameAddresses], ServiceFailure>,
    _ body: [UInt8]
) {
    switch (clear, encrypted) {
    case (_, .failure(let failure)):
        check(failure == .undecryptable, "refused as \(failure)")
        guard case .success(let results) = clear else { return }
        // A list without a TTL, or a name in other letters.
        let mayLackTTL = results.contains { $0.ipv4.ttl == 60 || $0.ipv6.ttl == 60 }
        check(mayLackTTL || body.contains { $0 != lowercased($0) }, "refused only because it is encrypted")
    case (.failure, .success): check(false, "taken only because it is encrypted")
    case (.success(let results), .success(let encrypted)): check(results.map(\.capped) == encrypted, "it depends")
    }
}

extension NameAddresses {
    fileprivate var capped: NameAddresses { NameAddresses(name: name, ipv4: ipv4.capped, ipv6: ipv6.capped) }
}

extension FamilyAddresses {
    fileprivate var ttl: UInt32? { if case .addresses(_, let ttl) = self { ttl } else { nil } }

    fileprivate var capped: FamilyAddresses {
        guard case .addresses(let addresses, let ttl) = self else { return self }
        return .addresses(addresses, ttl: min(ttl, ServiceProtocol.maximumEncryptedTTL))
    }
}

private func checkResults(_ results: [NameAddresses], _ names: [Name], _ family: Families) {
    check(!results.isEmpty, "nothing is neither an answer nor a failure")
    let indices = results.map { names.firstIndex(of: $0.name) ?? -1 }
    check(!indices.contains(-1) && zip(indices, indices.dropFirst()).allSatisfy { $0 < $1 }, "other names than asked")
    for result in results {
        check((result.ipv4 == .notAsked) != family.contains(.ipv4), "IPv4 is not as asked")
        check((result.ipv6 == .notAsked) != family.contains(.ipv6), "IPv6 is not as asked")
        for (list, isIPv4) in [(result.ipv4, true), (result.ipv6, false)] {
            guard case .addresses(let addresses, let ttl) = list else { continue }
            check((1...ServiceProtocol.addressesPerFamily).contains(addresses.count), "\(addresses.count) addresses")
            check(addresses.allSatisfy { $0.isIPv4 == isIPv4 }, "an address of the other family")
            check(addresses.allSatisfy(\.isOfOneMachine), "an address of no machine")
            check(Set(addresses).count == addresses.count, "an address twice")
            check(ttl <= ServiceProtocol.maximumTTL, "a TTL of \(ttl)")
        }
    }
    let lines = results.map { line($0, family) }.joined(separator: "\n")
    check(
        parse(Array(lines.utf8), results.map(\.name), family, by: accounts.https) == .success(results),
        "written down it says something else")
}

/// The line that says it.
private func line(_ result: NameAddresses, _ family: Families) -> String {
    func list(_ result: FamilyAddresses) -> String {
        guard case .addresses(let addresses, let ttl) = result else { return "0" }
        return addresses.map(\.description).joined(separator: ";") + ",\(ttl)"
    }
    let lists =
        switch family {
        case .ipv4: list(result.ipv4)
        case .ipv6: list(result.ipv6)
        default: list(result.ipv4) + "-" + list(result.ipv6)
        }
    return "\(result.name).:\(lists)|192.0.2.1"
}
