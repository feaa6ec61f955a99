import Base
import Counters
import Forwarding

/// One metric of `/metrics`: its name, kind and labels never change. docs/metrics.md has them all.
struct Metric: Sendable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    let name: String
    let kind: Kind
    /// One line for an operator.
    let help: String
    /// Writes the metric's samples.
    let write: @Sendable (Overview, Metric, inout MetricsText) -> Void

    /// A metric without labels.
    static func one<Number: CustomStringConvertible & SendableMetatype>(
        _ name: String, _ kind: Kind, _ help: String, _ value: @escaping @Sendable (Overview) -> Number
    ) -> Metric {
        Metric(name: name, kind: kind, help: help) { overview, metric, text in
            text.sample(metric.name, [], value(overview).description)
        }
    }

    /// A metric with a sample for each set of label values. Servers whose descriptions are the same (they differ only
    /// in parts that are left out there) are added up, since two samples with the same labels would make the page
    /// invalid.
    static func each<Number: CustomStringConvertible & Numeric & Comparable & SendableMetatype>(
        _ name: String, _ kind: Kind, _ labels: [String], _ help: String,
        _ samples: @escaping @Sendable (Overview) -> [([String], Number)]
    ) -> Metric {
        Metric(name: name, kind: kind, help: help) { overview, metric, text in
            for (values, number) in merged(samples(overview), kind == .counter ? { $0 + $1 } : { max($0, $1) }) {
                text.sample(metric.name, Array(zip(labels, values)), number.description)
            }
        }
    }

    static func histogram(
        _ name: String, _ labels: [String], _ help: String,
        _ samples: @escaping @Sendable (Overview) -> [([String], Durations)]
    ) -> Metric {
        Metric(name: name, kind: .histogram, help: help) { overview, metric, text in
            for (values, durations) in merged(samples(overview), { $0 + $1 }) {
                text.histogram(metric.name, Array(zip(labels, values)), durations)
            }
        }
    }

    /// A metric of the shared cache; there are no samples without one.
    static func shared<Number: CustomStringConvertible & Numeric & Comparable & SendableMetatype>(
        _ name: String, _ kind: Kind, _ labels: [String], _ help: String,
        _ samples: @escaping @Sendable (SharedCacheOverview) -> [([String], Number)]
    ) -> Metric {
        each(name, kind, labels, help) { $0.sharedCache.map(samples) ?? [] }
    }

    private static func merged<Value>(
        _ samples: [([String], Value)], _ combine: (Value, Value) -> Value
    ) -> [([String], Value)] {
        var places: [[String]: Int] = [:]
        var merged: [([String], Value)] = []
        for (labels, value) in samples {
            if let place = places[labels] {
                merged[place].1 = combine(merged[place].1, value)
            } else {
                places[labels] = merged.count
                merged.append((labels, value))
            }
        }
        return merged
    }
}

/// Samples that need more than one property.
extension Overview {
    var questionSamples: [([String], UInt64)] {
        self.questions.flatMap { questions in
            questions.counts.enumerated().map { kind, count in
                ([questions.transport.rawValue, questions.isIPv4 ? "1" : "2", QuestionKind.names[kind]], count)
            }
        }
    }

    var responseSamples: [([String], UInt64)] {
        self.responses.enumerated().filter { $0.element > 0 || !ResponseKind.name($0.offset).hasPrefix("RCODE") }
            .map { ([ResponseKind.name($0.offset)], $0.element) }
    }

    /// A sample of each server of each group that has a value, with the labels ``Metric/ofServer`` and then these.
    func samplesOfServers<Number>(_ samples: (ServerView) -> [([String], Number)]) -> [([String], Number)] {
        groups.flatMap { group in
            group.servers.flatMap { server in
                samples(server).map { ([group.name, server.address, server.proto] + $0, $1) }
            }
        }
    }

    func byServer<Number>(_ value: (ServerView) -> Number?) -> [([String], Number)] {
        samplesOfServers({ server in value(server).map { [([], $0)] } ?? [] })
    }
}

extension ServerView {
    var durationSamples: [([String], Durations)] {
        figures.durations.sorted { $0.key < $1.key }.map { ([ResponseKind.name($0.key)], $0.value) }
    }

    var connectionSamples: [([String], UInt64)] {
        figures.connections.map { [(["open"], $0.reused), (["new"], $0.fresh)] } ?? []
    }

    /// For each kind of failure: 1 if the last attempt ended so.
    var failureSamples: [([String], Int)] {
        FallbackReason.failures.map { ([$0.label], isFailing && $0 == last?.kind ? 1 : 0) }
    }
}
