public import Base

extension Settings {
    /// The configuration file if no other is given.
    public static let standardFile = "/etc/httpdnsd/httpdnsd.toml"

    /// Reads the configuration and records the origin of each value. The environment overrides the file; the file
    /// overrides the defaults.
    ///
    /// - Parameters:
    ///   - file: The file's path. Errors begin with it; relative paths in the settings start from its folder.
    ///   - contents: The file's text; nil: there is no file.
    ///   - environment: The whole environment. `HTTPDNSD_SECTION_KEY` sets a key. A relative path of a secret's file is
    ///     tried first in the folder `CREDENTIALS_DIRECTORY` (systemd.exec(5)), then in the folder `credentials` beside
    ///     the configuration, then beside the configuration.
    ///   - listen: Addresses of the command line, which replace `listen.addresses` if there are any.
    ///   - readFile: Reads a file: `caFile`, `certificateFile`, `clientCertificate` and the files of the secrets in
    ///     use, no other.
    /// - Throws: The first error of the file, else the first of the environment.
    public static func load(
        file: String?, contents: String?, environment: [String: String], listen: [Endpoint] = [],
        readFile: @escaping (String) -> FileReading
    ) throws(ConfigurationError) -> (settings: Settings, origins: Origins) {
        var loader = try Loader(file: file, contents: contents, environment: environment)
        if let first = loader.mistakes.first { throw first }
        if !listen.isEmpty {
            loader.draft.listen.addresses = listen
            loader.origins.keys["listen.addresses"] = .option("--listen")
        }
        var filesRead: [String] = []
        var credentialPaths: [String: String] = [:]
        let files = Files(
            credentials: environment["CREDENTIALS_DIRECTORY"],
            read: { path in
                let reading = readFile(path)
                if case .bytes = reading { filesRead.append(path) }
                return reading
            }, noteBeside: { credentialPaths[$0] = $1 })
        let settings = try loader.settings(files)
        loader.origins.filesRead = filesRead
        // Certificates are public; every other file read holds a secret.
        let certificates = Set(
            (settings.everyGroup.map(\.tls.caFile) + [settings.sharedCache.caFile, settings.listen.certificateFile])
                .map(\.path))
        loader.origins.secretFiles += filesRead.filter { !certificates.contains($0) }
        // This key is followed as it changes, but the folder is read at the start alone.
        credentialPaths[settings.listen.keyFile.path] = nil
        loader.origins.credentialPaths = credentialPaths
        return (settings, loader.origins)
    }
}

extension Settings {
    /// The text of a configuration file, which must be UTF-8 (TOML 1.0.0).
    /// - Throws: An error at the line of the first invalid octets.
    public static func text(_ octets: [UInt8], file: String) throws(ConfigurationError) -> String {
        if let text = String(validating: octets, as: UTF8.self) { return text }
        let lines = octets.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let line = lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0
        throw ConfigurationError(
            file: file, line: line + 1, key: "syntax",
            message: "a character that is not UTF-8; save the file as UTF-8, such as with iconv -f latin1 -t utf-8")
    }

    /// All keys, sections and variables that are wrong by themselves, in the order of the file's lines, then of the
    /// variables. Errors between keys, or in files that keys name, are not included. Parameters: as of
    /// ``load(file:contents:environment:readFile:)``.
    public static func mistakes(
        file: String?, contents: String?, environment: [String: String]
    ) -> [ConfigurationError] {
        do throws(ConfigurationError) {
            return try Loader(file: file, contents: contents, environment: environment).mistakes
        } catch {
            return [error]
        }
    }

    /// `control.socket` alone, whatever other keys are wrong: a command may reach a running daemon while an operator
    /// edits the file, and without the right to read secrets. Parameters: as of
    /// ``load(file:contents:environment:readFile:)``.
    /// - Returns: The socket (the default one if the key itself is wrong), and all mistakes.
    public static func controlSocket(
        file: String?, contents: String?, environment: [String: String]
    ) -> (path: String, mistakes: [ConfigurationError]) {
        var mistakes: [ConfigurationError] = []
        do throws(ConfigurationError) {
            let loader = try Loader(file: file, contents: contents, environment: environment, isTolerant: true)
            mistakes = loader.mistakes
            return (try loader.controlSocket(), mistakes)
        } catch {
            return (Settings().control.socket, mistakes + [error])
        }
    }
}

