extension Settings {
    /// The result of applying new settings to a running daemon.
    public struct Reloading: Sendable, Equatable {
        /// The settings in effect after the reload: the new settings, except for keys that need a restart.
        public var settings: Settings
        /// The keys with new values in effect, `section.key`, in the order of the sections; `httpdns` or
        /// `upstreams.NAME` for an added or removed section, `upstreams` for another order of groups that
        /// answer.
        public var applied: [String]
        /// The keys that differ but take effect only at the start.
        public var needingRestart: [String]
    }

    /// The result of applying new settings to a daemon with these settings.
    public func reloading(_ new: Settings) -> Reloading {
        var result = new
        // The sockets for TLS and HTTPS stay until a restart, and so does the certificate that their clients need.
        let hasSockets = !listen.tls.isEmpty || !listen.https.isEmpty
        let keepsCertificate = hasSockets && new.listen.certificateFile.isEmpty
        var (applied, needingRestart): ([String], [String]) = ([], [])
        for section in Section.allCases {
            switch section {
            case .httpdns where httpdns == nil || new.httpdns == nil:
                if httpdns != new.httpdns { applied.append(section.rawValue) }
            case .upstreams:
                applied += changes(of: new)
            default:
                for key in Key.all where key.section == section {
                    if key.effect == .atStart || keepsCertificate && key.effect == .withCertificate {
                        key.copy(self, &result)
                        if !key.isEqual(self, new) { needingRestart.append(key.path) }
                    } else if !key.isEqual(self, new) {
                        applied.append(key.path)
                    }
                }
            }
        }
        return Reloading(settings: result, applied: applied, needingRestart: needingRestart)
    }

    /// The paths of changed keys of groups, and the sections of added groups; then those of removed groups, and
    /// `upstreams` if groups that answer are in another order: of two lists with the same pattern, the first group's
    /// counts.
    private func changes(of new: Settings) -> [String] {
        let names = Set(new.upstreams.map(\.name))
        let changed = new.upstreams.flatMap { group in
            guard let old = upstreams.first(where: { $0.name == group.name }) else { return [group.section] }
            return Key.keys(of: [old.holder, group.holder]).filter { !$0.isEqual(old, group) }.map {
                "\(group.section).\($0.name)"
            }
        }
        let (before, after) = (namesOfAnswering, new.namesOfAnswering)
        let isSameOrder = before.filter(after.contains) == after.filter(before.contains)
        return changed + upstreams.filter { !names.contains($0.name) }.map(\.section)
            + (isSameOrder ? [] : [Section.upstreams.rawValue])
    }

    private var namesOfAnswering: [String] { upstreams.filter { $0.answer != nil }.map(\.name) }
}
