import Base
import DNSWire
import Forwarding
import Foundation
import Log
import Testing

@testable import Configuration
@testable import Daemon

/// Whom the shipped examples, and those in the documents, ask for a name, whatever fails on the way: private names never leave
/// this network, and other names leave in the clear only where an example says so.
@Suite struct PrivateNamesTests {
    static let top = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The fallback of these has a plain server, as their comments say.
    static let inTheClear: Set = ["alibaba-v1.toml", "office.toml"]

    static let privateNames = """
        printer nas wpad localdomain router fritz xn--bcher-kva local printer.local _ipp._tcp.local a.b.local lan router.lan \
        www.router.lan home.arpa nas.home.arpa internal db.internal a.b.internal test www.test ipv4only.arpa \
        1.0.168.192.in-addr.arpa 168.192.in-addr.arpa 9.1.0.10.in-addr.arpa 10.in-addr.arpa 1.16.16.172.in-addr.arpa \
        1.31.31.172.in-addr.arpa 1.1.254.169.in-addr.arpa 1.1.64.100.in-addr.arpa 1.1.127.100.in-addr.arpa \
        1.0.0.127.in-addr.arpa d.f.ip6.arpa 1.2.d.f.ip6.arpa 0.c.f.ip6.arpa 8.e.f.ip6.arpa 1.b.e.f.ip6.arpa \
        lb._dns-sd._udp.0.1.168.192.in-addr.arpa PRINTER Nas.LAN x.corp.internal service.cluster.local
        """.split(separator: " ").map { Name(String($0))! }
    static let otherNames = """
        example.com www.example.com a.b.example.org example www.example.lan.example local.example notlocal.net corp.example.net \
        1.1.1.1.in-addr.arpa 1.32.16.172.in-addr.arpa 8.b.d.0.1.0.0.2.ip6.arpa 1.0.128.100.in-addr.arpa in-addr.arpa arpa.example \
        xn--bcher-kva.example _sip._tcp.example.com a\\044b.example.com
        """.split(separator: " ").map { Name(String($0))! }.filter { $0.labelCount > 1 && !DomainRules.isPrivate($0) }
    static let types: [RecordType] = [.a, .aaaa, .mx, .txt, .ptr, .srv, .https, .svcb, .ns, .soa, .ds, .dnskey, .cname]

    struct Example: Sendable, CustomTestStringConvertible {
        let name, text: String
        var testDescription: String { name }
    }

