import Base
import DNSWire
import HTTP
import HTTPDNS
import TestSupport
import Testing

@Suite struct HostileAnswerTests {
    private let account = try! TencentAccount(.https(token: Secret(Array("1".utf8))))
    private static let bodies = [
        "www.example.com.:192.0.2.1;192.0.2.2,120|203.0.113.7",
        "www.example.com.:192.0.2.1,120-2001:db8::1;2001:db8::2,60|203.0.113.7",
        "a.example.:192.0.2.1,60-0,60|203.0.113.7\nb.example.:0,60-2001:db8::1,60|203.0.113.7",
        "www.example.com.:192.0.2.1;,120-2001:db8::1;2001:db8::2;,60|203.0.113.7", "www.example.com|203.0.113.7",
        "www.example.com.:0-0|203.0.113.7",
    ]
    private static let syntax = Array("|:;,-.0\n\r fF".utf8)

    /// What holds for any answer, whatever the text.
    private func check(_ results: [NameAddresses], _ names: [Name], _ family: Families) -> Bool {
        var rest = names[...]
        for result in results {
            guard let index = rest.firstIndex(of: result.name) else { return false }
            rest = rest[(index + 1)...]
            for (answer, asked, isIPv4) in [
                (result.ipv4, family != .ipv6, true), (result.ipv6, family != .ipv4, false),
            ] {
                switch answer {
                case .notAsked: if asked { return false }
                case .noRecord: if !asked { return false }
                case .addresses(let addresses, let ttl):
                    guard asked, !addresses.isEmpty, addresses.count <= 32, ttl <= Int32.max,
                        addresses.allSatisfy({ $0.isIPv4 == isIPv4 }), Set(addresses).count == addresses.count
                    else { return false }
                }
            }
        }
        return !results.isEmpty
    }

    private func holds(_ account: TencentAccount, _ body: [UInt8], _ names: [Name], _ family: Families) -> Bool {
        do throws(ServiceFailure) {
            let response = HTTPResponse(status: 200, body: body)
            return check(try account.parse(response, names: names, family: family), names, family)
        } catch {
            return true
        }
    }

    @Test func everyTruncation() throws {
        for body in Self.bodies {
            for length in 0...body.utf8.count {
                for family in [Families.ipv4, .ipv6, .both] {
                    #expect(
                        holds(account, Array(body.utf8.prefix(length)), names("www.example.com", "a.example"), family))
                }
            }
        }
    }

    @Test func mutations() throws {
        var generator = Chance.announced("HostileAnswerTests.mutations")
        let asked = [
            names("www.example.com"), names("a.example", "b.example"), names("a.example", "www.example.com"),
            names("f"),
        ]
        for _ in 0..<100_000 {
            let body =
                Int.random(in: 0..<10, using: &generator) == 0
                ? (0..<Int.random(in: 0..<80, using: &generator)).map { _ in
                    Self.syntax.randomElement(using: &generator)!
                }
                : mutate(Array(Self.bodies.randomElement(using: &generator)!.utf8), with: Self.syntax, &generator)
            let names = asked.randomElement(using: &generator)!
            let family = [Families.ipv4, .ipv6, .both].randomElement(using: &generator)!
            if !holds(account, body, names, family) {
                Issue.record("\(text(body).debugDescription) \(names) \(family)")
            }
        }
    }

    @Test func encryptedMutations() throws {
        var generator = Chance.announced("HostileAnswerTests.encryptedMutations")
        let accounts = [
            try TencentAccount(.aes(id: 1, key: Secret(aesKey))), try TencentAccount(.des(id: 1, key: Secret(desKey))),
        ]
        let body = Array(
            "b9a896128400c10c262edfa949dd9e1590fee9f660550227c15404ead7c18a00ce073b42c33c8ddd66adc3a107c42cc9d7baf42beed711f5"
                .utf8)
        for _ in 0..<20_000 {
            let account = accounts.randomElement(using: &generator)!
            let mutated = mutate(body, with: Array("0123456789abcdefABCDEF \n".utf8), &generator)
            if !holds(account, mutated, names("www.example.com"), .both) { Issue.record("\(text(mutated))") }
        }
    }

    /// As long as a body may be, made to be slow.
    @Test(arguments: ["|", ":", ";", ",", "-", "\n", ".:", "1.1.1.1;", "a.example.:\n", "0;", "a"])
    func longRepetitions(unit: String) throws {
        let body = Array(String(repeating: unit, count: HTTPResponseReader.bodyLimit / unit.utf8.count).utf8)
        let eight = (0..<8).map { Name("n\($0).example")! }
        for family in [Families.ipv4, .both] {
            #expect(holds(account, body, eight, family))
            #expect(holds(account, body, names("a.example"), family))
        }
    }
}
