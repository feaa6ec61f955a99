import Base

/// Suggests the name that an operator most likely meant by an unknown one.
public enum Nearest {
    /// The word nearest to a name; nil: no word is near.
    public static func word(_ name: String, of words: [String]) -> String? {
        let nearest = words.min { distance($0, name) < distance($1, name) }
        return nearest.flatMap { distance($0, name) <= tolerance(name) ? $0 : nil }
    }

    /// The value of a setting that an operator most likely meant by a text: the value begins with the text, or at most
    /// a third of the text's letters differ. Nil if there is no such value, or several.
    static func value(_ text: String, of words: [String]) -> String? {
        let longer = words.filter { text.utf8.count > 2 && $0.hasPrefix(text.lowercased()) }
        if longer.count == 1 { return longer[0] }
        let tolerance = min(text.utf8.count, maximumLength) / 3
        let near = words.map { (word: $0, distance: distance($0, text)) }.filter { $0.distance <= tolerance }
        guard let least = near.map(\.distance).min() else { return nil }
        let nearest = near.filter { $0.distance == least }
        return nearest.count == 1 ? nearest[0].word : nil
    }

    /// The end of a message with a suggestion; empty without a suggestion.
    static func question(_ meant: String?) -> String { meant.map { "; did you mean \($0)?" } ?? "" }

    /// The most letters that may differ. With more differences, a suggestion would be a guess.
    static func tolerance(_ name: String) -> Int { max(2, min(name.utf8.count, maximumLength) / 3) }

    /// No valid name is longer. The rest of a longer text, which may be a whole file, is ignored.
    private static let maximumLength = 100

    /// The number of insertions, deletions and replacements of letters between two texts (Levenshtein), ignoring case.
    static func distance(_ left: String, _ right: String) -> Int {
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
}