/// Applies the sources one over another and records the origin of each value, for errors.
struct Loader {
    let file: String?
    fileprivate(set) var draft = Settings()
    fileprivate(set) var origins: Settings.Origins
    /// The errors of single keys, sections and variables, in order.
    private(set) var mistakes: [ConfigurationError] = []

    /// - Parameters:
    ///   - contents: The file's text; nil: there is no file.
    ///   - isTolerant: Whether lines that are not TOML are skipped; the first of them becomes one of the mistakes.
    /// - Throws: The first error of the TOML, unless tolerant.
    init(
        file: String?, contents: String?, environment: [String: String], isTolerant: Bool = false
    ) throws(ConfigurationError) {
        self.file = file
        origins = Settings.Origins(fileName: file ?? "configuration")
        if let contents {
            let document = try Document(file: origins.fileName, contents: contents, isTolerant: isTolerant)
            if let error = document.firstError { mistakes = [error] }
            apply(document, contents)
        }
        apply(environment)
    }

    private mutating func apply(_ document: Document, _ contents: String) {
        origins.sections = document.sections
        draft.hasHTTPDNS = document.sections[Section.httpdns.rawValue] != nil
        let wrong = takeSections(document.sections)
        // The entries of an invalid section are not checked.
        for entry in document.entries where wrong[entry.section] == nil {
            do throws(ConfigurationError) { try read(entry, of: contents) } catch { mistakes.append(error) }
        }
        mistakes += wrong.values
        mistakes.sort { ($0.line, $0.key) < ($1.line, $1.key) }
        refuseBothSources()
        if let file, draft.everyGroup.contains(where: \.secrets.isAnyInText) { origins.secretFiles = [file] }
    }

