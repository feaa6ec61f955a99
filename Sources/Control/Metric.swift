import Counters
import Forwarding

/// One metric of `/metrics`, whose name and labels never change. docs/metrics.md lists all metrics.
struct Metric: Sendable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    typealias Number = CustomStringConvertible & Numeric & Comparable & SendableMetatype
    /// The values of the labels, with their figure.
    typealias Samples<Figure> = [([String], Figure)]

    let name: String
    let kind: Kind
    /// One line for an operator.
    private(set) var help = ""
    /// Writes the metric's samples.
    let write: @Sendable (Overview, inout MetricsText) -> Void

    /// The metric with its line for an operator.
    func about(_ help: String) -> Metric {
        var metric = self
        metric.help = help
        return metric
    }

    /// A metric with a sample for each set of label values. The name shows whether it is a counter. Servers with equal
    /// descriptions (which leave out some parts) share a sample, since two samples with the same labels would make the
    /// page invalid: the sum of counters, or the greatest of gauges.
    static func each<Figure: Number>(
        _ name: String, _ labels: [String], _ samples: @escaping @Sendable (Overview) -> Samples<Figure>
    ) -> Metric {
        let kind = name.hasSuffix("_total") ? Kind.counter : .gauge
        return Metric(name: name, kind: kind) { overview, text in
            for (values, number) in merged(samples(overview), kind == .counter ? { $0 + $1 } : { max($0, $1) }) {
                text.sample(name, Array(zip(labels, values)), number.description)
            }
        }
    }

    static func histogram(
        _ name: String, _ labels: [String], _ samples: @escaping @Sendable (Overview) -> Samples<Durations>
    ) -> Metric {
        Metric(name: name, kind: .histogram) { overview, text in
            for (values, durations) in merged(samples(overview), { $0 + $1 }) {
                text.histogram(name, Array(zip(labels, values)), durations)
            }
        }
    }

    /// A metric without labels.
    static func one<Figure: Number>(
        _ name: String, _ value: @escaping @Sendable (Overview) -> Figure
    ) -> Metric {
        each(name, []) { [([], value($0))] }
    }

    /// A metric of the shared cache, without samples if there is no shared cache.
    static func shared<Figure: Number>(
        _ name: String, _ labels: [String], _ samples: @escaping @Sendable (SharedCacheOverview) -> Samples<Figure>
    ) -> Metric {
        each(name, labels) { $0.sharedCache.map(samples) ?? [] }
    }

    static func shared<Figure: Number>(
        _ name: String, _ value: @escaping @Sendable (SharedCacheOverview) -> Figure
    ) -> Metric {
        shared(name, []) { [([], value($0))] }
    }

    /// A metric of each group that has a value.
    static func group<Figure: Number>(
        _ name: String, _ value: @escaping @Sendable (GroupView) -> Figure?
    ) -> Metric {
        each(name, ["group"]) { $0.groups.compactMap { group in value(group).map { ([group.name], $0) } } }
    }

    /// The labels of a metric for each server of each group; a metric may have more.
    static let ofServer = ["group", "server", "protocol"]

    static func server<Figure: Number>(
        _ name: String, _ labels: [String], _ samples: @escaping @Sendable (ServerView) -> Samples<Figure>
    ) -> Metric {
        each(name, ofServer + labels) { $0.ofServers(samples) }
    }

    static func server<Figure: Number>(
        _ name: String, _ value: @escaping @Sendable (ServerView) -> Figure?
    ) -> Metric {
        server(name, []) { value($0).map { [([], $0)] } ?? [] }
    }

    /// The samples, of which those with the same labels are one.
    static func merged<Value>(_ samples: Samples<Value>, _ combine: (Value, Value) -> Value) -> Samples<Value> {
        var indices: [[String]: Int] = [:]
        var merged: Samples<Value> = []
        for (labels, value) in samples {
            if let index = indices[labels] {
                merged[index].1 = combine(merged[index].1, value)
            } else {
                indices[labels] = merged.count
                merged.append((labels, value))
            }
        }
        return merged
    }
}

/// Prometheus' text format, version 0.0.4.
struct MetricsText {
    static let type = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""

    mutating func begin(_ metric: Metric) {
        text += "# HELP \(metric.name) \(metric.help).\n# TYPE \(metric.name) \(metric.kind.rawValue)\n"
    }

    mutating func sample(_ name: String, _ labels: [(String, String)], _ value: String) {
        let pairs = labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",")
        text += "\(name)\(pairs.isEmpty ? "" : "{\(pairs)}") \(value)\n"
    }

    mutating func histogram(_ name: String, _ labels: [(String, String)], _ durations: Durations) {
        var sum: UInt64 = 0
        for (bucket, count) in durations.counts.enumerated() {
            sum += count
            let bound = Durations.upperBound(bucket).map { "\(Double($0) / 1e9)" } ?? "+Inf"
            sample(name + "_bucket", labels + [("le", bound)], "\(sum)")
        }
        sample(name + "_sum", labels, "\(Double(durations.nanoseconds) / 1e9)")
        sample(name + "_count", labels, "\(sum)")
    }

    /// A label's value with its special characters escaped, which the path of a server may contain.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        // A quotation mark and its combining characters are one Character.
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

extension Overview {
    /// The text of `/metrics`.
    var metrics: String {
        var text = MetricsText()
        for metric in Metric.all {
            text.begin(metric)
            metric.write(self, &text)
        }
        return text.text
    }

    /// The samples of each server of each group, with the values of ``Metric/ofServer`` before its own.
    func ofServers<Figure>(_ samples: (ServerView) -> Metric.Samples<Figure>) -> Metric.Samples<Figure> {
        groups.flatMap { group in
            group.servers.flatMap { server in
                samples(server).map { ([group.name, server.address, server.proto] + $0, $1) }
            }
        }
    }
}
