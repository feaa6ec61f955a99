import Base
import Cryptography
import Foundation
import Testing

/// The certificate of the demo, as this module and as the `openssl` command see it.
struct SelfSignedCertificateTests {
    private func make() throws -> (certificatePEM: [UInt8], keyPEM: [UInt8]) {
        try SelfSignedCertificate.make(
            names: ["demo.example", "*.demo.example"], addresses: [loopback, IPAddress("::1")!], days: 30)
    }

    @Test(arguments: ["demo.example", "any.demo.example", "127.0.0.1", "::1", nil])
    func verifiesAsItsOwnAnchor(name: String?) throws {
        let (certificate, key) = try make()
        let link = try carried(
            client(name, anchors: certificate), TLSServerContext(certificatePEM: certificate, keyPEM: key))
        #expect(link.client.state == .open)
        #expect(link.server.state == .open)
    }

    @Test func doesNotVerifyOtherwise() throws {
        let (certificate, key) = try make()
        let server = try TLSServerContext(certificatePEM: certificate, keyPEM: key)
        for (context, error) in [
            (try client("demo.example"), TLSError.selfSigned),
            (try client("demo.example", anchors: make().certificatePEM), .selfSigned),
            (
                try client("x.example", anchors: certificate),
                .certificateName(wanted: "x.example", has: ["demo.example", "*.demo.example", "127.0.0.1", "::1"])
            ),
        ] {
            let link = try carried(context, server)
            #expect(link.client.failure == error)
        }
    }

    @Test func opensslFindsItGood() throws {
        let (certificate, _) = try make()
        let folder = try TemporaryFolder()
        try folder.write(certificate, to: "demo.pem")
        let file = folder.path("demo.pem")
        let verified = try openssl([
            "verify", "-CAfile", file, "-no-CApath", "-x509_strict", "-purpose", "sslserver", "-verify_ip",
            "127.0.0.1", file,
        ])
        #expect(String(decoding: verified, as: UTF8.self).hasSuffix(": OK\n"))
        // Valid yesterday already, and for 29 days more but not for 31.
        let day = 86_400
        let yesterday = Int(Date().timeIntervalSince1970) - day + 60
        try openssl(["verify", "-CAfile", file, "-attime", "\(yesterday)", file])
        try openssl(["x509", "-in", file, "-noout", "-checkend", "\(29 * day)"])
        #expect(throws: CommandFailure.self) {
            try openssl(["x509", "-in", file, "-noout", "-checkend", "\(31 * day)"])
        }
        let text = String(decoding: try openssl(["x509", "-in", file, "-noout", "-text"]), as: UTF8.self)
        for part in ["Version: 3", "NIST CURVE: P-256", "CA:FALSE", "ecdsa-with-SHA256", "DNS:*.demo.example"] {
            #expect(text.contains(part), "\(part)")
        }
    }

    @Test func whatCannotBeInACertificate() {
        for name in ["a,DNS:b", "a b", "", "a\nb", "a..b", "*"] {
            #expect(throws: CryptographyError.certificateName(name)) {
                try SelfSignedCertificate.make(names: ["x.example", name], addresses: [], days: 1)
            }
        }
        for (names, days) in [([], 1), (["a.example"], 0), (["a.example"], -1), (["a.example"], Int.max)] {
            #expect(throws: CryptographyError.certificateRequest) {
                try SelfSignedCertificate.make(names: names, addresses: [], days: days)
            }
        }
    }

    @Test func longNames() throws {
        let label = String(repeating: "a", count: 60)
        let name = [label, label, label, "example"].joined(separator: ".")
        let (certificate, key) = try SelfSignedCertificate.make(names: [name], addresses: [], days: 1)
        let link = try carried(
            client(name, anchors: certificate), TLSServerContext(certificatePEM: certificate, keyPEM: key))
        #expect(link.client.state == .open)
    }
}
