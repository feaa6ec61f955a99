import Addresses

extension Settings {
    /// Reads the configuration: the defaults, over them the file, over that the environment.
    ///
    /// - Parameters:
    ///   - file: The file's path: errors begin with it, and relative paths in the settings start from its folder.
    ///   - contents: What the file holds; nil: there is none.
    ///   - environment: The whole environment. `HTTPDNSD_SECTION_KEY` sets a key, `CREDENTIALS_DIRECTORY` is where a
    ///     relative `dnsKeyFile` or `tokenFile` is looked for first (systemd.exec(5)).
    ///   - readFile: The bytes of a file, nil if it cannot be read. Only `caFile` and the file of
    ///     the secret in use are read.
    /// - Throws: The first error of the file, else the first of the environment.
    public static func load(
        file: String?, contents: String?, environment: [String: String], readFile: (String) -> [UInt8]?
    ) throws(ConfigurationError) -> Settings {
        var loader = Loader(file: file)
        if let contents { try loader.apply(Document(file: loader.fileName, contents: contents)) }
        try loader.apply(environment)
        return try loader.settings(credentialsDirectory: environment["CREDENTIALS_DIRECTORY"], readFile: readFile)
    }
}

/// Lays the sources over each other and remembers where each value came from, so that an error can point there.
struct Loader {
    private let file: String?
    private var draft = Draft()
    /// By the key's path; a key that is not here has its default.
    private var origins: [String: Origin] = [:]
    /// The lines of the sections in the file.
    private var sections: [String: Int] = [:]
    private var hasHTTPDNS = false

    private enum Origin {
        case file(line: Int)
        case environment
    }

    init(file: String?) { self.file = file }

    /// How errors call the file.
    var fileName: String { file ?? "configuration" }

    mutating func apply(_ document: Document) throws(ConfigurationError) {
        sections = document.sections
        hasHTTPDNS = sections[Section.httpdns.rawValue] != nil
        let unknown = sections.filter { Section(rawValue: $0.key) == nil }.min { $0.value < $1.value }
        for entry in document.entries {
            if let unknown, unknown.value <= entry.line { break }
            if let section = Section(rawValue: entry.section.isEmpty ? entry.name : ""), entry.section.isEmpty {
                throw error(
                    entry.line, entry.path, Problem(entry.given.shown, expected: "a section [\(section.rawValue)]"))
            }
            guard let key = Key.named(entry.section, entry.name) else {
                let hint = Nearest.key(section: entry.section, name: entry.name)
                throw error(entry.line, entry.path, Problem("unknown key; \(hint)"))
            }
            do { try key.read(entry.given, &draft) } catch { throw self.error(entry.line, entry.path, error) }
            origins[key.path] = .file(line: entry.line)
        }
        if let unknown {
            throw error(unknown.value, unknown.key, Problem("unknown section; \(Nearest.section(unknown.key))"))
        }
        try refuseBothSources()
    }

    mutating func apply(_ environment: [String: String]) throws(ConfigurationError) {
        let secretsOfFile = (dnsKey: draft.account.dnsKey, token: draft.account.token)
        draft.account.dnsKey = Draft.SecretSource()
        draft.account.token = Draft.SecretSource()
        for (variable, text) in environment.sorted(by: { $0.key < $1.key })
        where variable.hasPrefix(Key.variablePrefix) && !Loader.isKubernetesService(variable, text) {
            guard let key = Key.variable(variable) else {
                throw error(variable, Problem("unknown variable; \(Nearest.variable(variable))"))
            }
            if key.section == .httpdns { hasHTTPDNS = true }
            // An empty secret is one not given: it replaces none of the file's.
            if key.isSecretSource && text.isEmpty { continue }
            do { try key.read(.environment(text), &draft) } catch { throw self.error(variable, error) }
            origins[key.path] = .environment
        }
        try refuseBothSources()
        if !draft.account.dnsKey.isGiven { draft.account.dnsKey = secretsOfFile.dnsKey }
        if !draft.account.token.isGiven { draft.account.token = secretsOfFile.token }
    }

    /// Kubernetes puts variables for each service of the namespace into every container; a service called `httpdnsd`
    /// gets these, and they are not the operator's.
    private static func isKubernetesService(_ variable: String, _ text: String) -> Bool {
        let name = variable.dropFirst(Key.variablePrefix.count)
        if name == "PORT" { return text.contains("://") }
        if name.hasPrefix("PORT_") { return name.dropFirst(5).first?.isNumber == true }
        return name == "SERVICE_HOST" || name == "SERVICE_PORT" || name.hasPrefix("SERVICE_PORT_")
    }

    private func refuseBothSources() throws(ConfigurationError) {
        for (name, source) in [("dnsKey", draft.account.dnsKey), ("token", draft.account.token)]
        where !source.value.bytes.isEmpty && !source.file.isEmpty {
            throw blame(.httpdns, name + "File", "\(name) is given as well; give one of the two")
        }
    }
}

