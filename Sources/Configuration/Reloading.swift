extension Settings {
    /// What becomes of settings that are read again while the daemon runs.
    public struct Reloading: Sendable, Equatable {
        /// What holds from now on: the new settings, but for what needs a restart.
        public var settings: Settings
        /// The keys whose new values hold, `section.key`, in the order of the sections; `httpdns` or `upstreams.NAME`
        /// when the section was added or taken away.
        public var applied: [String]
        /// The keys that differ and are heeded at the start only.
        public var needingRestart: [String]
    }

    /// Reads the settings again into these, which are in effect.
    public func reloading(_ new: Settings) -> Reloading {
        let (before, after) = (Draft(self), Draft(new))
        var result = after
        var (applied, needingRestart): ([String], [String]) = ([], [])
        for section in Section.allCases {
            switch section {
            case .httpdns where httpdns == nil || new.httpdns == nil:
                if httpdns != new.httpdns { applied.append(section.rawValue) }
            case .upstreams:
                applied += changes(of: new)
            default:
                for key in Key.all where key.section == section {
                    if key.isHeededAtStartOnly {
                        key.copy(before, &result)
                        if !key.isEqual(before, after) { needingRestart.append(key.path) }
                    } else if !key.isEqual(before, after) {
                        applied.append(key.path)
                    }
                }
            }
        }
        return Reloading(settings: result.settings, applied: applied, needingRestart: needingRestart)
    }

    /// What differs in the groups: keys, and groups that came or went, first those that there are now.
    private func changes(of new: Settings) -> [String] {
        let names = Set(new.upstreams.map(\.name))
        let changed = new.upstreams.flatMap { group in
            guard let old = upstreams.first(where: { $0.name == group.name }) else { return [group.path] }
            return Key.ofGroup.filter { !$0.isEqual(old, group) }.map { $0.place(in: group).path }
        }
        return changed + upstreams.filter { !names.contains($0.name) }.map(\.path)
    }
}

extension Key where Root == Draft {
    /// What sockets, threads, memory and the log were made by, and the file that was opened.
    var isHeededAtStartOnly: Bool { heededAtStartOnly.contains(path) }
}

private let heededAtStartOnly: Set<String> = [
    "listen.addresses", "listen.workers", "cache.megabytes", "cache.file", "control.socket", "control.host",
    "control.metrics", "log.format",
]
