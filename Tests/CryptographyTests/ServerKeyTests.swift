import Base
import Testing

@testable import Cryptography

/// Certificates and keys of each type, each with each: only a certificate's own key is taken for it.
struct ServerKeyTests {
    /// The parameters with which `openssl` makes a key; some types stand here twice, with other parameters or another number.
    private static let kinds: [(name: String, parameters: [String])] = [
        ("RSA", ["rsa:2048"]), ("RSA, another number", ["rsa:2048"]),
        ("RSA-PSS", ["rsa-pss", "-pkeyopt", "rsa_keygen_bits:2048"]),
        ("P-256", ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]),
        ("P-256, another number", ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]),
        ("P-384", ["ec", "-pkeyopt", "ec_paramgen_curve:P-384"]),
        ("Ed25519", ["ed25519"]), ("Ed25519, another number", ["ed25519"]), ("Ed448", ["ed448"]),
    ]

    @Test func onlyTheKeyOfTheCertificateIsTaken() throws {
        let folder = try TemporaryFolder()
        let pairs = try Self.kinds.map { kind in
            try openssl(
                ["req", "-x509", "-newkey"] + kind.parameters + [
                    "-nodes", "-days", "2", "-subj", "/CN=dns.example", "-keyout", folder.path("key"),
                    "-out", folder.path("certificate"),
                ])
            return try (certificate: folder.read("certificate"), key: folder.read("key"))
        }
        for (certificate, shown) in zip(Self.kinds, pairs) {
            for (key, own) in zip(Self.kinds, pairs) {
                var found: TLSError?
                do throws(TLSError) {
                    _ = try TLSServerContext(certificatePEM: shown.certificate, keyPEM: own.key)
                } catch {
                    found = error
                }
                #expect(
                    found == (certificate.name == key.name ? nil : .keyMismatch),
                    "certificate \(certificate.name), key \(key.name)")
            }
        }
    }
}

/// What a server's certificate says of itself.
struct ServerCertificateTests {
    private let certificates = TestCertificates.shared

    private func context(_ name: String) throws -> TLSServerContext {
        try TLSServerContext(certificatePEM: certificates.chain(name), keyPEM: certificates["\(name).key"])
    }

    @Test func whenItIsValid() throws {
        #expect(try context("good").validity == (981_173_106, 3_789_777_906))
        #expect(try context("ending").validity.ends == TestCertificates.soon)
        #expect(try context("expired").validity.ends == 1_612_325_106)
        #expect(try context("notyet").validity.begins == 3_474_158_706)
        // Clients judge the others of the chain by what they have themselves.
        #expect(try context("underending").validity.ends == 3_789_777_906)
    }

    @Test(arguments: [
        ("good", "dns.example", true), ("good", "DNS.Example", true), ("good", "other.example", false),
        ("good", "a.wild.example", true), ("good", "a.b.wild.example", false), ("good", "wild.example", false),
        ("nonames", "dns.example", false), ("partial", "foo.part.example", false),
    ])
    func whichNameItIsFor(certificate: String, name: String, isFor: Bool) throws {
        #expect(try context(certificate).isFor(name: name) == isFor)
    }

    @Test func whichAddressItIsFor() throws {
        let good = try context("good")
        #expect(good.isFor(IPAddress("127.0.0.1")!) && good.isFor(IPAddress("2001:db8::1")!))
        #expect(!good.isFor(IPAddress("192.0.2.1")!) && !good.isFor(IPAddress("2001:db8::2")!))
        #expect(try !context("nonames").isFor(IPAddress("127.0.0.1")!))
    }
}
