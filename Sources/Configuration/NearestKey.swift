/// What an operator most likely meant by a name that is not known.
enum Nearest {
    /// To stand behind "unknown": the nearest key, or the names that would be known there.
    static func key(section: String, name: String) -> String {
        let nearest = Key.all.min { distance($0) < distance($1) }
        func distance(_ key: Key) -> Int {
            // A key by its right name in the wrong section is near, the right section nearer.
            Nearest.distance(key.name, name) + min(2, Nearest.distance(key.section.rawValue, section))
        }
        if let nearest, distance(nearest) <= tolerance(name) { return "did you mean \(nearest.path)?" }
        let names = Key.all.filter { $0.section.rawValue == section }.map(\.name)
        return names.isEmpty ? Nearest.section(section) : "[\(section)] has " + names.joined(separator: ", ")
    }

    static func section(_ name: String) -> String {
        let sections = Section.allCases.map(\.rawValue)
        let nearest = sections.min { distance($0, name) < distance($1, name) }
        if let nearest, distance(nearest, name) <= tolerance(name) { return "did you mean [\(nearest)]?" }
        return "there are " + sections.map { "[\($0)]" }.joined(separator: ", ")
    }

    static func variable(_ name: String) -> String {
        let variables = Key.all.map(\.variable)
        let nearest = variables.min { distance($0, name) < distance($1, name) }
        if let nearest, distance(nearest, name) <= tolerance(String(name.dropFirst(Key.variablePrefix.count))) {
            return "did you mean \(nearest)?"
        }
        return "give \(Key.variablePrefix)SECTION_KEY, such as \(Key.all[0].variable)"
    }

    /// Beyond this many changed letters a suggestion would be a guess.
    private static func tolerance(_ name: String) -> Int { max(2, min(name.utf8.count, maximumLength) / 3) }

    /// No name that means one of ours is longer: the rest, which may be a whole file's worth, is not looked at.
    private static let maximumLength = 100

    /// How many letters to add, take away or change to make one text of the other (Levenshtein), whatever their case.
    private static func distance(_ left: String, _ right: String) -> Int {
        let left = left.utf8.prefix(maximumLength).map(lowercased)
        let right = right.utf8.prefix(maximumLength).map(lowercased)
        var row = Array(0...right.count)
        for (leftIndex, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = leftIndex + 1
            for (rightIndex, other) in right.enumerated() {
                let changed = diagonal + (letter == other ? 0 : 1)
                diagonal = row[rightIndex + 1]
                row[rightIndex + 1] = min(changed, diagonal + 1, row[rightIndex] + 1)
            }
        }
        return row[right.count]
    }

    private static func lowercased(_ octet: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(octet) ? octet | 0x20 : octet
    }
}
