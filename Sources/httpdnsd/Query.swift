import ArgumentParser
import Base
import DNSWire
import Daemon

struct Query: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "query",
        abstract: "Ask the HTTPDNS service, or another group, directly for addresses, past cache and daemon.")

    enum Family: String, ExpressibleByArgument, CaseIterable {
        case a, aaaa, both
    }

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text, json, pair
    }

    @Argument(help: "The names to look up.", transform: Name.init(explained:))
    var names: [Name]

    @OptionGroup var options: ConfigurationOptions

    @Option(help: ArgumentHelp("The group to ask.", valueName: "name"))
    var group = "httpdns"

    @Option(help: "Which addresses to ask for: \(Family.allCases.map(\.rawValue).joined(separator: ", ")).")
    var type = Family.both

    @Option(help: "How to print them. pair: NAME IPV4 IPV6, with 0 for a missing family.")
    var format = Format.text

    @Flag(help: "Only the first address of each family.")
    var first = false

    func run() throws {
        try ending {
            let loaded = try options.load()
            try loaded.checkGroup(group)
            let query = try loaded.naming { () throws(StartFailure) in
                try DirectQuery(loaded.settings, group: group, ipv4: type != .aaaa, ipv6: type != .a)
            }
            if query.isOfAccount { try Ending.checkAccountNames(names) }
            let (results, failure) = Progress.during("beginning") { progress in
                query.ask(names) { progress.say("asking \($0)") }
            }
            if failure == nil || !results.isEmpty { show(first ? results.map(\.firstOfEach) : results) }
            if let failure { throw Ending.unreachable(failure) }
        }
    }

    private func show(_ results: [NameAddresses]) {
        switch format {
        case .text: for result in results { for line in result.textLines { StandardOutput.write(line) } }
        case .pair: for result in results { StandardOutput.write(result.pair) }
        case .json: StandardOutput.write(JSON.array(results.map(\.json)).text)
        }
    }
}

extension NameAddresses {
    fileprivate var firstOfEach: Self { NameAddresses(name: name, ipv4: ipv4.first, ipv6: ipv6.first) }

    /// One line for each address family, with name, type, addresses and TTL.
    fileprivate var textLines: [String] {
        [("A", ipv4), ("AAAA", ipv6)].compactMap { type, family in
            switch family {
            case .notAsked: nil
            case .noRecord: "\(name) \(type) no record"
            case .addresses(let addresses, let ttl):
                "\(name) \(type) \(addresses.map(\.description).joined(separator: " ")) ttl \(ttl)"
            }
        }
    }

    /// The addresses in the form of the SDKs, in which `0` means a family without an address.
    fileprivate var pair: String {
        func text(_ family: FamilyAddresses) -> String {
            guard case .addresses(let addresses, _) = family else { return "0" }
            return addresses.map(\.description).joined(separator: ";")
        }
        return "\(name) \(text(ipv4)) \(text(ipv6))"
    }

    fileprivate var json: JSON {
        let families = [("ipv4", ipv4), ("ipv6", ipv6)].compactMap { key, family in family.json.map { (key, $0) } }
        return .object([("name", .string("\(name)"))] + families)
    }
}

extension FamilyAddresses {
    /// The result of the address family; nil if the request did not ask for this family.
    fileprivate var json: JSON? {
        switch self {
        case .notAsked: nil
        case .noRecord: .object([("addresses", .array([]))])
        case .addresses(let addresses, let ttl):
            .object([("addresses", .array(addresses.map { .string("\($0)") })), ("ttl", .integer(UInt64(ttl)))])
        }
    }

    /// The same with the first address alone.
    fileprivate var first: Self {
        guard case .addresses(let addresses, let ttl) = self else { return self }
        return .addresses(Array(addresses.prefix(1)), ttl: ttl)
    }
}