extension Loader {
    /// The settings, once all sources are applied.
    func settings(credentialsDirectory: String?, readFile: (String) -> [UInt8]?) throws(ConfigurationError) -> Settings
    {
        var settings = draft.settings
        if settings.cache.minTTL > settings.cache.maxTTL {
            let name = origins["cache.minTTL"] == nil ? "maxTTL" : "minTTL"
            let message = "minTTL \(settings.cache.minTTL) is more than maxTTL \(settings.cache.maxTTL)"
            throw blame(.cache, name, message + "; give a minTTL that is not")
        }
        settings.tls.caFile = besideFile(settings.tls.caFile)
        if !settings.tls.caFile.isEmpty {
            guard let anchors = readFile(settings.tls.caFile) else {
                let message = "cannot read \(quoted(settings.tls.caFile)); give a file that this user may read"
                throw blame(.tls, "caFile", message)
            }
            settings.tls.anchors = anchors
        }
        settings.fallback.hosts = besideFile(settings.fallback.hosts)
        settings.fallback.resolvConf = settings.fallback.resolvConf.map(besideFile)
        guard hasHTTPDNS else { return settings }

        let credential = try credential { (name, source) throws(ConfigurationError) in
            try secret(name, source, credentialsDirectory: credentialsDirectory, readFile: readFile)
        }
        var httpdns = draft.account.rest
        httpdns.credential = credential
        httpdns.dnsIp =
            draft.account.dnsIp.isEmpty
            ? [credential.publicService]
            : draft.account.dnsIp.map { $0.port == 0 ? Endpoint($0.address, port: credential.defaultPort) : $0 }
        settings.httpdns = httpdns
        return settings
    }

    /// What `encryptType` needs. What it does not need is not looked at, so that it can stay in the file.
    private func credential(
        _ secret: (String, Draft.SecretSource) throws(ConfigurationError) -> (bytes: [UInt8], key: String)
    ) throws(ConfigurationError) -> Settings.HTTPDNS.Credential {
        let account = draft.account
        let encryptType = quoted(account.encryptType.rawValue)
        if account.encryptType == .https {
            let (token, key) = try secret("token", account.token)
            // It goes into a URL as it is.
            let isPrintable = token.allSatisfy {
                $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "&") && $0 != UInt8(ascii: "#")
            }
            guard isPrintable else {
                throw blame(.httpdns, key, "the token is not right; give printable ASCII without space, & and #")
            }
            return .https(token: Secret(token))
        }
        guard account.dnsId > 0 else {
            throw blame(.httpdns, "dnsId", "\(encryptType) needs an authorization ID; give 1 to \(UInt32.max)")
        }
        let (bytes, key) = try secret("dnsKey", account.dnsKey)
        let length = account.encryptType == .aes ? 16 : 8
        guard bytes.count == length else {
            let message = "the key has \(bytes.count) bytes; \(encryptType) needs exactly \(length)"
            throw blame(.httpdns, key, message)
        }
        return account.encryptType == .aes
            ? .aes(id: account.dnsId, key: Secret(bytes)) : .des(id: account.dnsId, key: Secret(bytes))
    }

    /// The bytes of a secret, never empty, and the key that gave them.
    private func secret(
        _ name: String, _ source: Draft.SecretSource, credentialsDirectory: String?, readFile: (String) -> [UInt8]?
    ) throws(ConfigurationError) -> (bytes: [UInt8], key: String) {
        if !source.value.bytes.isEmpty { return (source.value.bytes, name) }
        guard !source.file.isEmpty else {
            let encryptType = quoted(draft.account.encryptType.rawValue)
            throw blame(.httpdns, name, "missing; \(encryptType) needs it: give \(name) or \(name)File")
        }
        var paths = [besideFile(source.file)]
        if let credentialsDirectory, !credentialsDirectory.isEmpty, !source.file.hasPrefix("/") {
            paths.insert(credentialsDirectory + "/" + source.file, at: 0)
        }
        for path in paths {
            guard var bytes = readFile(path) else { continue }
            if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
            if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
            guard !bytes.isEmpty else {
                throw blame(.httpdns, name + "File", "\(quoted(path)) is empty; put the \(name) into it")
            }
            return (bytes, name + "File")
        }
        let tried = paths.map { quoted($0) }.joined(separator: " and ")
        throw blame(.httpdns, name + "File", "cannot read \(tried); give a file that this user may read")
    }

    /// A relative path starts from the configuration file's folder.
    private func besideFile(_ path: String) -> String {
        guard !path.isEmpty, !path.hasPrefix("/"), let slash = file?.lastIndex(of: "/"), let file else { return path }
        return file[...slash] + path
    }

    private func error(_ line: Int, _ path: String, _ problem: Problem) -> ConfigurationError {
        ConfigurationError(file: fileName, line: line, key: path, message: problem.message)
    }

    private func error(_ variable: String, _ problem: Problem) -> ConfigurationError {
        ConfigurationError(file: "environment", line: 0, key: variable, message: problem.message)
    }

    /// An error at the place a key was given; for a key that was not, at its section.
    private func blame(_ section: Section, _ name: String, _ message: String) -> ConfigurationError {
        let path = "\(section.rawValue).\(name)"
        let line: Int?
        switch origins[path] {
        case .file(let given): line = given
        case .environment: line = nil
        case nil: line = sections[section.rawValue]
        }
        if let line { return error(line, path, Problem(message)) }
        let variable = Key.named(section.rawValue, name)?.variable ?? path
        return error(variable, Problem(message))
    }
}
