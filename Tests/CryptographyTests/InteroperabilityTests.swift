import Base
import Cryptography
import Foundation
import Testing

/// The `openssl` command's own server and client on loopback as the other side.
@Suite(.timeLimit(.minutes(1)))
struct InteroperabilityTests {
    @Test(arguments: [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")])
    func ourClientTheirServer(option: String, version: String) throws {
        let server = try CommandServer(option)
        let client = try client()
        for round in 0..<3 {
            let (session, page) = try server.exchange(with: client)
            #expect(session.protocolVersion == version)
            #expect(page.hasPrefix("HTTP/1.0 200 ok"))
            // The server's own view of the session.
            #expect(page.contains("\(round == 0 ? "New" : "Reused"), TLSv1.") == true, "\(page)")
            #expect(session.isResumed == (round > 0))
        }
    }

    @Test func theirOldServerIsRefused() throws {
        let server = try CommandServer("-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
        let session = try client().session(to: loopback)
        _ = try LoopbackSocket(port: server.port).carry(session) { _ in false }
        #expect(session.failure == .noSharedVersion)
    }

    /// Whoever comes by the server's key later cannot read what was said, and every record is authenticated.
    @Test(arguments: [
        ("ECDHE-RSA-AES128-GCM-SHA256", true), ("ECDHE-RSA-AES256-GCM-SHA384", true),
        ("ECDHE-RSA-CHACHA20-POLY1305", true), ("DHE-RSA-AES256-GCM-SHA384", true),
        ("AES128-GCM-SHA256", false), ("AES256-GCM-SHA384", false), ("AES128-SHA", false),
        ("ECDHE-RSA-AES128-SHA256", false), ("ECDHE-RSA-AES256-SHA", false),
    ])
    func forwardSecrecyAlone(cipher: String, isTaken: Bool) throws {
        let theirs = try CommandServer("-tls1_2", "-cipher", cipher, certificate: "rsa")
        let (session, page) = try theirs.exchange(with: client())
        #expect(page.hasPrefix("HTTP/1.0 200 ok") == isTaken)
        // handshake_failure, RFC 5246 §7.2.2.
        #expect(session.failure == (isTaken ? nil : .alert(40)))

        let listener = try LoopbackSocket(port: 0)
        let folder = try TemporaryFolder()
        let (process, input, _) = try startClient("-tls1_2", "-cipher", cipher, port: listener.port, in: folder)
        try input.write(contentsOf: Data("hello\n".utf8))
        let served = try server("rsa").session()
        // No parameters for DHE are configured, so as a server this side has none of it.
        let isServed = isTaken && !cipher.hasPrefix("DHE")
        #expect(listener.accepted().carry(served) { $0.hasSuffix("\n") } == (isServed ? "hello\n" : ""))
        #expect(served.failure == (isServed ? nil : .noSharedCipher))
        process.terminate()
        process.waitUntilExit()
    }

    /// `openssl s_client`, reading from `input` and writing both streams to `output`.
    private func startClient(_ arguments: String..., port: UInt16, in folder: TemporaryFolder) throws
        -> (process: Process, input: FileHandle, output: FileHandle)
    {
        try folder.write(TestCertificates.shared["root.pem"], to: "root.pem")
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            [
                "openssl", "s_client", "-connect", "127.0.0.1:\(port)", "-CAfile", folder.path("root.pem"),
                "-no-CApath", "-verify_return_error", "-verify_hostname", "dns.example", "-servername", "dns.example",
                "-alpn", "h2,http/1.1",
            ] + arguments
        process.standardInput = input
        process.standardOutput = output
        process.standardError = output
        try process.run()
        return (process, input.fileHandleForWriting, output.fileHandleForReading)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func theirClientOurServer(option: String) throws {
        let listener = try LoopbackSocket(port: 0)
        let folder = try TemporaryFolder()
        let (process, input, output) = try startClient(option, "-ign_eof", port: listener.port, in: folder)
        try input.write(contentsOf: Data("hello from s_client\n".utf8))
        let session = try server().session()
        let connection = listener.accepted()
        #expect(connection.carry(session) { $0.hasSuffix("\n") } == "hello from s_client\n")
        session.send("hello from here\n")
        session.close()
        _ = connection.carry(session) { _ in true }
        let seen = String(decoding: output.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(seen.contains("hello from here"))
        #expect(seen.contains("Verify return code: 0 (ok)"))
        #expect(seen.contains("ALPN protocol: http/1.1"))
    }

    @Test func theirClientMayNotRenegotiate() throws {
        let listener = try LoopbackSocket(port: 0)
        let folder = try TemporaryFolder()
        let (process, input, output) = try startClient("-tls1_2", port: listener.port, in: folder)
        // A line of "R" makes s_client renegotiate.
        try input.write(contentsOf: Data("R\n".utf8))
        let session = try server().session()
        _ = listener.accepted().carry(session) { _ in false }
        let seen = String(decoding: output.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(session.protocolVersion == "TLSv1.2")
        #expect(seen.contains("no renegotiation"), "\(seen)")
    }
}
