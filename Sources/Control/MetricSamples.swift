import Base
import Counters
import Forwarding

/// Samples that need more than one property.
extension Overview {
    var questionSamples: [([String], UInt64)] {
        questions.flatMap { questions in
            questions.counts.enumerated().map { kind, count in
                ([questions.transport.rawValue, questions.isIPv4 ? "1" : "2", QuestionKind.names[kind]], count)
            }
        }
    }

    var sharedCounters: SharedCacheCounters? { sharedCache?.counters }
    var sharedCacheUp: [([String], Double)] { sharedCache.map { [([], $0.isOn ? 1 : 0)] } ?? [] }

    var responseSamples: [([String], UInt64)] {
        responses.enumerated().filter { $0.element > 0 || !ResponseKind.name($0.offset).hasPrefix("RCODE") }
            .map { ([ResponseKind.name($0.offset)], $0.element) }
    }

    var answerSamples: [([String], Durations)] {
        upstreams.flatMap { server, figures in
            figures.durations.map { ([server.description, ResponseKind.name($0)], $1) }
        }
        .sorted { $0.0.lexicographicallyPrecedes($1.0) }
    }

    func connectionSamples(
        _ count: KeyPath<UpstreamTallies.Connections, UInt64>
    ) -> [([String], UInt64)] {
        upstreams.compactMap { server, figures in
            figures.connections.map { ([server.description, Self.proto(server, $0)], $0[keyPath: count]) }
        }
        .sorted { $0.0.lexicographicallyPrecedes($1.0) }
    }

    private static func proto(_ server: Server, _ connections: UpstreamTallies.Connections) -> String {
        server.kind == .account ? (connections.isSecure ? "https" : "http") : server.kind.facts.scheme ?? "tcp"
    }

    /// A sample for each server of each group that has a value, by `to` and `kind`.
    func byKind<Number>(_ value: (Group, ServerState) -> Number?) -> [([String], Number)] {
        servers { group, server in value(group, server).map { ([server.server.description, group.label], $0) } }
    }

    /// The same, by `group` and `to`.
    func byGroup<Number>(_ value: (Group, ServerState) -> Number?) -> [([String], Number)] {
        servers { group, server in value(group, server).map { ([group.name, server.server.description], $0) } }
    }

    /// For each server and each kind of failure: 1 if its last attempt ended so.
    var failureSamples: [([String], Int)] {
        servers { group, server in
            let failing = server.isFailing ? server.health.lastFailure.map { FallbackReason($0.kind) } : nil
            return FallbackReason.failures.map {
                ([group.name, server.server.description, $0.label], $0 == failing ? 1 : 0)
            }
        }
        .flatMap(\.self)
    }

    private func servers<Sample>(_ sample: (Group, ServerState) -> Sample?) -> [Sample] {
        groups.flatMap { group in group.servers.compactMap { sample(group, $0) } }
    }
}
