import Base
import Cryptography
import Foundation
import TestSupport
import Testing

/// Certificates that the client shows: how their files are read, and what servers make of them.
@Suite(.timeLimit(.minutes(1)))
struct ClientCertificateTests {
    let certificates = TestCertificates.shared

    private func context(_ pkcs12: [UInt8]?, _ password: String = "secret") throws -> TLSClientContext {
        try TLSClientContext(
            TLSPolicy(
                serverName: "dns.example", anchors: certificates["root.pem"],
                clientCertificate: pkcs12.map { ($0, Array(password.utf8)) }))
    }

    // MARK: Files

    @Test func filesThatOpen() throws {
        _ = try context(certificates.pkcs12("client"))
        _ = try context(certificates.pkcs12("client", password: "pässwörd 密码"), "pässwörd 密码")
        _ = try context(certificates.pkcs12("clientunder", authorities: ["clientauthority", "otherroot"]))
        _ = try context(certificates.pkcs12("client", password: ""), "")
        // Windows and the OpenSSL before version 3 write such files when told to; three-key DES is still in OpenSSL 3.
        _ = try context(
            certificates.pkcs12(
                "client", "-keypbe", "PBE-SHA1-3DES", "-certpbe", "PBE-SHA1-3DES", "-macalg", "sha1"))
    }

