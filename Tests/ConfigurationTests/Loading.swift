import Testing

@testable import Configuration

/// Loads a configuration whose file is called `/etc/httpdnsd/test.toml`, or none if there are no contents.
func loaded(
    _ contents: String?, environment: [String: String] = [:], files: [String: String] = [:]
) throws -> (settings: Settings, origins: Settings.Origins) {
    try Settings.load(
        file: contents == nil ? nil : "/etc/httpdnsd/test.toml", contents: contents, environment: environment,
        readFile: { FileReading(files[$0].map { Array($0.utf8) }) })
}

/// The settings of ``loaded(_:environment:files:)``.
func load(
    _ contents: String?, environment: [String: String] = [:], files: [String: String] = [:]
) throws -> Settings {
    try loaded(contents, environment: environment, files: files).settings
}

/// The whole line an operator sees for a wrong configuration; the file's folder is left out.
func message(
    _ contents: String?, environment: [String: String] = [:], files: [String: String] = [:],
    sourceLocation: SourceLocation = #_sourceLocation
) -> String {
    do {
        _ = try load(contents, environment: environment, files: files)
        Issue.record("accepted", sourceLocation: sourceLocation)
        return ""
    } catch {
        let text = "\(error)"
        #expect(!text.contains("\n"), sourceLocation: sourceLocation)
        let folder = "/etc/httpdnsd/"
        return text.hasPrefix(folder) ? String(text.dropFirst(folder.count)) : text
    }
}

extension Settings {
    /// `[tls]`.
    var tls: TLS {
        get { ownAccount.tls }
        set { ownAccount.tls = newValue }
    }
}
