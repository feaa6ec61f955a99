import Base
import Configuration
import DNSCache
import Forwarding
import Log
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Transport
@testable import Upstreams

/// Expects that work comes to its end.
/// - Parameter begin: Begins the work; what it gets is to be called at the end.
func expectEnd(
    sourceLocation: SourceLocation = #_sourceLocation, _ begin: (@escaping @Sendable () -> Void) -> Void
) {
    let gate = Gate()
    begin { gate.open() }
    #expect(gate.wait(), sourceLocation: sourceLocation)
}

extension ForwarderLoop {
    /// A loop without listeners, which has no settings yet.
    convenience init(cache: DNSCache = DNSCache(bytes: 1 << 20, seed: (1, 2)), report: Report) throws {
        let loop = try EventLoop(label: "test")
        self.init(
            loop: loop, cache: cache, local: LocalServers(listening: [], loop: loop, report: report),
            lookup: ServerLookup(loop: loop), report: report)
    }

    /// Applies the first settings, before the loop starts.
    func begin(_ settings: Settings) throws {
        var numbers = GroupNumbers()
        begin(try prepare(settings, after: nil, &numbers, Provenance()))
    }
}

extension Settings {
    /// The settings in a text, without an environment.
    /// - Parameter readFile: Reads the files that the text names; there are none by default.
    static func load(
        _ contents: String, readFile: @escaping (String) -> FileReading = { _ in FileReading(nil) }
    ) throws -> Settings {
        try load(file: "/etc/test.toml", contents: contents, environment: [:], readFile: readFile).settings
    }

    /// Settings that name no file of this machine.
    static var withoutFiles: Settings {
        var settings = Settings()
        (settings.fallback.hosts, settings.fallback.resolvConf) = ([], [])
        return settings
    }
}

extension UpstreamGroups {
    /// The groups as settings give them, before any list of a service.
    /// - Parameter resolvers: What `resolvConf` stands for.
    init(_ settings: Settings, _ numbers: GroupNumbers, resolvers: [Server]) {
        let services = settings.accounts.map { (numbers[$0.name], $0.services) }
        self.init(settings, numbers, services: Dictionary(uniqueKeysWithValues: services)) { group in
            group.entries.flatMap { if case .server(let server) = $0 { [server] } else { resolvers } }
        }
    }
}
