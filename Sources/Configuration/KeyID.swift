/// The name of a key and its section, which for a key of a group contains the group's name.
struct KeyID: Hashable {
    let section: String
    let name: String

    /// `section.name`, as in messages.
    var path: String { "\(section).\(name)" }
    /// The environment variable that overrides the file.
    var variable: String {
        Self.variablePrefix + (section.split(separator: ".") + [name[...]]).joined(separator: "_").uppercased()
    }

    static let variablePrefix = "HTTPDNSD_"
    private static let groupPrefix = Section.upstreams.rawValue + "."

    init(section: String, name: String) { (self.section, self.name) = (section, name) }

    /// The key with this path; nil: no key has the path.
    init?(path: String) {
        guard let dot = path.lastIndex(of: ".") else { return nil }
        self.init(section: String(path[..<dot]), name: String(path[dot...].dropFirst()))
        guard Key.named(self) != nil || isOfGroup && Key.ofGroup.contains(where: { $0.name == name }) else {
            return nil
        }
    }

    /// The name of the key's group; nil for the key of another section.
    var group: String? {
        section.hasPrefix(Self.groupPrefix) ? String(section.dropFirst(Self.groupPrefix.count)) : nil
    }

    private var isOfGroup: Bool { group.map(Settings.Group.isName) ?? false }

    /// The group's key that a variable sets, with the group's name in upper case, as in the variable; nil for a
    /// variable of another form.
    static func group(ofVariable variable: String) -> (name: String, key: Key<Settings.Group>)? {
        let words = variable.split(separator: "_", omittingEmptySubsequences: false)
        guard words.count == 4, words[0] + "_" == variablePrefix, words[1] == Section.upstreams.rawValue.uppercased(),
            words[2] == words[2].uppercased(), let key = Key.ofGroup.first(where: { $0.name.uppercased() == words[3] })
        else { return nil }
        return (String(words[2]), key)
    }
}
