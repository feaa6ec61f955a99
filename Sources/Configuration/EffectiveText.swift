extension Settings {
    /// These settings as a configuration file with every key, secrets masked. Read again it gives the same settings,
    /// but for the secrets.
    public var effectiveText: String {
        let draft = Draft(self)
        return Section.allCases.map { section in
            if section == .httpdns && httpdns == nil {
                return "# [httpdns] is not configured: everything is asked of the local resolver.\n"
            }
            let keys = Key.all.filter { $0.section == section }
            let width = keys.map(\.name.count).max() ?? 0
            return keys.reduce(into: "[\(section.rawValue)]\n") { text, key in
                let assignment = padded(key.name, to: width) + " = " + key.show(draft)
                text += padded(assignment, to: 44) + "  # \(key.documentation)\n"
            }
        }.joined(separator: "\n")
    }
}

private func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
}
