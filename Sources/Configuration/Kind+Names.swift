import Base
import DNSWire

extension Kind where Value == Name {
    /// A domain, which covers its own name and all names under it.
    static var domain: Kind {
        .text(
            "a name of letters, digits, \"-\" and \"_\" such as \"example.com\", which stands for those under it too",
            parse: { text in Name(text).flatMap { $0.isHostname ? $0 : nil } }, show: \.description,
            meant: nameBehindMark)
    }

    /// The name in `.example.com` and `*.example.com`, by which other programs mean the names under it.
    @Sendable static func nameBehindMark(_ text: String) -> String? {
        let mark = ["*.", "."].first { text.hasPrefix($0) }
        let name = mark.flatMap { Name(String(text.dropFirst($0.count))) }
        return name.flatMap { $0.isHostname && $0 != .root ? $0.description : nil }
    }

    /// A name to be looked up itself.
    static var hostname: Kind {
        .text(
            "a name of letters, digits, \"-\" and \"_\" such as \"www.example.com\"",
            parse: { text in Name(text).flatMap { $0.isHostname ? $0 : nil } }, show: \.description)
    }
}

extension Kind where Value == Name? {
    /// The name of a host.
    static var optionalName: Kind {
        .optional(hostName + ", or \"\" for none", parse: host, show: \.description)
    }

    /// The name of which others are aliases; never nil when given.
    static var aliasTarget: Kind {
        .text(hostName, parse: { host($0).map(Optional.some) }, show: { $0?.description ?? "" })
    }

    private static var hostName: String { "a host name such as \"dns.example.com\"" }

    @Sendable private static func host(_ text: String) -> Name? {
        Name(text).flatMap { $0.isHostname && IPAddress(text) == nil ? $0 : nil }
    }
}

extension Kind where Value == Settings.Cache.Ranked {
    /// A name, which covers the names under it too, and the port to which connections to their addresses are made.
    static var ranked: Kind {
        .text(
            "NAME:PORT, such as \"www.example.com:443\", which stands for the names under it too",
            parse: { text in
                guard let colon = text.lastIndex(of: ":"), let name = Name(String(text[..<colon])), name.isHostname,
                    IPAddress(text[..<colon]) == nil,
                    let port = Endpoint("0.0.0.0" + text[colon...])?.port, port > 0
                else { return nil }
                return Settings.Cache.Ranked(name, port: port)
            },
            show: { "\($0.name):\($0.port)" })
    }
}

extension Kind where Value == RecordType {
    /// A record type that names can have.
    static var recordType: Kind {
        .text(
            "the type of a record, such as \"AAAA\", \"HTTPS\" or \"TYPE65\"",
            parse: { text in RecordType(parsing: text).flatMap { $0.refusal == nil && $0 != .any ? $0 : nil } },
            show: \.description)
    }
}
