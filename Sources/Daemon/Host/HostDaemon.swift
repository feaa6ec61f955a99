import Base
import Configuration
import DNSWire
import Forwarding

/// The daemon at port 53 of a loopback address, where programs of this machine can ask it.
struct HostDaemon {
    /// The program that answers at an address.
    enum Answerer: Sendable, Equatable {
        case daemon
        case otherProgram
        /// REFUSED, the daemon's answer if `listen.allow` does not have this machine.
        case refuses
        /// No program answers.
        /// - Parameter String: The server with its failure.
        case nothing(String)
    }

    /// The address for programs; nil if there is none.
    let address: IPAddress?
    /// The program that answers at ``address``.
    let answerer: Answerer?
    /// All addresses of the daemon: those at which it answers, then those in its settings.
    let addresses: [IPAddress]

    static let port: UInt16 = 53
    private static let groupName = "daemon"
    /// Only a daemon answers questions about this name with a synthetic SOA.
    private static let ownName = Name("httpdnsd.invalid")!

    /// Finds the daemon. Sockets from the service manager replace the addresses of the settings, so the daemon is also
    /// looked for at the standard addresses.
    /// - Parameter ask: Finds the program that answers at each of some addresses.
    init(_ settings: Settings, asking ask: ([IPAddress]) -> [IPAddress: Answerer] = HostDaemon.answerers) {
        let listed = Self.listed(settings)
        let candidates = (listed + Self.loopback(Settings.Listen.standardAddresses)).eachOnce
        let answerers = ask(candidates)
        addresses = (candidates.filter { answerers[$0] == .daemon } + listed).eachOnce
        address = addresses.first
        answerer = address.flatMap { answerers[$0] }
    }

    /// Why the daemon does not answer at ``address``; nil if it does.
    var failure: String? {
        switch answerer {
        case .daemon?, nil: nil
        case .otherProgram?:
            "another program answers at \(Endpoint(addresses[0], port: Self.port)); ss -lntup says which"
        case .refuses?:
            "\(Endpoint(addresses[0], port: Self.port)) refuses the programs of this machine: add "
                + "\(addresses[0].isIPv4 ? "127.0.0.0/8" : "::1") to listen.allow, or find another program there with ss -lntup"
        case .nothing(let reason)?:
            "the daemon must answer first: \(reason); systemctl enable --now httpdnsd starts it"
        }
    }

    /// The loopback addresses of the settings.
    static func listed(_ settings: Settings) -> [IPAddress] { loopback(settings.listen.addresses) }

    private static func loopback(_ endpoints: [Endpoint]) -> [IPAddress] {
        endpoints.filter { $0.port == port }.compactMap { endpoint in
            endpoint.address.isUnspecified
                ? endpoint.address.isIPv4 ? IPAddress.v4(127, 0, 0, 1) : IPAddress(v6: 0, 1)
                : endpoint.address.isLoopback ? endpoint.address : nil
        }
    }

    /// The program that answers at each of these addresses.
    static func answerers(at addresses: [IPAddress]) -> [IPAddress: Answerer] {
        do throws(StartFailure) {
            let straight = try StraightAsking(settings(asking: addresses))
            defer { straight.close() }
            guard let group = straight.groups.first(where: { $0.name == groupName }) else { return [:] }
            let question = Ask.message(MessageQuestion(name: ownName, type: .soa))
            var found: [IPAddress: Answerer] = [:]
            for address in addresses {
                let one = server(address)
                found[address] = program(straight.ask(group, one, question).outcome, "\(group.title) \(one)")
            }
            return found
        } catch {
            let reason = "\(error)"
            return Dictionary(uniqueKeysWithValues: addresses.map { ($0, Answerer.nothing(reason)) })
        }
    }

    private static func program(_ outcome: Outcome, _ server: String) -> Answerer {
        switch outcome {
        case .answer(let answer):
            if answer.head.responseCode == .refused { return .refuses }
            return answer.hasSyntheticAuthority ? .daemon : .otherProgram
        case .failed(let failure): return .nothing("\(server): \(failure.detail)")
        case .addresses: return .otherProgram
        }
    }

    /// A query to the daemon at an address.
    static func query(_ address: IPAddress) throws(StartFailure) -> DirectQuery {
        try DirectQuery(settings(asking: [address]), group: groupName, ipv4: true, ipv6: true)
    }

    /// Settings with a group whose servers are at these addresses.
    private static func settings(asking addresses: [IPAddress]) -> Settings {
        var asking = Settings()
        asking.listen.addresses = []
        var group = Settings.Group(name: groupName)
        group.kind = .servers(addresses.map { .server(server($0)) })
        asking.upstreams = [group]
        return asking
    }

    private static func server(_ address: IPAddress) -> Server { Server(Endpoint(address, port: port)) }
}
