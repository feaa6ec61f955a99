import Base

extension Settings {
    /// These settings as a configuration file with every key, secrets masked. If such a file is loaded, it gives the
    /// same settings, except for the secrets.
    public var effectiveText: String {
        Section.allCases.flatMap { section in
            switch section {
            case .httpdns where !hasHTTPDNS:
                return ["# [httpdns] is not configured: what no [upstreams] group takes is asked of [fallback].\n"]
            // Without [httpdns] it has no effect, so the defaults are not shown.
            case .tls where !hasHTTPDNS && ownAccount.tls == TLS(): return []
            case .upstreams:
                return upstreams.map { text($0.section, Key.keys(of: $0.holder), of: $0) }
            default:
                return [text(section.rawValue, Key.all.filter { $0.section == section }, of: self)]
            }
        }.joined(separator: "\n")
    }

    /// The settings that differ from the defaults, secrets masked, and the origin of each: `# FILE:LINE`, or the
    /// variable. Empty if all settings have their defaults.
    public func differingText(_ origins: Origins) -> String {
        Section.allCases.flatMap { section -> [String] in
            switch section {
            case .upstreams:
                return upstreams.map { group in
                    let usual = Group(likeOf: group)
                    return differing(group.section, Key.keys(of: group.holder), group, usual, origins)
                        ?? "[\(group.section)]\n"
                }
            default:
                let keys = Key.all.filter { $0.section == section }
                let text = differing(section.rawValue, keys, self, Settings(), origins)
                return (text ?? (section == .httpdns && hasHTTPDNS ? "[httpdns]\n" : nil)).map { [$0] } ?? []
            }
        }.joined(separator: "\n")
    }

    private func differing<Root>(
        _ section: String, _ keys: [Key<Root>], _ root: Root, _ usual: Root, _ origins: Origins
    ) -> String? {
        // A key that was not given has a default, which may depend on other keys.
        let differing = keys.compactMap { key -> (key: Key<Root>, location: Origins.Location)? in
            let path = "\(section).\(key.name)"
            let given = origins.find(path)
            let location = key.isSecret && given == .standard ? origins.find(path + "File") : given
            return location == .standard || !key.isSecret && key.isEqual(root, usual) ? nil : (key, location)
        }
        guard !differing.isEmpty else { return nil }
        return differing.reduce(into: "[\(section)]\n") { text, differing in
            let (key, location) = differing
            let comment: String
            switch location {
            case .file(let file, let line): comment = "  # \(file):\(line)"
            case .variable(let variable): comment = "  # \(variable)"
            case .standard: comment = ""
            }
            text += "\(key.name) = \(key.show(root))\(comment)\n"
        }
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

extension Settings.Group {
    /// A group of this kind and name with all defaults.
    fileprivate init(likeOf group: Self) {
        self.init(name: group.name)
        guard let account = group.account else { return }
        var usual = Settings.Account(credential: account.credential)
        // A group has no default provider: with a provider, the group becomes an account.
        usual.provider = account.provider == .tencent ? .alibaba : .tencent
        (usual.encryptType, usual.dnsId) = (.https, 0)
        kind = .account(usual)
    }
}
