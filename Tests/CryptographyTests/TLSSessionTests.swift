import Base
import Cryptography
import TestSupport
import Testing

/// Sessions as bytes in and bytes out: data, ends, limits, resumption, hostile bytes.
struct TLSSessionTests {
    @Test(arguments: [tls12, tls13])
    func dataGoesBothWays(newest: Int32) throws {
        let link = try TLSLink(client(), server(newest: newest))
        #expect(link.client.state == .handshaking)
        #expect(link.client.protocolVersion == "")
        link.client.send("before the handshake")
        link.carry()
        #expect(link.client.state == .open)
        #expect(link.server.state == .open)
        #expect(link.client.protocolVersion == (newest == tls13 ? "TLSv1.3" : "TLSv1.2"))
        #expect(link.server.protocolVersion == link.client.protocolVersion)
        #expect(!link.client.isResumed)
        #expect(link.server.text() == "before the handshake")
        link.server.send("answer")
        link.client.send("and ")
        link.client.send("more")
        link.carry()
        #expect(link.client.text() == "answer")
        #expect(link.server.text() == "and more")
        #expect(link.server.text() == "")
    }

    /// Several records at once, one of them longer than a piece, and the end right behind them.
    @Test(arguments: [tls12, tls13])
    func everythingAtOnce(newest: Int32) throws {
        let link = try carried(client(), server(newest: newest))
        let long = (0..<16_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        link.server.send("first ")
        link.server.send(long)
        link.server.send(" last")
        #expect(link.server.hasCiphertext)
        link.server.close()
        link.client.receive(link.server.ciphertext())
        #expect(!link.server.hasCiphertext)
        #expect(link.client.plaintext() == Array("first ".utf8) + long + Array(" last".utf8))
        #expect(link.client.state == .peerClosed)
    }

    @Test(arguments: [tls12, tls13])
    func oneByteAtATime(newest: Int32) throws {
        let link = try TLSLink(client(), server(newest: newest))
        link.client.send("question")
        link.carry(pieces: { 1 })
        link.server.send("answer")
        link.carry(pieces: { 1 })
        #expect(link.server.text() == "question")
        #expect(link.client.text() == "answer")
        link.client.close()
        link.carry(pieces: { 1 })
        #expect(link.server.state == .peerClosed)
    }

    /// RFC 8446 §6.1: close_notify ends one direction. A request and the end may even come with the last flight of the handshake.
    @Test(arguments: [tls12, tls13])
    func afterThePeersEndAnswersStillGo(newest: Int32) throws {
        let link = try TLSLink(client(), server(newest: newest))
        link.client.send("question")
        while link.client.state == .handshaking {
            link.server.receive(link.client.ciphertext())
            link.client.receive(link.server.ciphertext())
        }
        link.client.close()
        link.server.receive(link.client.ciphertext())
        #expect(link.server.state == .peerClosed && link.server.isEstablished && !link.server.isIdle)
        #expect(link.server.text() == "question")
        _ = link.server.ciphertext()
        link.server.send("answer")
        #expect(link.server.ciphertext().count > "answer".utf8.count)
        link.server.receive([1, 2, 3])
        link.server.close()
        #expect(link.server.hasCiphertext && link.server.state == .closed)
    }

    @Test(arguments: [tls12, tls13])
    func aMegabyteEachWayInRandomPieces(newest: Int32) throws {
        var generator = Chance.announced("TLSSessionTests.aMegabyteEachWayInRandomPieces")
        let data = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) }
        let link = try TLSLink(client(), server(newest: newest))
        link.carry(pieces: { Int.random(in: 1...5000, using: &generator) })
        var (up, down): ([UInt8], [UInt8]) = ([], [])
        var sent = 0
        while sent < data.count {
            let end = min(data.count, sent + Int.random(in: 1...100_000, using: &generator))
            link.client.send(Array(data[sent..<end]))
            link.server.send(Array(data[sent..<end]))
            sent = end
            link.carry(pieces: { Int.random(in: 1...50_000, using: &generator) })
            link.server.takePlaintext(into: &up)
            link.client.takePlaintext(into: &down)
        }
        #expect(up == data)
        #expect(down == data)
    }

    /// Wherever a record is cut, what has come of it is not nothing.
    @Test(arguments: [tls12, tls13])
    func aPieceOfARecordIsNotIdleness(newest: Int32) throws {
        let link = try TLSLink(client(), server(newest: newest))
        #expect(!link.client.isIdle)
        link.carry()
        #expect(link.client.isIdle)
        for round in 0..<3 {
            link.server.send("answer \(round)")
            for octet in link.server.ciphertext() {
                link.client.receive([octet])
                #expect(!link.client.isIdle)
            }
            #expect(link.client.text() == "answer \(round)")
            #expect(link.client.isIdle)
        }
        link.server.close()
        link.carry()
        #expect(!link.client.isIdle)
    }

    @Test(arguments: [tls12, tls13])
    func closeNotifyEndsBothSides(newest: Int32) throws {
        let link = try carried(client(), server(newest: newest))
        link.server.send("last words")
        link.server.close()
        #expect(link.server.state == .closed)
        link.carry()
        #expect(link.client.state == .peerClosed)
        #expect(link.client.text() == "last words")
        link.client.send("nobody listens")
        link.client.receive([1, 2, 3])
        link.client.close()
        link.carry()
        #expect(link.client.state == .closed)
        #expect(link.server.text() == "")
    }

    @Test func closingDuringTheHandshakeSaysNothing() throws {
        let session = try client().session(to: loopback)
        _ = session.ciphertext()
        session.close()
        #expect(session.state == .closed)
        #expect(session.ciphertext().isEmpty)
    }

    @Test(arguments: [tls12, tls13])
    func theSecondSessionIsResumed(newest: Int32) throws {
        let (client, server) = (try client(), try server(newest: newest))
        for round in 0..<4 {
            // Dropped without close_notify, as connections are that were kept alive.
            let link = try carried(client, server)
            #expect(link.client.state == .open)
            #expect(link.client.isResumed == (round > 0))
            #expect(link.server.isResumed == (round > 0))
        }
        for elsewhere in [
            try carried(client, server, to: .v4(127, 0, 0, 2)), try carried(client, server, port: 8443),
        ] {
            #expect(elsewhere.client.state == .open)
            #expect(!elsewhere.client.isResumed)
        }
    }

    /// What was given out before cannot be opened any more, and what is given out from then on can.
    @Test(arguments: [tls12, tls13])
    func otherTicketKeysEndWhatCanBeResumed(newest: Int32) throws {
        let (client, server) = (try client(), try server(newest: newest))
        for (round, isResumed) in [false, true, false, true].enumerated() {
            if round == 2 { server.changeTicketKeys() }
            let link = try carried(client, server)
            #expect(link.client.state == .open && link.client.isResumed == isResumed, "\(round)")
        }
    }

    @Test func afterAFailureTheNextSessionIsNew() throws {
        let (client, server) = (try client(), try server())
        for round in 0..<3 {
            let link = try carried(client, server)
            #expect(link.client.isResumed == (round == 1))
            if round == 1 {
                link.client.receive([UInt8](repeating: 0xFF, count: 100))
                #expect(link.client.failure != nil)
            }
        }
    }

    @Test func aRememberedSessionDoesNotVouchForAnotherCertificate() throws {
        let client = try client()
        try carried(client, server())
        #expect(client.remembered == 1)
        let other = try carried(client, server("expired"))
        #expect(other.client.failure == .certificateExpired(at: "2021-02-03 04:05:06 UTC", depth: 0))
        #expect(client.remembered == 0)
    }

    @Test func onlySoManySessionsAreRemembered() throws {
        let (client, server) = (try client(), try server())
        for last in 1...68 {
            try carried(client, server, to: .v4(127, 0, 0, UInt8(last)))
        }
        #expect(client.remembered == 64)
        let newest = try carried(client, server, to: .v4(127, 0, 0, 68))
        let oldest = try carried(client, server, to: loopback)
        #expect(newest.client.isResumed)
        #expect(!oldest.client.isResumed)
    }

    @Test func whatWaitsIsBounded() throws {
        let early = try client().session(to: loopback)
        early.send([UInt8](repeating: 1, count: TLSSession.earlyLimit))
        #expect(early.state == .handshaking)
        early.send([1])
        #expect(early.failure == .backlog)

        let link = try carried(client(), server())
        link.client.send([UInt8](repeating: 1, count: TLSSession.backlogLimit - 100_000))
        #expect(link.client.state == .open)
        link.client.send([UInt8](repeating: 1, count: 100_001))
        #expect(link.client.failure == .backlog)

        let deaf = try carried(client(), server())
        for _ in 0..<2 {
            deaf.client.send([UInt8](repeating: 1, count: TLSSession.backlogLimit / 2))
            deaf.carry()
        }
        #expect(deaf.server.state == .open)
        deaf.client.send([1])
        deaf.carry()
        #expect(deaf.server.failure == .backlog)
        #expect(deaf.server.plaintext().count <= TLSSession.backlogLimit + 1)
    }

    @Test func anErrorElsewhereIsNotTakenForOnesOwn() throws {
        let link = try TLSLink(client(), server())
        let broken = try client().session(to: loopback)
        let cipher = try PayloadCipher(.aes, key: [UInt8](repeating: 1, count: 16))
        link.carry(pieces: {
            broken.receive([UInt8](repeating: 0, count: 64))
            #expect(throws: CryptographyError.badPadding) { try cipher.decrypt([UInt8](repeating: 7, count: 32)) }
            return 100
        })
        #expect(link.client.state == .open)
        #expect(link.server.state == .open)
        #expect(broken.failure == .notTLS)
    }

    @Test func otherProtocolsAreNamed() throws {
        let plain = try client().session(to: loopback)
        plain.receive("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
        #expect(plain.failure == .notTLS)
        let served = try server().session()
        served.receive("GET /d?dn=a.example HTTP/1.1\r\n\r\n".utf8)
        #expect(served.failure == .notTLS)
        let alerted = try client().session(to: loopback)
        alerted.receive([0x15, 3, 3, 0, 2, 2, 40])
        #expect(alerted.failure == .alert(40))
        #expect(alerted.failure?.description == "the peer ended the session with alert 40 (handshake failure)")
    }

    @Test func anOlderServerIsRefused() throws {
        // A ServerHello of TLS 1.1 (RFC 4346 §7.4.1.3): random of 32, no session, TLS_RSA_WITH_AES_128_CBC_SHA.
        let hello: [UInt8] =
            [2, 0, 0, 38, 3, 2] + [UInt8](repeating: 0x5A, count: 32) + [0, 0x00, 0x2F, 0]
        let session = try client().session(to: loopback)
        _ = session.ciphertext()
        session.receive([0x16, 3, 2, 0, UInt8(hello.count)] + hello)
        #expect(session.failure == .noSharedVersion)
        // A fatal alert 70, protocol_version, goes out.
        #expect(Array(session.ciphertext().suffix(2)) == [2, 70])
    }

    @Test func anOlderClientIsRefused() throws {
        // A ClientHello of TLS 1.1: one cipher suite, no compression, no extensions.
        let hello: [UInt8] = [1, 0, 0, 41, 3, 2] + [UInt8](repeating: 0x5A, count: 32) + [0, 0, 2, 0, 0x2F, 1, 0]
        let session = try server().session()
        session.receive([0x16, 3, 1, 0, UInt8(hello.count)] + hello)
        #expect(session.failure == .noSharedVersion)
        #expect(Array(session.ciphertext().suffix(2)) == [2, 70])
    }

    /// Each flight of a good conversation, as one side receives it.
    private func flights(newest: Int32) throws -> (toServer: [[UInt8]], toClient: [[UInt8]]) {
        let link = try TLSLink(client(), server(newest: newest))
        link.client.send("question")
        link.server.send("answer")
        var (toServer, toClient): ([[UInt8]], [[UInt8]]) = ([], [])
        while true {
            let (up, down) = (link.client.ciphertext(), link.server.ciphertext())
            if up.isEmpty && down.isEmpty { return (toServer, toClient) }
            toServer.append(up)
            toClient.append(down)
            link.server.receive(up)
            link.client.receive(down)
        }
    }

    @Test(arguments: [tls12, tls13])
    func garbageAtEachStageNeverTraps(newest: Int32) throws {
        var generator = Chance.announced("TLSSessionTests.garbageAtEachStageNeverTraps")
        let (clientContext, serverContext) = (try client(), try server(newest: newest))
        for stage in 0..<4 {
            for _ in 0..<60 {
                let link = try TLSLink(clientContext, serverContext)
                link.client.send("question")
                for _ in 0..<stage {
                    let (up, down) = (link.client.ciphertext(), link.server.ciphertext())
                    link.server.receive(up)
                    link.client.receive(down)
                }
                for session in [link.client, link.server] {
                    // Half of them look like a record of a known type.
                    let length = Int.random(in: 1...600, using: &generator)
                    var garbage = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
                    if Bool.random(using: &generator) {
                        let type = UInt8.random(in: 20...24, using: &generator)
                        garbage.replaceSubrange(0..<min(5, length), with: [type, 3, 3, 0, UInt8(length % 200)])
                    }
                    session.receive(garbage)
                    session.send("still there?")
                    _ = session.ciphertext()
                    _ = session.plaintext()
                    session.close()
                    #expect(session.state != .handshaking && session.state != .open)
                }
            }
        }
    }

    @Test(arguments: [tls12, tls13])
    func aFlippedBitInTheServersFlightNeverOpensTheSession(newest: Int32) throws {
        let (clientContext, serverContext) = (try client(), try server(newest: newest))
        let length = try flights(newest: newest).toClient.max { $0.count < $1.count }!.count
        for position in stride(from: 0, to: length, by: 7) {
            let link = try TLSLink(clientContext, serverContext)
            link.server.receive(link.client.ciphertext())
            var flight = link.server.ciphertext()
            // Record headers are not part of what is signed; their version may say anything.
            var inHeader = false
            var start = 0
            while start < flight.count {
                inHeader = inHeader || (start..<start + 5).contains(position)
                start += 5 + Int(flight[start + 3]) << 8 + Int(flight[start + 4])
            }
            guard position < flight.count, !inHeader else { continue }
            flight[position] ^= 0x10
            link.client.receive(flight)
            link.carry()
            #expect(link.client.state != .open, "byte \(position)")
        }
    }

    @Test(arguments: [tls12, tls13])
    func everyTruncationOnlyWaits(newest: Int32) throws {
        let (clientContext, serverContext) = (try client(), try server(newest: newest))
        let link = try TLSLink(clientContext, serverContext)
        let hello = link.client.ciphertext()
        for length in 0..<hello.count {
            let session = try serverContext.session()
            session.receive(hello.prefix(length))
            #expect(session.state == .handshaking)
            #expect(session.ciphertext().isEmpty)
        }
    }
}