    /// Begins a group for each section of a group.
    /// - Returns: The errors of invalid sections.
    private mutating func takeSections(_ sections: [String: Int]) -> [String: ConfigurationError] {
        var wrong: [String: ConfigurationError] = [:]
        for (path, line) in sections.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
            if let name = KeyID(section: path, name: "").group {
                do { _ = try group(named: name, begins: true) } catch { wrong[path] = origins.error(line, path, error) }
            } else if Section(rawValue: path) == nil {
                wrong[path] = origins.error(
                    line, path, Problem("unknown section in version \(Version.current); \(Nearest.section(path))"))
            }
        }
        return wrong
    }

    /// The index of a group in the list; a missing group is added.
    ///
    /// - Parameter begins: Whether this is the group's own section. If so, the group must not exist yet.
    private mutating func group(named name: String, begins: Bool) throws(Problem) -> Int {
        guard Settings.Group.isName(name) else {
            let right = "letters and digits, at most \(Settings.Group.maximumNameLength)"
            throw Problem("the name \(Given.text(name).shown)", expected: right)
        }
        let groups = draft.upstreams
        if let index = groups.firstIndex(where: { $0.name.lowercased() == name.lowercased() }) {
            guard begins else { return index }
            let line = origins.sections[groups[index].section] ?? 0
            throw Problem(
                "differs from [\(groups[index].section)] on line \(line) in its case alone; give another name")
        }
        guard !Settings.Group.builtInNames.contains(name.lowercased()) else {
            throw Problem("is the group of [\(name.lowercased())] already; give another name")
        }
        guard groups.count < Settings.maximumGroups else {
            throw Problem("more than \(Settings.maximumGroups) groups; give at most so many")
        }
        draft.upstreams.append(Settings.Group(name: name))
        return groups.count
    }

    private mutating func read(_ entry: Document.Entry, of contents: String) throws(ConfigurationError) {
        do throws(Problem) {
            if let section = Section(rawValue: entry.section.isEmpty ? entry.name : "") {
                throw Problem(entry.given.shown, expected: "a section \(section.header)")
            }
            let id = KeyID(section: entry.section, name: entry.name)
            if entry.section == Section.upstreams.rawValue {
                throw Problem(
                    "a key of no group; give a section \(Section.upstreams.header) and the keys of that group there")
            } else if let name = id.group, let key = Key.ofGroup.first(where: { $0.name == entry.name }) {
                let group = try group(named: name, begins: false)
                try key.read(entry.given, &draft.upstreams[group])
            } else if let key = Key.named(id) {
                try key.read(entry.given, &draft)
            } else {
                let meant =
                    commentedHeader(of: entry, in: contents) ?? Nearest.key(section: entry.section, name: entry.name)
                throw Problem("unknown key in version \(Version.current); \(meant)")
            }
        } catch {
            throw origins.error(entry.lines.line(of: error.item), entry.path, error)
        }
        origins.keys[entry.path] = .file(entry.lines)
    }

    /// The message for a key uncommented without its section's header; nil: no commented header is above the key.
    private func commentedHeader(of entry: Document.Entry, in contents: String) -> String? {
        let lines = contents.split(separator: "\n", omittingEmptySubsequences: false).prefix(entry.lines.key - 1)
        for (index, line) in lines.enumerated().reversed() {
            let text = line.drop { $0 == " " || $0 == "\t" }
            if text.first == "[" { return nil }
            let words = text.drop { "# \t".contains($0) }.prefix { $0 != "]" }
            guard text.first == "#", words.first == "[", words.endIndex < text.endIndex else { continue }
            let id = KeyID(section: String(words.dropFirst()), name: entry.name)
            if KeyID(path: id.path) != nil {
                return
                    "the header of its section, [\(id.section)], is a comment (line \(index + 1)); remove the \"#\" there"
            }
        }
        return nil
    }

    private mutating func apply(_ environment: [String: String]) {
        // A secret of the environment replaces the file's, whether given directly or as a file.
        var ofFile = draft.everyGroup.map(\.secrets)[...]
        draft.changeGroups { if $0.account != nil { $0.secrets = Settings.Account.Secrets() } }
        let own = environment.filter { $0.key.hasPrefix(KeyID.variablePrefix) }
        for (variable, text) in own.sorted(by: { $0.key < $1.key }) where !ServiceLink.isOne(variable, text) {
            do { try read(variable, text) } catch { mistakes.append(origins.error(variable: variable, error)) }
        }
        refuseBothSources()
        draft.changeGroups { group in
            if let secrets = ofFile.popFirst(), group.account != nil { group.secrets.complete(from: secrets) }
        }
    }

    private mutating func read(_ variable: String, _ text: String) throws(Problem) {
        // The environment has U+FFFD instead of octets that are not UTF-8.
        guard !text.unicodeScalars.contains("\u{FFFD}") else {
            throw Problem("a character that is not UTF-8; give the value as UTF-8")
        }
        // An empty secret in the environment counts as not given: it replaces no secret of the file and begins no
        // section.
        if let (name, key) = KeyID.group(ofVariable: variable) {
            if key.isSecretSource && text.isEmpty { return }
            let group = try group(named: name.lowercased(), begins: false)
            try key.read(.environment(text), &draft.upstreams[group])
            origins.keys["\(draft.upstreams[group].section).\(key.name)"] = .environment
        } else if let key = Key.variable(variable) {
            if key.isSecretSource && text.isEmpty { return }
            if key.section == .httpdns { draft.hasHTTPDNS = true }
            try key.read(.environment(text), &draft)
            origins.keys[key.path] = .environment
        } else {
            throw Problem("unknown variable in version \(Version.current); \(Nearest.variable(variable))")
        }
    }

    private mutating func refuseBothSources() {
        for group in draft.everyGroup {
            for (name, source) in group.secrets.all where !source.value.bytes.isEmpty && !source.file.isEmpty {
                mistakes.append(
                    origins.error("\(group.section).\(name)File", "\(name) is given as well; give one of the two"))
            }
        }
    }
}
