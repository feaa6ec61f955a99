import Base
import Cryptography
import Foundation
import Testing

let loopback = IPAddress.v4(127, 0, 0, 1)
/// Seconds since 1970, when it does not matter: of 2026, while the test's certificates are valid.
let anyTime: UInt64 = 1_800_000_000
let tls12: Int32 = 0x0303
let tls13: Int32 = 0x0304

extension TLSClientContext {
    func session(to address: IPAddress) throws -> TLSSession {
        try session(to: Endpoint(address, port: 443), at: anyTime)
    }
}

extension TLSSession {
    func receive(_ bytes: some Collection<UInt8>) { receive(Array(bytes).span) }
    func send(_ bytes: [UInt8]) { send(bytes.span) }
    func send(_ text: String) { send(Array(text.utf8)) }

    func ciphertext() -> [UInt8] {
        var bytes: [UInt8] = []
        takeCiphertext(into: &bytes)
        return bytes
    }

    func plaintext() -> [UInt8] {
        var bytes: [UInt8] = []
        takePlaintext(into: &bytes)
        return bytes
    }

    func text() -> String { String(decoding: plaintext(), as: UTF8.self) }

    var failure: TLSError? {
        if case .failed(let error) = state { return error }
        return nil
    }
}

/// A client and a server that talk through byte queues in memory.
struct TLSLink {
    let client: TLSSession
    let server: TLSSession

    init(
        _ client: TLSClientContext, _ server: TLSServerContext, to address: IPAddress = loopback, port: UInt16 = 443,
        _ target: TLSTarget = TLSTarget(), at now: UInt64 = anyTime
    ) throws {
        self.client = try client.session(to: Endpoint(address, port: port), target, at: now)
        self.server = try server.session()
    }

    /// Carries bytes both ways, in pieces as long as `piece` says, until both are silent.
    func carry(pieces piece: () -> Int = { .max }) {
        func feed(_ bytes: [UInt8], to session: TLSSession) {
            var rest = bytes[...]
            while !rest.isEmpty {
                let length = min(rest.count, piece())
                session.receive(rest.prefix(length))
                rest = rest.dropFirst(length)
            }
        }
        while true {
            let (up, down) = (client.ciphertext(), server.ciphertext())
            if up.isEmpty && down.isEmpty { return }
            feed(up, to: server)
            feed(down, to: client)
        }
    }
}

/// A client and a server that have carried all they had for each other.
@discardableResult
func carried(
    _ client: TLSClientContext, _ server: TLSServerContext, to address: IPAddress = loopback, port: UInt16 = 443,
    _ target: TLSTarget = TLSTarget(), at now: UInt64 = anyTime
) throws -> TLSLink {
    let link = try TLSLink(client, server, to: address, port: port, target, at: now)
    link.carry()
    return link
}

/// The pin of a certificate as text, encoded independently of the code under test.
func pinText(_ pin: [UInt8]) -> String { "sha256/\(Data(pin).base64EncodedString())" }

/// A client that trusts `anchors`.
func client(
    _ name: String? = "dns.example", anchors: [UInt8] = TestCertificates.shared["root.pem"], only: Bool = true
) throws -> TLSClientContext {
    try TLSClientContext(TLSPolicy(serverName: name, anchors: anchors, anchorsOnly: only))
}

/// A server that shows the certificate `name` and, unless told otherwise, the intermediate one.
func server(_ name: String = "good", alone: Bool = false, newest: Int32 = tls13) throws -> TLSServerContext {
    let certificates = TestCertificates.shared
    return try TLSServerContext(
        certificatePEM: alone ? certificates["\(name).pem"] : certificates.chain(name),
        keyPEM: certificates["\(name).key"], newestVersion: newest)
}
