/// The values of a TOML configuration file, each with its line.
struct Document {
    struct Entry {
        /// The name of the section; for a group, with the group's name after a dot; empty before the first section.
        let section: String
        let name: String
        let given: Given
        let lines: Settings.Origins.Lines

        var path: String { section.isEmpty ? name : "\(section).\(name)" }
    }

    /// The entries in the order of their lines.
    private(set) var entries: [Entry] = []
    /// The lines of all sections, empty ones included; groups as `upstreams.NAME`.
    private(set) var sections: [String: Int] = [:]

    /// The first error, with a tolerant reader.
    let firstError: ConfigurationError?

    /// - Parameters:
    ///   - file: The file's name in errors.
    ///   - isTolerant: Whether lines that are not TOML are skipped.
    /// - Throws: The first error, unless tolerant.
    init(file: String, contents: String, isTolerant: Bool = false) throws(ConfigurationError) {
        let reader = try TOMLReader(file: file, contents, isTolerant: isTolerant)
        firstError = reader.firstError
        var deeper: Set<[String]> = []
        for item in reader.items {
            // A section's name has no dot: a quoted one must not be mistaken for a group's section.
            let path = item.path.enumerated().map { $0 == 0 && $1.contains(".") ? quoted($1) : $1 }
            let depth = path[0] == Section.upstreams.rawValue ? 2 : 1
            let isTable = item.given == nil
            let inSections = min(depth, path.count - (isTable ? 0 : 1))
            for end in 0..<inSections {
                // Of an array: for slices, the runtime would first put the function together, a fiftieth of a start.
                let section = Array(path[...end]).joined(separator: ".")
                if sections[section] == nil { sections[section] = item.line }
            }
            let key = Array(path.prefix(inSections + 1))
            // No key takes a table: its contents are reported as one entry.
            let isInTable = isTable || path.count > key.count
            guard key.count > inSections, !isInTable || deeper.insert(key).inserted else { continue }
            entries.append(
                Entry(
                    section: Array(key.dropLast()).joined(separator: "."), name: key[inSections],
                    given: isInTable ? .other("a table") : item.given ?? .other("nothing"),
                    lines: Settings.Origins.Lines(key: item.line, items: item.itemLines)))
        }
    }
}