    @Test func wrongAndMissingPasswords() throws {
        let file = try certificates.pkcs12("client")
        for wrong in ["Secret", "secret ", "secre", "secret\u{0}", "secret\u{0}more"] {
            #expect(throws: TLSError.clientCertificatePassword(given: true)) { try context(file, wrong) }
        }
        #expect(throws: TLSError.clientCertificatePassword(given: false)) { try context(file, "") }
        #expect(
            "\(TLSError.clientCertificatePassword(given: true))" == "the password of the client certificate is wrong")
        #expect("\(TLSError.clientCertificatePassword(given: false))" == "the client certificate needs a password")
    }

    /// The file of an old program, and the way out that the refusal names, taken as it stands.
    @Test func oldEncryption() throws {
        let old = try certificates.pkcs12("client", "-legacy")
        #expect(throws: TLSError.clientCertificateEncryption) { try context(old) }
        #expect(throws: TLSError.clientCertificatePassword(given: true)) { try context(old, "wrong") }

        let folder = try TemporaryFolder()
        try folder.write(old, to: "old.p12")
        let text = TLSError.clientCertificateEncryption.description
        let command = try #require(text.range(of: "to convert it: ").map { text[$0.upperBound...] })
            .replacingOccurrences(of: "-in OLD.p12", with: "-in old.p12 -passin pass:secret -passout pass:between")
            .replacingOccurrences(of: "-in TEMPORARY.pem", with: "-in TEMPORARY.pem -passin pass:between")
            .replacingOccurrences(of: "-out NEW.p12", with: "-out new.p12 -passout pass:new")
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = ["-c", command]
        shell.currentDirectoryURL = URL(fileURLWithPath: folder.path("."))
        try shell.run()
        shell.waitUntilExit()
        #expect(shell.terminationStatus == 0)
        _ = try context(folder.read("new.p12"), "new")
    }

    @Test func filesWithoutTheKeyOrItsCertificate() throws {
        for missing in ["-nokeys", "-nocerts"] {
            let file = try certificates.pkcs12("client", missing)
            #expect(throws: TLSError.clientCertificateIncomplete) { try context(file) }
        }
        let folder = try TemporaryFolder()
        try folder.write(certificates["client.key"], to: "client.key")
        try folder.write(certificates["oldclient.pem"], to: "oldclient.pem")
        let another = try openssl([
            "pkcs12", "-export", "-nocerts", "-inkey", folder.path("client.key"), "-certfile",
            folder.path("oldclient.pem"), "-in", folder.path("oldclient.pem"), "-passout", "pass:secret",
        ])
        #expect(throws: TLSError.clientCertificateIncomplete) { try context(another) }
    }

    @Test func weakCertificates() throws {
        let weak = try certificates.pkcs12("weakclient")
        #expect(throws: TLSError.clientCertificateTooWeak) { try context(weak) }
    }

    @Test func filesThatAreNotPKCS12() throws {
        let file = try certificates.pkcs12("client")
        let notFiles = [
            [], Array("nothing".utf8), certificates["client.key"] + certificates["client.pem"],
            try certificates.pkcs12("client", "-nomac"),
        ]
        for bytes in notFiles + (0..<file.count).map({ Array(file.prefix($0)) }) {
            #expect(throws: TLSError.clientCertificateUnreadable) { try context(bytes) }
        }
    }

    @Test func damagedFilesNeverTrap() throws {
        // Few rounds of key derivation, so that much can be tried.
        let file = try certificates.pkcs12("client", "-iter", "1")
        var generator = Chance.announced("ClientCertificateTests.damagedFilesNeverTrap")
        var refused = 0
        for _ in 0..<500 {
            var damaged = file
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let position = Int.random(in: 0..<file.count, using: &generator)
                // A flipped high bit could ask for a thousand million rounds of key derivation.
                damaged[position] ^= 1 << UInt8.random(in: 0..<4, using: &generator)
            }
            do { _ = try context(damaged) } catch { refused += 1 }
        }
        #expect(refused > 400)
    }

    @Test func nothingSecretIsPrinted() throws {
        let policy = TLSPolicy(clientCertificate: (Array("pkcs12!!".utf8), Array("password".utf8)))
        var dumped = ""
        dump(policy, to: &dumped)
        for text in ["\(policy)", String(reflecting: policy), dumped] {
            #expect(!text.contains("112") && !text.contains("115") && !text.contains("pkcs12!!"), "\(text)")
        }
    }

    // MARK: Servers

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func theServerSeesTheCertificate(version: String) throws {
        let server = try CommandServer(version, clientAuthority: "otherroot")
        let client = try context(certificates.pkcs12("client"))
        for round in 0..<3 {
            let (session, page) = try server.exchange(with: client)
            #expect(page.contains("Subject: CN = the client\n") || page.contains("Subject: CN=the client\n"), "\(page)")
            #expect(session.isResumed == (round > 0))
        }
        let under = try context(certificates.pkcs12("clientunder", authorities: ["clientauthority"]))
        #expect(try server.exchange(with: under).page.contains("the clientunder"))
    }

    @Test(arguments: [("-tls1_2", UInt8(40), "handshake failure"), ("-tls1_3", 116, "certificate required")])
    func aServerThatWantsACertificateAndGetsNone(version: String, alert: UInt8, name: String) throws {
        let server = try CommandServer(version, clientAuthority: "otherroot")
        let (session, page) = try server.exchange(with: context(nil))
        #expect(page == "")
        #expect(session.failure == .clientCertificateWanted(alert: alert))
        #expect(
            session.failure?.description
                == "the server wants a client certificate and none is configured (alert \(alert) (\(name)))")
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func aServerThatRefusesTheCertificate(version: String) throws {
        let server = try CommandServer(version, clientAuthority: "otherroot")
        for (name, alert, reason) in [
            ("clientonly", UInt8(48), "unknown authority"), ("oldclient", 45, "certificate expired"),
            ("clientunder", 48, "unknown authority"), ("stranger", 43, "unsupported certificate"),
        ] {
            let (session, page) = try server.exchange(with: context(certificates.pkcs12(name)))
            #expect(page == "")
            #expect(session.failure == .clientCertificateRefused(alert: alert), "\(name)")
            #expect(
                session.failure?.description
                    == "the server refuses the client certificate: alert \(alert) (\(reason))")
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func theCertificateIsShownOnlyWhenAskedFor(version: String) throws {
        let silent = try CommandServer(version)
        let (session, page) = try silent.exchange(with: context(certificates.pkcs12("client")))
        #expect(session.failure == nil)
        #expect(page.contains("no client certificate available"))
        // One that asks and does not insist.
        let polite = try CommandServer(version, "-verify", "1")
        let (without, withoutPage) = try polite.exchange(with: context(nil))
        #expect(without.failure == nil)
        #expect(withoutPage.contains("no client certificate available"))
    }
}
