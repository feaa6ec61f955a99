extension Settings {
    /// These settings as a configuration file with every key, secrets masked. Loaded again it gives the same settings,
    /// except for the secrets.
    public var effectiveText: String {
        Section.allCases.flatMap { section in
            switch section {
            case .httpdns where !hasHTTPDNS:
                return ["# [httpdns] is not configured: everything is asked of the local resolver.\n"]
            case .upstreams:
                return upstreams.map { text($0.section, Key.keys(of: $0.holder), of: $0) }
            default:
                return [text(section.rawValue, Key.all.filter { $0.section == section }, of: self)]
            }
        }.joined(separator: "\n")
    }

    private func text<Root>(_ section: String, _ keys: [Key<Root>], of root: Root) -> String {
        let width = keys.map(\.name.count).max() ?? 0
        return keys.reduce(into: "[\(section)]\n") { text, key in
            let assignment = padded(key.name, to: width) + " = " + key.show(root)
            text += padded(assignment, to: 44) + "  # \(key.documentation)\n"
        }
    }
}

private func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
}
