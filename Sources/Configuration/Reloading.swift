extension Settings {
    /// What becomes of settings that are read again while the daemon runs.
    public struct Reloading: Sendable, Equatable {
        /// What holds from now on: the new settings, but for what needs a restart.
        public var settings: Settings
        /// The keys whose new values hold, `section.key`, in the order of the sections; `httpdns` when the section was
        /// added or taken away.
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
            if section == .httpdns, httpdns == nil || new.httpdns == nil {
                if httpdns != new.httpdns { applied.append(section.rawValue) }
                continue
            }
            for key in Key.all where key.section == section {
                if key.isHeededAtStartOnly {
                    key.copy(before, &result)
                    if !key.isEqual(before, after) { needingRestart.append(key.path) }
                } else if !key.isEqual(before, after) || tls.holdsOther(than: new.tls, in: key) {
                    applied.append(key.path)
                }
            }
        }
        return Reloading(settings: result.settings, applied: applied, needingRestart: needingRestart)
    }
}

extension Settings.TLS {
    /// Whether the file that a key names holds something else now.
    fileprivate func holdsOther(than new: Self, in key: Key) -> Bool {
        switch key.path {
        case "tls.caFile": caContents != new.caContents
        case "tls.clientCertificate": clientKey != new.clientKey
        case "tls.clientCertificatePasswordFile": password != new.password
        default: false
        }
    }
}

extension Key {
    /// What sockets, threads, memory and the log were made by, and the file that was opened.
    var isHeededAtStartOnly: Bool { Self.heededAtStartOnly.contains(path) }

    private static let heededAtStartOnly: Set<String> = [
        "listen.addresses", "listen.workers", "cache.megabytes", "cache.file", "control.socket", "control.host",
        "control.metrics", "log.format",
    ]
}
