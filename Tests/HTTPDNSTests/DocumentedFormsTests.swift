import Base
import Cryptography
import DNSWire
import HTTP
import HTTPDNS
import Testing

/// Every form in which the service's documentation and SDKs show an answer to what is always asked (`query=1&ttl=1&
/// clientip=1`): the numbers are those of the worked examples in the protocol's description.
@Suite struct DocumentedFormsTests {
    struct Form: Sendable, CustomTestStringConvertible {
        let example: Int
        let asked: String
        let family: Families
        let body: String
        /// As `said` writes it.
        let expected: String

        init(_ example: Int, _ asked: String, _ family: Families, _ body: String, _ expected: String) {
            (self.example, self.asked, self.family, self.body, self.expected) = (example, asked, family, body, expected)
        }

        var testDescription: String { "\(example): \(body.debugDescription)" }
        var names: [Name] { asked.split(separator: " ").map { Name(String($0))! } }
    }

    static let www = "www.example.com"
    static let two = "a.example b.example"

    static let forms = [
        // Addresses of one family, of both, of either.
        Form(5, www, .ipv4, "www.example.com.:192.0.2.1;192.0.2.2,120|203.0.113.7", "A 192.0.2.1 192.0.2.2 120"),
        Form(5, www, .ipv4, "www.example.com.:192.0.2.1;192.0.2.2,120", "A 192.0.2.1 192.0.2.2 120"),
        Form(5, www, .ipv4, "www.example.com.:192.0.2.1,120|2001:db8::7", "A 192.0.2.1 120"),
        Form(
            6, www, .ipv6, "www.example.com.:2001:db8::1;2001:db8::2,60|203.0.113.7", "AAAA 2001:db8::1 2001:db8::2 60"),
        Form(
            8, www, .both, "www.example.com.:192.0.2.1,120-2001:db8::1,60|203.0.113.7",
            "A 192.0.2.1 120 AAAA 2001:db8::1 60"),
        Form(
            8, "my-site.a-b.example", .both, "my-site.a-b.example.:192.0.2.1,120-2001:db8::1,60|203.0.113.7",
            "A 192.0.2.1 120 AAAA 2001:db8::1 60"),
        Form(17, www, .ipv4, "www.example.com.:192.0.2.1;192.0.2.2;,120|203.0.113.7", "A 192.0.2.1 192.0.2.2 120"),
        Form(
            17, www, .both, "www.example.com.:192.0.2.1;,120-2001:db8::1;,60|203.0.113.7",
            "A 192.0.2.1 120 AAAA 2001:db8::1 60"),
        // Several names; the client's address on the last line, on each, on none.
        Form(
            9, two, .ipv4, "a.example.:192.0.2.1,120\nb.example.:192.0.2.2,60|203.0.113.7",
            "A 192.0.2.1 120 / A 192.0.2.2 60"),
        Form(
            10, two, .ipv4, "a.example.:192.0.2.1,120|203.0.113.7\nb.example.:192.0.2.2,60|203.0.113.7",
            "A 192.0.2.1 120 / A 192.0.2.2 60"),
        Form(10, two, .ipv4, "a.example.:192.0.2.1,120\nb.example.:192.0.2.2,60", "A 192.0.2.1 120 / A 192.0.2.2 60"),
        Form(
            10, two, .ipv4, "b.example.:192.0.2.2,60|203.0.113.7\na.example.:192.0.2.1,120|203.0.113.7",
            "A 192.0.2.1 120 / A 192.0.2.2 60"),
        Form(11, two, .ipv4, "a.example.:0\nb.example.:192.0.2.2,180|203.0.113.7", "A none / A 192.0.2.2 180"),
        Form(11, two, .ipv4, "a.example.:0,30\nb.example.:192.0.2.2,180|203.0.113.7", "A none / A 192.0.2.2 180"),
        Form(18, two, .ipv4, "b.example.:192.0.2.2,60|203.0.113.7", "- / A 192.0.2.2 60"),
        Form(
            19, two, .both, "a.example.:192.0.2.1,60-0,60|203.0.113.7\nb.example.:0,60-2001:db8::1,60|203.0.113.7",
            "A 192.0.2.1 60 AAAA none / A none AAAA 2001:db8::1 60"),
        // The end of a line and of the text.
        Form(
            10, two, .ipv4, "a.example.:192.0.2.1,120\r\nb.example.:192.0.2.2,60\r\n",
            "A 192.0.2.1 120 / A 192.0.2.2 60"),
        Form(5, www, .ipv4, "www.example.com.:192.0.2.1,120|203.0.113.7\n", "A 192.0.2.1 120"),
        Form(5, www, .ipv4, "www.example.com.:192.0.2.1,120|203.0.113.7\n\n", "A 192.0.2.1 120"),
        Form(5, www, .ipv4, "www.example.com.:192.0.2.1,120|203.0.113.7\r\n\r\n", "A 192.0.2.1 120"),
        // No record.
        Form(12, www, .ipv4, "", "A none"),
        Form(12, www, .both, "\n", "A none AAAA none"),
        Form(12, two, .both, "", "A none AAAA none / A none AAAA none"),
        Form(13, www, .ipv4, "www.example.com|203.0.113.7", "A none"),
        Form(13, www, .both, "www.example.com|203.0.113.7", "A none AAAA none"),
        Form(13, www, .ipv4, "www.example.com.:0|203.0.113.7", "A none"),
        Form(13, www, .both, "www.example.com.:0|203.0.113.7", "A none AAAA none"),
        Form(14, www, .both, "www.example.com.:0-0|203.0.113.7", "A none AAAA none"),
        Form(14, www, .both, "www.example.com.:0,60-0,60|203.0.113.7", "A none AAAA none"),
        // One family missing. #15 itself is shown for a request without ttl=1; with it it is #16.
        Form(
            15, www, .both, "www.example.com.:192.0.2.1;192.0.2.2,120-0|203.0.113.7",
            "A 192.0.2.1 192.0.2.2 120 AAAA none"),
        Form(16, www, .both, "www.example.com.:192.0.2.1,120-0,60|203.0.113.7", "A 192.0.2.1 120 AAAA none"),
        Form(16, www, .both, "www.example.com.:192.0.2.1,120-0,0|203.0.113.7", "A 192.0.2.1 120 AAAA none"),
        Form(16, www, .both, "www.example.com.:0-2001:db8::1,60|203.0.113.7", "A none AAAA 2001:db8::1 60"),
        Form(16, www, .ipv6, "www.example.com.:0,300|203.0.113.7", "AAAA none"),
    ]

