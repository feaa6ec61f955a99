import Cryptography
import Foundation

/// `openssl s_server -www` on a port of its choice, ended with its owner. It asks for a client's certificate when it is
/// given the name of the authority that must have signed it.
final class CommandServer {
    let process = Process()
    let output = Pipe()
    let folder: TemporaryFolder
    private(set) var port: UInt16 = 0

    init(_ arguments: String..., certificate: String = "good", clientAuthority: String? = nil) throws {
        folder = try TemporaryFolder()
        try folder.write(TestCertificates.shared.chain(certificate), to: "chain.pem")
        try folder.write(TestCertificates.shared["\(certificate).key"], to: "key.pem")
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-cert", folder.path("chain.pem")]
            + ["-cert_chain", folder.path("chain.pem"), "-key", folder.path("key.pem")] + arguments
        if let clientAuthority {
            try folder.write(TestCertificates.shared["\(clientAuthority).pem"], to: "authority.pem")
            process.arguments! += ["-CAfile", folder.path("authority.pem"), "-Verify", "3", "-verify_return_error"]
        }
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

    /// What it answered to a request, and the session.
    func exchange(with client: TLSClientContext) throws -> (TLSSession, page: String) {
        let session = try client.session(to: loopback)
        session.send("GET / HTTP/1.0\r\n\r\n")
        let page = try LoopbackSocket(port: port).carry(session) { $0.contains("</BODY>") }
        return (session, page)
    }

    deinit {
        // Started from a thread that blocks SIGTERM, it inherits that.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}

/// A blocking loopback socket that gives up after ten seconds; port 0 listens, others are connected to.
final class LoopbackSocket {
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

    func accepted() -> LoopbackSocket { LoopbackSocket(descriptor: accept(descriptor, nil, nil)) }

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