    static let examples: [Example] = {
        let folder = top.appending(path: "config/examples")
        let files = try! FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".toml") }
        let shipped = files.map {
            Example(name: $0, text: try! String(contentsOf: folder.appending(path: $0), encoding: .utf8))
        }
        let pages = try! FileManager.default.contentsOfDirectory(atPath: top.appending(path: "docs").path)
        return shipped
            + pages.filter { $0.hasSuffix(".md") }.flatMap { page in
                let text = try! String(contentsOf: top.appending(path: "docs/\(page)"), encoding: .utf8)
                return text.components(separatedBy: "```toml\n").dropFirst().map {
                    Example(name: page, text: $0.components(separatedBy: "\n```")[0])
                }
            }
    }()

    private static let secrets = [
        "token": "101", "key": "0123456789abcdef", "dnsKey": "0123456789abcdef0123456789abcdef",
    ]

    private static func read(_ path: String) -> [UInt8] {
        Array((secrets[String(path.split(separator: "/").last ?? "")] ?? "octets").utf8)
    }

    private func load(_ example: Example) throws -> Settings {
        try Settings.load(example.text) { FileReading(Self.read($0)) }
    }

    /// Of the documents, only whole files: a part of one cannot be loaded.
    private func isPart(_ example: Example) -> Bool { example.name.hasSuffix(".md") && (try? load(example)) == nil }

    /// Says which servers may be asked, where resolvConf names 192.168.1.1.
    private struct Asking {
        let groups: [UpstreamGroup]
        let policy: Policy

        init(_ settings: Settings) throws {
            let numbers = GroupNumbers(settings)
            let router = Server(Endpoint(.v4(192, 168, 1, 1), port: 53))
            let described = UpstreamGroups(settings, numbers, resolvers: [router])
            groups = described.groups
            policy = Policy(
                settings, numbers, described, try NameLists(settings.withoutLists, numbers), hosts: HostsTable())
        }

        func asked(_ name: Name, _ type: RecordType) -> [Server] {
            let steps: [Step]
            switch policy.route(name, type) {
            case .ask(let asked): steps = asked
            case .serviceBinding(let asked, _): steps = asked
            case .answer, .alias: steps = []
            }
            let asked = Set(steps.map(\.group))
            return groups.filter { asked.contains($0.id) }.flatMap(\.servers)
        }
    }

    @Test(arguments: examples)
    func privateNamesStayHere(_ example: Example) throws {
        if isPart(example) { return }
        let settings = try load(example)
        let asking = try Asking(settings)
        for name in Self.privateNames {
            // Where no server is asked for private names, validators ask about a top level where they ask for other names.
            let asksElsewhere = settings.privateNames.servers.isEmpty && name.labelCount == 1
            for type in Self.types where !(asksElsewhere && [.ns, .soa, .ds, .dnskey].contains(type)) {
                let outside = asking.asked(name, type).filter { server in
                    server.kind == .account || !server.endpoints.allSatisfy(\.address.isPrivate)
                        || server.endpoints.isEmpty
                }
                #expect(outside.isEmpty, "\(name) \(type)")
            }
        }
    }

    @Test(arguments: examples.filter { $0.name.hasSuffix(".toml") && !inTheClear.contains($0.name) })
    func otherNamesLeaveEncryptedAlone(_ example: Example) throws {
        let asking = try Asking(try load(example))
        for name in Self.otherNames {
            for type in Self.types {
                let servers = asking.asked(name, type)
                #expect(servers.allSatisfy { $0.kind == .account || $0.isEncrypted }, "\(name) \(type)")
            }
        }
    }

    /// The network's resolvers are asked whatever their addresses are.
    @Test(arguments: [
        ("192.168.1.1", ""), ("183.60.83.19", ""), ("168.63.129.16", ""), ("10.0.0.2", "servers = []"),
        ("8.8.8.8", "servers = []"), ("8.8.8.8", "servers = [\"192.168.1.1\"]"),
    ]) func aPublicResolverOfTheNetworkIsRemarkedOn(_ address: String, _ key: String) throws {
        let path = NSTemporaryDirectory() + "resolv.conf-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try "nameserver \(address)\n".write(toFile: path, atomically: true, encoding: .utf8)
        let settings = try Settings.load("[fallback]\nresolvConf = [\"\(path)\"]\n[private]\n\(key)\n")
        let asking = try Asking(settings)
        #expect(asking.asked(Name("nas.lan")!, .a).isEmpty == (key == "servers = []"))
        let isPublic = key.isEmpty && !IPAddress(address)!.isPrivate
        let words = Report.publicResolvers(settings, LocalReading(settings, .resolvers))
        #expect(words.count == (isPublic ? 1 : 0))
        #expect(words.allSatisfy { $0.contains(address) })
    }

    @Test func aNameThatLeadsToThisMachineIsRemarkedOn() throws {
        var settings = try Settings.load("")
        let hosts = HostsTable(
            parsing: Array(
                "127.0.1.1 dns.example\n::1 six.example\n127.0.0.1 both.example\n192.0.2.1 both.example".utf8
            ).span)
        #expect(Report.loopbackName(settings, hosts).isEmpty)
        for (name, address) in [
            ("dns.example", "127.0.1.1"), ("six.example", "::1"), ("both.example", nil), ("other.example", nil),
        ] {
            settings.listen.name = Name(name)
            let words = Report.loopbackName(settings, hosts)
            #expect(
                words.first?.hasPrefix("listen.name: \(name) leads to \(address ?? "") by /etc/hosts")
                    == (address == nil ? nil : true))
        }
    }

    @Test func mostExamplesOfTheDocumentsAreWholeFiles() throws {
        let whole = Self.examples.count { !isPart($0) }
        #expect(whole > Self.examples.count / 2 && whole > 15)
    }
}

extension Settings {
    /// Without the files of names, which there are not here.
    fileprivate var withoutLists: Settings {
        var settings = self
        for index in settings.upstreams.indices { settings.upstreams[index].domainsFile = [] }
        (settings.domains.interceptFile, settings.domains.bypassFile) = ([], [])
        return settings
    }
}
