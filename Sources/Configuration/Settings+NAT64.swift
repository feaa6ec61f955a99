public import Base

extension Settings {
    /// `[nat64]`: access to IPv4 through a translator of a network without IPv4 (RFC 6146).
    public struct NAT64: Sendable, Equatable {
        public var prefix = Prefix.auto
        public var synthesize = Synthesis.auto

        /// The prefix under which the translator accepts packets for IPv4 addresses.
        public enum Prefix: Sendable, Hashable {
            /// No translation.
            case none
            /// The prefix announced by the resolvers of `resolvConf` (RFC 7050).
            case auto
            case given(NAT64Prefix)
        }

        /// The conditions for synthesizing AAAA records from A records (DNS64, RFC 6147).
        public enum Synthesis: String, Sendable, CaseIterable {
            /// With a prefix, and without a route to the IPv4 Internet.
            case auto
            /// With a prefix.
            case always
            case never
        }
    }
}

extension Kind where Value == Settings.NAT64.Prefix {
    /// `"auto"`, a prefix that RFC 6052 allows, or an empty text.
    static var translatorPrefix: Kind {
        .text(
            "\"auto\", a prefix such as \"64:ff9b::/96\" with a length of 32, 40, 48, 56, 64 or 96, or \"\"",
            parse: { text in
                switch text {
                case "": Value.none
                case "auto": .auto
                default: Network(text).flatMap { NAT64Prefix($0) }.map { .given($0) }
                }
            },
            show: { prefix in
                switch prefix {
                case .none: ""
                case .auto: "auto"
                case .given(let prefix): "\(prefix)"
                }
            })
    }
}
