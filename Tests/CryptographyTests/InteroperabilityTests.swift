import Addresses
import Cryptography
import Foundation
import Testing

/// The `openssl` command's own server and client on loopback as the other side.
@Suite(.timeLimit(.minutes(1)))
struct InteroperabilityTests {
    /// `openssl s_server -www` on a port of its choice, ended with its owner.
    private final class Server {
        let process = Process()
        let output = Pipe()
        let folder: TemporaryFolder
        private(set) var port: UInt16 = 0

        init(_ arguments: String...) throws {
            folder = try TemporaryFolder()
            try folder.write(TestCertificates.shared.chain("good"), to: "chain.pem")
            try folder.write(TestCertificates.shared["good.key"], to: "key.pem")
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments =
                ["openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-cert", folder.path("chain.pem")]
                + ["-cert_chain", folder.path("chain.pem"), "-key", folder.path("key.pem")] + arguments
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            try process.run()
            // It says "ACCEPT 127.0.0.1:PORT" once it listens.
            var said = ""
            while port == 0 {
                let more = output.fileHandleForReading.availableData
                guard !more.isEmpty else { throw CommandFailure(description: "s_server ended: \(said)") }
                said += String(decoding: more, as: UTF8.self)
                for line in said.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                where line.hasPrefix("ACCEPT ") {
                    port = UInt16(line.split(separator: ":").last ?? "") ?? 0
                }
            }
        }

        deinit {
            // Started from a thread that blocks SIGTERM, it inherits that.
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
    }

    /// A blocking loopback socket that gives up after ten seconds; port 0 listens, others are connected to.
    private final class Socket {
        let descriptor: Int32

        init(descriptor: Int32) {
            self.descriptor = descriptor
            var patience = timeval(tv_sec: 10, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        }

        convenience init(port: UInt16) throws {
            self.init(descriptor: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
                    return port == 0 ? bind(descriptor, $0, length) : connect(descriptor, $0, length)
                }
            }
            guard result == 0, port != 0 || listen(descriptor, 1) == 0 else {
                throw CommandFailure(description: "socket: errno \(errno)")
            }
        }

        deinit { close(descriptor) }

        var port: UInt16 {
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            _ = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            }
            return UInt16(bigEndian: address.sin_port)
        }

        func accepted() -> Socket { Socket(descriptor: accept(descriptor, nil, nil)) }

        /// Carries bytes until `done`, the session's end, or the stream's; returns the plaintext that came.
        func carry(_ session: TLSSession, until done: (String) -> Bool) -> String {
            var plaintext: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            while true {
                let ciphertext = session.ciphertext()
                if !ciphertext.isEmpty { _ = send(descriptor, ciphertext, ciphertext.count, Int32(MSG_NOSIGNAL)) }
                session.takePlaintext(into: &plaintext)
                let text = String(decoding: plaintext, as: UTF8.self)
                let isOver = session.state != .handshaking && session.state != .open
                if isOver || done(text) { return text }
                let count = recv(descriptor, &buffer, buffer.count, 0)
                guard count > 0 else { return text }
                session.receive(buffer[..<count])
            }
        }
    }

    @Test(arguments: [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")])
    func ourClientTheirServer(option: String, version: String) throws {
        let server = try Server(option)
        let client = try client()
        for round in 0..<3 {
            let session = try client.session(to: loopback)
            session.send("GET / HTTP/1.0\r\n\r\n")
            let page = try Socket(port: server.port).carry(session) { $0.contains("</pre>") }
            #expect(session.protocolVersion == version)
            #expect(page.hasPrefix("HTTP/1.0 200 ok"))
            // The server's own view of the session.
            #expect(page.contains("\(round == 0 ? "New" : "Reused"), TLSv1.") == true, "\(page)")
            #expect(session.isResumed == (round > 0))
        }
    }

    @Test func theirOldServerIsRefused() throws {
        let server = try Server("-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
        let session = try client().session(to: loopback)
        _ = try Socket(port: server.port).carry(session) { _ in false }
        #expect(session.failure == .noSharedVersion)
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
        let listener = try Socket(port: 0)
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
        let listener = try Socket(port: 0)
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
