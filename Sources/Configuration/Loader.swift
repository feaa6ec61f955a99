extension Settings {
    /// Reads the configuration: the defaults, over them the file, over that the environment.
    ///
    /// - Parameters:
    ///   - file: The file's path: errors begin with it, and relative paths in the settings start from its folder.
    ///   - contents: What the file holds; nil: there is none.
    ///   - environment: The whole environment. `HTTPDNSD_SECTION_KEY` sets a key, `CREDENTIALS_DIRECTORY` is where a
    ///     relative `dnsKeyFile`, `tokenFile` or `clientCertificatePasswordFile` is looked for first (systemd.exec(5)).
    ///   - readFile: The bytes of a file, nil if it cannot be read. Only `caFile`, `clientCertificate` and the files of
    ///     the secrets in use are read.
    /// - Throws: The first error of the file, else the first of the environment.
    public static func load(
        file: String?, contents: String?, environment: [String: String], readFile: (String) -> [UInt8]?
    ) throws(ConfigurationError) -> Settings {
        try loadWithOrigins(file: file, contents: contents, environment: environment, readFile: readFile).settings
    }

    /// Reads the configuration as ``load(file:contents:environment:readFile:)`` does, and says where it stands.
    public static func loadWithOrigins(
        file: String?, contents: String?, environment: [String: String], readFile: (String) -> [UInt8]?
    ) throws(ConfigurationError) -> (settings: Settings, origins: Origins) {
        var loader = Loader(file: file)
        if let contents { try loader.apply(Document.read(file: loader.origins.fileName, contents: contents)) }
        try loader.apply(environment)
        var filesRead: [String] = []
        let settings = try loader.settings(credentialsDirectory: environment["CREDENTIALS_DIRECTORY"]) { path in
            guard let bytes = readFile(path) else { return nil }
            filesRead.append(path)
            return bytes
        }
        // Authorities are no secret; all else that is read is one.
        loader.origins.secretFiles += filesRead.filter { $0 != settings.tls.caFile }
        return (settings, loader.origins)
    }
}

extension Settings {
    /// `control.socket` alone, for whoever may talk to the daemon but not read its secrets. Parameters and errors are those
    /// of ``load(file:contents:environment:readFile:)``.
    public static func controlSocket(
        file: String?, contents: String?, environment: [String: String]
    ) throws(ConfigurationError) -> String {
        var loader = Loader(file: file)
        if let contents { try loader.apply(Document.read(file: loader.origins.fileName, contents: contents)) }
        try loader.apply(environment)
        return loader.controlSocket
    }
}

/// Lays the sources over each other and remembers where each value came from, so that an error can point there.
struct Loader {
    let file: String?
    private(set) var draft = Draft()
    fileprivate(set) var origins: Settings.Origins
    private(set) var hasHTTPDNS = false

    init(file: String?) {
        self.file = file
        origins = Settings.Origins(fileName: file ?? "configuration")
    }

    mutating func apply(_ document: Document) throws(ConfigurationError) {
        let sections = document.sections
        origins.sections = sections
        hasHTTPDNS = sections[Section.httpdns.rawValue] != nil
        let unknown = sections.filter { Section(rawValue: $0.key) == nil }.min { $0.value < $1.value }
        for entry in document.entries {
            if let unknown, unknown.value <= entry.line { break }
            if let section = Section(rawValue: entry.section.isEmpty ? entry.name : ""), entry.section.isEmpty {
                throw origins.error(
                    entry.line, entry.path, Problem(entry.given.shown, expected: "a section [\(section.rawValue)]"))
            }
            guard let key = Key.named(entry.section, entry.name) else {
                let hint = Nearest.key(section: entry.section, name: entry.name)
                throw origins.error(entry.line, entry.path, Problem("unknown key; \(hint)"))
            }
            do { try key.read(entry.given, &draft) } catch { throw origins.error(entry.line, entry.path, error) }
            origins.keys[key.path] = .file(line: entry.line)
        }
        if let unknown {
            throw origins.error(unknown.value, unknown.key, Problem("unknown section; \(Nearest.section(unknown.key))"))
        }
        try refuseBothSources()
        if let file, !(draft.account.dnsKey.value.bytes + draft.account.token.value.bytes).isEmpty {
            origins.secretFiles = [file]
        }
    }

    mutating func apply(_ environment: [String: String]) throws(ConfigurationError) {
        let secretsOfFile = (dnsKey: draft.account.dnsKey, token: draft.account.token)
        draft.account.dnsKey = Draft.SecretSource()
        draft.account.token = Draft.SecretSource()
        for (variable, text) in environment.sorted(by: { $0.key < $1.key })
        where variable.hasPrefix(Key.variablePrefix) && !ServiceLink.isOne(variable, text) {
            guard let key = Key.variable(variable) else {
                throw origins.error(variable: variable, Problem("unknown variable; \(Nearest.variable(variable))"))
            }
            if key.section == .httpdns { hasHTTPDNS = true }
            // An empty secret is one not given: it replaces none of the file's.
            if key.isSecretSource && text.isEmpty { continue }
            do { try key.read(.environment(text), &draft) } catch { throw origins.error(variable: variable, error) }
            origins.keys[key.path] = .environment
        }
        try refuseBothSources()
        if !draft.account.dnsKey.isGiven { draft.account.dnsKey = secretsOfFile.dnsKey }
        if !draft.account.token.isGiven { draft.account.token = secretsOfFile.token }
    }

    private func refuseBothSources() throws(ConfigurationError) {
        for (name, source) in [("dnsKey", draft.account.dnsKey), ("token", draft.account.token)]
        where !source.value.bytes.isEmpty && !source.file.isEmpty {
            throw origins.error("httpdns.\(name)File", "\(name) is given as well; give one of the two")
        }
    }
}
