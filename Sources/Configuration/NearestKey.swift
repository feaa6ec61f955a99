/// Suggestions for keys, sections and variables.
extension Nearest {
    /// The text after "unknown": the likely meaning, the nearest key, or the valid names.
    static func key(section: String, name: String) -> String {
        if let known = known(section: section, name: name) { return known }
        let ofGroup =
            section.hasPrefix(Section.upstreams.rawValue + ".") ? section : Section.upstreams.rawValue + ".NAME"
        let ids = Key.all.map(\.id) + Key.ofGroup.map { KeyID(section: ofGroup, name: $0.name) }
        func distance(_ id: KeyID) -> Int {
            // The right name in the wrong section is near. The right name in the right section is nearer.
            Nearest.distance(id.name, name) + min(2, Nearest.distance(id.section, section))
        }
        if let nearest = ids.min(by: { distance($0) < distance($1) }) {
            // A short name resembles a name of another section by chance.
            let most = nearest.section == section ? tolerance(name) : min(tolerance(name), name.utf8.count / 3)
            if distance(nearest) <= most { return "did you mean \(nearest.path)?" }
        }
        let names = ids.filter { $0.section == section }.map(\.name)
        let longer = names.filter { name.utf8.count > 2 && $0.lowercased().hasPrefix(name.lowercased()) }
        if longer.count == 1 { return "did you mean \(section).\(longer[0])?" }
        return names.isEmpty ? Nearest.section(section) : "[\(section)] has " + names.joined(separator: ", ")
    }

    /// The likely meaning of a key of another program or section; nil: the key is not known. Case is ignored.
    private static func known(section: String, name: String) -> String? {
        let other = elsewhere.first {
            $0.sections.contains { $0.rawValue == section.lowercased() } && $0.names.contains(name.lowercased())
        }
        return other?.meant ?? ForeignKeys.meaning(of: name)
    }

    /// Keys of other programs or sections, in lower case, whose nearest key would mislead.
    private static let elsewhere: [(sections: [Section], names: [String], meant: String)] = [
        (
            [.cache], ["size", "cachesize", "maxsize", "max", "capacity", "entries", "maxentries"],
            "did you mean cache.megabytes?"
        ),
        (
            [.log], ["file", "path", "logfile", "output"],
            "messages go to the journal (journalctl -u httpdnsd), or else to standard error"
        ),
        ([.control], ["port", "listen", "address", "addresses", "http"], "did you mean control.metrics?"),
        ([.listen], ["servername"], "did you mean listen.name?"),
        ([.fallback, .privateNames], ["servername"], certificateName),
    ]

    /// The remedy for the certificate's name of a server outside an account.
    static let certificateName =
        "the name in a server's certificate is given behind \"#\" in servers, as in \"tls://192.0.2.1#dns.example\""

    static func section(_ name: String) -> String {
        let nearest = word(name, of: Section.allCases.map(\.rawValue)).flatMap(Section.init)
        if let nearest { return "did you mean \(nearest.header)?" }
        return "there are " + Section.allCases.map(\.header).joined(separator: ", ")
    }

    static func variable(_ name: String) -> String {
        let words = name.split(separator: "_", omittingEmptySubsequences: false).dropFirst()
        let isOfGroup = words.first.map { $0 == Section.upstreams.rawValue.uppercased() } ?? false
        if isOfGroup, words.count != 3 || !Settings.Group.isName(String(words[2])) {
            let form = KeyID.variablePrefix + "UPSTREAMS_NAME_KEY"
            return "give \(form), where NAME has letters and digits alone, such as \(ofGroup("OFFICE")[0])"
        }
        let key = String(words.last ?? "")
        if let section = words.first, words.count == (isOfGroup ? 3 : 2),
            let known = known(section: String(section), name: key)
        {
            return known
        }
        let variables = Key.all.map(\.variable) + (isOfGroup ? ofGroup(words[2]) : [])
        let nearest = variables.min { distance($0, name) < distance($1, name) }
        let own = isOfGroup ? key : String(name.dropFirst(KeyID.variablePrefix.count))
        if let nearest, distance(nearest, name) <= tolerance(own) {
            return "did you mean \(nearest)?"
        }
        return "give \(KeyID.variablePrefix)SECTION_KEY, such as \(Key.all[0].variable)"
    }

    /// The variables of one group.
    private static func ofGroup(_ name: Substring) -> [String] {
        Key.ofGroup.map { KeyID(section: "\(Section.upstreams.rawValue).\(name)", name: $0.name).variable }
    }
}
