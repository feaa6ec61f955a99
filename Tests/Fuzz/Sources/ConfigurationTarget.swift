import Base

@testable import Configuration

extension Target {
    /// A configuration file; behind an octet 1 each, variables of the environment.
    static let configuration = Target(name: "configuration") { bytes in
        let parts = bytes.split(separator: 1, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        var environment = ["CREDENTIALS_DIRECTORY": "/run/credentials"]
        for variable in parts.dropFirst() {
            let sides = variable.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            // No environment can hold a NUL.
            if sides.count == 2, !variable.utf8.contains(0) { environment[String(sides[0])] = String(sides[1]) }
        }
        environment["CREDENTIALS_DIRECTORY"] = "/run/credentials"
        let mentionsSecret = String(decoding: bytes, as: UTF8.self).contains(fileSecret)
        do throws(ConfigurationError) {
            let settings = try load(parts[0], environment)
            let text = settings.effectiveText
            check(mentionsSecret || !text.contains(fileSecret), "a secret is shown")
            do throws(ConfigurationError) {
                let again = try load(text, [:])
                check(masked(again) == masked(settings), "the effective settings are others:\n\(text)")
            } catch {
                fatalError("the effective settings are no settings: \(error)\n\(text)")
            }
        } catch {
            let text = error.description
            check(text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }, "an error of several lines")
            check(text.hasPrefix("/etc/httpdnsd/fuzz.toml:") || text.hasPrefix("environment: "), text)
            check(mentionsSecret || !text.contains(fileSecret), "a secret is told")
        }
    }
}

/// What stands in every file.
private let fileSecret = "SECRET-OF-A-FILE"

private func load(_ contents: String, _ environment: [String: String]) throws(ConfigurationError) -> Settings {
    try Settings.load(file: "/etc/httpdnsd/fuzz.toml", contents: contents, environment: environment) { path in
        if path.hasSuffix("missing") { return FileReading(nil) }
        return .bytes(path.hasSuffix("empty") ? [] : Array(fileSecret.utf8) + [0x0A])
    }.settings
}

/// The settings without what a mask stands for when they are shown.
private func masked(_ settings: Settings) -> Settings {
    var settings = settings
    settings.changeGroups { group in
        guard let account = group.account else { return }
        group.secretsFromFiles = []
        func zeros(_ secret: Secret) -> Secret { Secret(secret.bytes.map { _ in 0 }) }
        group.credential =
            switch account.credential {
            case .https: .https(token: Secret([]))
            case .aes(let id, let key): .aes(id: id, key: zeros(key))
            case .des(let id, let key): .des(id: id, key: zeros(key))
            case .signed(let provider, let id, let secret, let aesKey):
                .signed(provider, id: id, secret: zeros(secret), aesKey: aesKey.map(zeros))
            }
    }
    return settings
}
