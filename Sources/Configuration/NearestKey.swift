/// Of keys, sections and variables.
extension Nearest {
    /// The text behind "unknown": the nearest key, or the names that exist there.
    static func key(section: String, name: String) -> String {
        let ofGroup =
            section.hasPrefix(Section.upstreams.rawValue + ".") ? section : Section.upstreams.rawValue + ".NAME"
        let places = Key.all.map(\.place) + Key.ofGroup.map { KeyPlace(section: ofGroup, name: $0.name) }
        func distance(_ place: KeyPlace) -> Int {
            // The right name in the wrong section is near; in the right section it is nearer.
            Nearest.distance(place.name, name) + min(2, Nearest.distance(place.section, section))
        }
        let nearest = places.min { distance($0) < distance($1) }
        if let nearest, distance(nearest) <= tolerance(name) { return "did you mean \(nearest.path)?" }
        let names = places.filter { $0.section == section }.map(\.name)
        return names.isEmpty ? Nearest.section(section) : "[\(section)] has " + names.joined(separator: ", ")
    }

    static func section(_ name: String) -> String {
        let nearest = Section.allCases.min { distance($0.rawValue, name) < distance($1.rawValue, name) }
        if let nearest, distance(nearest.rawValue, name) <= tolerance(name) { return "did you mean \(nearest.header)?" }
        return "there are " + Section.allCases.map(\.header).joined(separator: ", ")
    }

    static func variable(_ name: String) -> String {
        let words = name.split(separator: "_", omittingEmptySubsequences: false).dropFirst()
        let isOfGroup = words.first.map { $0 == Section.upstreams.rawValue.uppercased() } ?? false
        if isOfGroup, words.count != 3 || !Settings.Group.isName(String(words[2])) {
            let form = KeyPlace.variablePrefix + "UPSTREAMS_NAME_KEY"
            return "give \(form), where NAME has letters and digits alone, such as \(ofGroup("OFFICE")[0])"
        }
        let variables = Key.all.map(\.variable) + (isOfGroup ? ofGroup(words[2]) : [])
        let nearest = variables.min { distance($0, name) < distance($1, name) }
        if let nearest, distance(nearest, name) <= tolerance(String(name.dropFirst(KeyPlace.variablePrefix.count))) {
            return "did you mean \(nearest)?"
        }
        return "give \(KeyPlace.variablePrefix)SECTION_KEY, such as \(Key.all[0].variable)"
    }

    /// The variables of one group.
    private static func ofGroup(_ name: Substring) -> [String] {
        Key.ofGroup.map { KeyPlace(section: "\(Section.upstreams.rawValue).\(name)", name: $0.name).variable }
    }
}