    @Test(arguments: forms) func overHTTPS(form: Form) throws {
        let account = try TencentAccount(.https(token: Secret(Array("1".utf8))))
        #expect(
            said(try account.parse(HTTPResponse(ok: form.body), names: form.names, family: form.family), form)
                == form.expected)
    }

    @Test(arguments: forms) func encrypted(form: Form) throws {
        for (account, cipher) in try encryptedAccounts() {
            let response = try HTTPResponse(encrypted: form.body, cipher)
            #expect(said(try account.parse(response, names: form.names, family: form.family), form) == form.expected)
        }
    }

    /// #15 as it is printed: over https, where nobody can have taken the TTL away.
    @Test func withoutTTLOverHTTPS() throws {
        let form = Form(
            15, Self.www, .both, "www.example.com.:192.0.2.1;192.0.2.2-0|203.0.113.7",
            "A 192.0.2.1 192.0.2.2 60 AAAA none")
        try overHTTPS(form: form)
    }

    private func said(_ results: [NameAddresses], _ form: Form) -> String {
        form.names.map { name in
            guard let result = results.first(where: { $0.name == name }) else { return "-" }
            return [said("A", result.ipv4), said("AAAA", result.ipv6)].compactMap(\.self).joined(separator: " ")
        }.joined(separator: " / ")
    }

    private func said(_ type: String, _ family: FamilyAddresses) -> String? {
        switch family {
        case .notAsked: nil
        case .noRecord: "\(type) none"
        case .addresses(let addresses, let ttl): "\(type) \(addresses.map(\.description).joined(separator: " ")) \(ttl)"
        }
    }
}
