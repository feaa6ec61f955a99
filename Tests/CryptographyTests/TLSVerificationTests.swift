import Base
import Cryptography
import Foundation
import Testing

/// What a client accepts as the certificate of the server it wants, and how it says no.
struct TLSVerificationTests {
    let certificates = TestCertificates.shared

    /// Why the client refuses, nil if it does not; also checks that the server learns of it.
    private func refusal(_ client: TLSClientContext, _ server: TLSServerContext, to address: IPAddress = loopback)
        throws -> TLSError?
    {
        let link = try carried(client, server, to: address)
        if link.client.failure == nil {
            #expect(link.client.state == .open)
            #expect(link.server.state == .open)
        } else if case .alert = link.server.failure {
        } else {
            Issue.record("the server was not told: \(link.server.state)")
        }
        return link.client.failure
    }

    @Test(
        arguments: [tls12, tls13],
        ["dns.example", "DNS.Example", "dns.example.", "any.wild.example", "127.0.0.1", "2001:db8::1"])
    func rightNames(newest: Int32, name: String) throws {
        #expect(try refusal(client(name), server(newest: newest)) == nil)
    }

    @Test(
        arguments: [tls12, tls13],
        ["other.example", "sub.dns.example", "wild.example", "a.b.wild.example", "127.0.0.2", "the", "dns.exampl"])
    func wrongNames(newest: Int32, name: String) throws {
        let error = try refusal(client(name), server(newest: newest))
        #expect(
            error
                == .certificateName(wanted: name, has: ["dns.example", "*.wild.example", "127.0.0.1", "2001:db8::1"]))
        #expect(
            error?.description
                == "certificate is for another name (wanted \(name), it has dns.example, *.wild.example, 127.0.0.1, "
                + "2001:db8::1)")
    }

    @Test func theDialledAddressIsWantedWithoutAName() throws {
        for name in [nil, ""] {
            let client = try client(name)
            #expect(try refusal(client, server(), to: loopback) == nil)
            #expect(try refusal(client, server(), to: IPAddress("2001:db8::1")!) == nil)
            #expect(
                try refusal(client, server(), to: .v4(192, 0, 2, 1))
                    == .certificateName(
                        wanted: "192.0.2.1", has: ["dns.example", "*.wild.example", "127.0.0.1", "2001:db8::1"]))
        }
    }

    @Test func theNameIsSentAndAnAddressIsNot() throws {
        func hello(_ name: String?) throws -> [UInt8] { try client(name).session(to: loopback).ciphertext() }
        // The server_name extension (RFC 6066 §3): type 0, then lengths, type host_name, length, the name.
        let sent = bytes("00000010000e00000b") + Array("dns.example".utf8)
        #expect(try contains(hello("dns.example"), sent))
        #expect(try contains(hello("dns.example."), sent))
        for name in [nil, "127.0.0.1", "2001:db8::1"] {
            #expect(try !contains(hello(name), Array("127.0.0.1".utf8)))
            #expect(try hello(name).count < hello("a.b").count)
        }
        // ALPN (RFC 7301): type 16, lengths, one name.
        #expect(try contains(hello(nil), bytes("0010000b000908") + Array("http/1.1".utf8)))
    }

    @Test func theServerChoosesHTTP() throws {
        let link = try TLSLink(client(), server(newest: tls12))
        link.server.receive(link.client.ciphertext())
        // In TLS 1.2 the choice can be read in the ServerHello.
        #expect(contains(link.server.ciphertext(), bytes("0010000b000908") + Array("http/1.1".utf8)))
    }

    @Test(arguments: [tls12, tls13], [["h2", "http/1.1"], ["http/1.1", "h2"], ["x", "http/1.1", "h", "h22", "h2"]])
    func theServersOrderOfProtocolsCounts(newest: Int32, offered: [String]) throws {
        let server = try TLSServerContext(
            certificatePEM: certificates["selfsigned.pem"], keyPEM: certificates["selfsigned.key"],
            newestVersion: newest, protocols: ["h2", "http/1.1"], refusesOthers: true)
        let link = try carried(
            client(anchors: certificates["selfsigned.pem"]), server, TLSTarget(protocols: offered))
        #expect(link.client.applicationProtocol == "h2" && link.server.applicationProtocol == "h2")
    }

    /// The server knows http/1.1 alone, and goes on without a protocol for whoever offers another.
    @Test(arguments: [tls12, tls13]) func aProtocolThatIsRequired(newest: Int32) throws {
        for (name, isRequired) in [("h2", true), ("h2", false), ("http/1.1", true)] {
            let target = TLSTarget(protocols: [name], requiresProtocol: isRequired)
            let link = try TLSLink(client(), server(newest: newest), target)
            link.client.send("secret")
            link.carry()
            let isRefused = name == "h2" && isRequired
            #expect(link.client.failure == (isRefused ? .noApplicationProtocol : nil))
            #expect(link.server.text() == (isRefused ? "" : "secret"))
        }
    }

    @Test func namesThatNoCertificateCanHave() {
        for name in [".example", "a..example", "*.example", "a b", "a\u{0}.example", "-é", ".", "a:1"] {
            #expect(throws: TLSError.serverName(name)) { try client(name) }
        }
        #expect("\(TLSError.serverName("a\nb"))" == "a?b cannot be the name in a certificate")
    }

    @Test(arguments: [tls12, tls13])
    func badCertificates(newest: Int32) throws {
        func error(_ name: String, anchors: String = "root.pem", alone: Bool = false) throws -> TLSError? {
            try refusal(client(anchors: certificates[anchors]), server(name, alone: alone, newest: newest))
        }
        #expect(try error("expired") == .certificateExpired(at: "2021-02-03 04:05:06 UTC", depth: 0))
        #expect(try error("notyet") == .certificateNotYetValid(at: "2080-02-03 04:05:06 UTC", depth: 0))
        #expect(try error("stranger") == .unknownAuthority(issuer: "CN=the otherroot", depth: 0))
        #expect(try error("good", anchors: "otherroot.pem") == .unknownAuthority(issuer: "CN=the root", depth: 1))
        #expect(try error("good", alone: true) == .unknownAuthority(issuer: "CN=the intermediate", depth: 0))
        #expect(try error("selfsigned", alone: true) == .selfSigned)
        #expect(try error("clientonly") == .certificatePurpose)
        #expect(try error("nonames") == .certificateName(wanted: "dns.example", has: []))
        // No certificate can forge a line of the log.
        #expect(try error("hostile") == .certificateName(wanted: "dns.example", has: ["bad?name"]))
        #expect(
            try refusal(client("foo.part.example"), server("partial", newest: newest))
                == .certificateName(wanted: "foo.part.example", has: ["f*.part.example"]))
        #expect(try error("underweak", anchors: "weakroot.pem") == .certificateTooWeak)
        #expect(
            try error("many")
                == .certificateName(wanted: "dns.example", has: (1...8).map { "n\($0).example" } + ["…"]))
    }

    /// A machine without a clock of its own asks for the time by name: it must be able to, and nothing else is let pass.
    @Test func aClockThatWasNotSetJudgesByAllButTheDates() throws {
        func error(_ name: String, refusing: Bool = false, at now: UInt64) throws -> TLSError? {
            let client = try TLSClientContext(
                TLSPolicy(
                    serverName: "dns.example", anchors: certificates["root.pem"], refusesUnsetClock: refusing))
            return try carried(client, server(name), at: now).client.failure
        }
        let expired = TLSError.certificateExpired(at: "2021-02-03 04:05:06 UTC", depth: 0)
        #expect(try error("expired", at: 0) == nil)
        #expect(try error("expired", refusing: true, at: 0) == expired)
        #expect(try error("expired", at: anyTime) == expired)
        #expect(try error("nonames", at: 0) == .certificateName(wanted: "dns.example", has: []))
        #expect(try error("clientonly", at: 0) == .certificatePurpose)
    }

    @Test func anExpiredIntermediateIsSaidToBeTheAuthoritys() throws {
        let server = try TLSServerContext(
            certificatePEM: certificates["underold.pem"] + certificates["oldintermediate.pem"],
            keyPEM: certificates["underold.key"])
        let error = try refusal(client(), server)
        #expect(error == .certificateExpired(at: "2021-02-03 04:05:06 UTC", depth: 1))
        #expect(
            error?.description
                == "a certificate of the authority expired at 2021-02-03 04:05:06 UTC (is the clock right?)")
    }

    @Test func whatIsNamedIsTrusted() throws {
        for anchor in ["root.pem", "intermediate.pem", "good.pem"] {
            #expect(try refusal(client(anchors: certificates[anchor]), server()) == nil, "\(anchor)")
        }
        #expect(try refusal(client(anchors: certificates["intermediate.pem"]), server(alone: true)) == nil)
        #expect(
            try refusal(client(anchors: certificates["selfsigned.pem"]), server("selfsigned", alone: true)) == nil)
        #expect(
            try refusal(client("a.b", anchors: certificates["selfsigned.pem"]), server("selfsigned", alone: true))
                != nil)
    }

    @Test func formsOfAnchors() throws {
        let two = certificates["otherroot.pem"] + Array("a comment\n".utf8) + certificates["root.pem"]
        #expect(try refusal(client(anchors: two), server()) == nil)
        #expect(try refusal(client(anchors: two), server("stranger")) == nil)
        let der = try openssl(["x509", "-outform", "der"], input: certificates["root.pem"])
        #expect(try refusal(client(anchors: der), server()) == nil)
        let damaged = certificates["otherroot.pem"] + certificates["root.pem"].dropLast(60)
        for unreadable in [
            [], Array("nothing".utf8), certificates["good.key"], damaged, Array(der.dropLast()), der + [0],
        ] {
            #expect(throws: TLSError.anchorsUnreadable) { try client(anchors: unreadable) }
        }
    }

    @Test func withoutAnchorsTheSystemDecides() throws {
        let client = try TLSClientContext(TLSPolicy(serverName: "dns.example"))
        #expect(try refusal(client, server()) == .unknownAuthority(issuer: "CN=the root", depth: 1))
    }

    /// In a process of its own, because what the system trusts is read from the environment.
    @Test func theSystemsAnchorsCanBeAdded() async {
        await #expect(processExitsWith: .success) {
            let certificates = TestCertificates.shared
            let folder = try TemporaryFolder()
            try folder.write(certificates["root.pem"], to: "root.pem")
            setenv("SSL_CERT_FILE", folder.path("root.pem"), 1)
            setenv("SSL_CERT_DIR", folder.path("none"), 1)
            let other = certificates["otherroot.pem"]
            for (policy, names) in [
                (TLSPolicy(serverName: "dns.example"), ["good"]),
                (TLSPolicy(serverName: "dns.example", anchors: other, anchorsOnly: false), ["good", "stranger"]),
                (TLSPolicy(serverName: "dns.example", anchors: other, anchorsOnly: true), ["stranger"]),
            ] {
                for name in ["good", "stranger"] {
                    let link = try carried(TLSClientContext(policy), server(name))
                    #expect((link.client.state == .open) == names.contains(name), "\(policy.anchorsOnly) \(name)")
                }
            }
        }
    }

    /// A file of authorities that could not be read is read at a later handshake. It is the shortage's fault, and no
    /// certificate's, if there is no descriptor for it.
    @Test func theSystemsAnchorsAreReadOnceTheyCanBe() async {
        await #expect(processExitsWith: .success) {
            let certificates = TestCertificates.shared
            let folder = try TemporaryFolder()
            setenv("SSL_CERT_FILE", folder.path("root.pem"), 1)
            setenv("SSL_CERT_DIR", folder.path("none"), 1)
            let context = try TLSClientContext(TLSPolicy(serverName: "dns.example"))
            let server = try server("good")
            func refusal() throws -> TLSError? { try carried(context, server).client.failure }
            let unknown = TLSError.unknownAuthority(issuer: "CN=the root", depth: 1)
            #expect(try refusal() == unknown)
            try folder.write([], to: "root.pem")
            #expect(try refusal() == unknown)
            try folder.write(certificates["root.pem"], to: "root.pem")
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            var none = rlimit(rlim_cur: 3, rlim_max: limit.rlim_max)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none)
            #expect(try refusal() == .storeUnread)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            #expect(try refusal() == nil)
        }
    }

    @Test(arguments: [tls12, tls13])
    func withoutTheName(newest: Int32) throws {
        func client(_ anchors: String, name: String? = nil) throws -> TLSClientContext {
            try TLSClientContext(
                TLSPolicy(serverName: name, anchors: certificates["\(anchors).pem"], validatesName: false))
        }
        let elsewhere = IPAddress.v4(192, 0, 2, 1)
        for name in [nil, "other.example", "192.0.2.99"] {
            for own in ["selfsigned", "plainselfsigned"] {
                let served = try server(own, alone: true, newest: newest)
                #expect(try refusal(client(own, name: name), served, to: elsewhere) == nil)
            }
            #expect(try refusal(client("root", name: name), server(newest: newest), to: elsewhere) == nil)
        }
        // Everything but the name is checked as ever.
        for (anchors, name, expected) in [
            ("selfsigned", "otherselfsigned", TLSError.selfSigned),
            ("selfsigned", "plainselfsigned", .selfSigned),
            ("root", "expired", .certificateExpired(at: "2021-02-03 04:05:06 UTC", depth: 0)),
            ("root", "notyet", .certificateNotYetValid(at: "2080-02-03 04:05:06 UTC", depth: 0)),
            ("root", "stranger", .unknownAuthority(issuer: "CN=the otherroot", depth: 0)),
            ("root", "clientonly", .certificatePurpose),
        ] {
            let served = try server(name, alone: name.hasSuffix("selfsigned"), newest: newest)
            #expect(try refusal(client(anchors), served, to: elsewhere) == expected)
        }
    }

    @Test func aNameThatIsNotCheckedIsSentAllTheSame() throws {
        func hello(_ name: String?) throws -> [UInt8] {
            let policy = TLSPolicy(serverName: name, anchors: certificates["root.pem"], validatesName: false)
            return try TLSClientContext(policy).session(to: loopback).ciphertext()
        }
        let sent = bytes("00000010000e00000b") + Array("dns.example".utf8)
        #expect(try contains(hello("dns.example"), sent))
        #expect(try !contains(hello(nil), Array("127.0.0.1".utf8)))
        #expect(throws: TLSError.serverName("a b")) { try hello("a b") }
    }

    @Test func onlyOnesOwnAnchorsGoWithoutTheName() {
        for policy in [
            TLSPolicy(validatesName: false), TLSPolicy(anchorsOnly: false, validatesName: false),
            TLSPolicy(anchors: certificates["root.pem"], anchorsOnly: false, validatesName: false),
        ] {
            #expect(throws: TLSError.namelessWithoutAnchors) { try TLSClientContext(policy) }
        }
    }

    @Test func serversCertificatesAreChecked() {
        func make(_ certificate: String, _ key: String) throws -> TLSServerContext {
            try TLSServerContext(certificatePEM: certificates[certificate], keyPEM: certificates[key])
        }
        #expect(throws: TLSError.certificateUnreadable) { try make("good.key", "good.key") }
        #expect(throws: TLSError.keyUnreadable) { try make("good.pem", "good.pem") }
        #expect(throws: TLSError.keyMismatch) { try make("good.pem", "expired.key") }
        #expect(throws: TLSError.keyUnreadable) {
            let encrypted = try openssl(
                ["pkey", "-aes128", "-passout", "pass:secret"], input: certificates["good.key"])
            _ = try TLSServerContext(certificatePEM: certificates["good.pem"], keyPEM: encrypted)
        }
    }

    private func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        Data(bytes).range(of: Data(part)) != nil
    }
}
