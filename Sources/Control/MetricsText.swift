import Counters

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
}
