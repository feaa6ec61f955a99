import Base

/// Accounts of HTTPDNS, in `[httpdns]` and in groups.
extension Loader {
    /// Refuses keys of other kinds of groups. `answer` or `provider` decides the kind of a group.
    func checkKind(of group: Settings.Group) throws(ConfigurationError) {
        func isGiven(_ name: String) -> Bool { origins.keys["\(group.section).\(name)"] != nil }
        let holder: Holders =
            isGiven("alias") ? .alias : isGiven("answer") ? .answer : isGiven("provider") ? .account : .servers
        let names = Set(Key.keys(of: holder).map(\.name))
        for key in Key.ofGroup where !names.contains(key.name) && isGiven(key.name) {
            let message =
                switch holder {
                case .alias where key.name == "answer": "a group has an answer or an alias; give one of the two"
                case .alias:
                    "a group with an alias asks no server, and has no \(key.name); leave it out, or leave out alias"
                case .answer:
                    "a group with an answer asks no server, and has no \(key.name); leave it out, or leave out answer"
                case .account:
                    "an HTTPDNS account has no \(key.name); give dnsIp for its addresses, or leave out provider"
                case _ where key.name == "serverName": "only an HTTPDNS account has it; \(Nearest.certificateName)"
                default: "only an HTTPDNS account has it; give provider as well, or leave it out"
                }
            throw origins.error("\(group.section).\(key.name)", message)
        }
    }

    /// Converts `httpOnly` of an account to `thenTry`, and adds `norecord` to `thenTryOn` unless that was given.
    func completeRoute(of group: inout Settings.Group) throws(ConfigurationError) {
        guard group.account != nil else { return }
        let (section, isThenTryGiven) = (group.section, origins.keys[group.section + ".thenTry"] != nil)
        if let httpOnly = group.givenHTTPOnly {
            guard !httpOnly || !isThenTryGiven || group.thenTry.isEmpty else {
                throw origins.error(
                    section + ".httpOnly",
                    "true is not right beside thenTry (\(origins.location(of: section + ".thenTry"))), which names who else is "
                        + "asked; give one of the two")
            }
            // The default `thenTry` of `[upstreams.NAME]` is empty, so false is not the same as the default.
            if httpOnly || !isThenTryGiven { group.httpOnly = httpOnly }
            group.givenHTTPOnly = nil
        }
        if origins.keys[section + ".thenTryOn"] == nil { group.thenTryOn.insert(.norecord) }
    }

    /// Completes the account that a group's keys describe, with only the secrets that it uses.
    func completeAccount(of group: inout Settings.Group, _ files: Files) throws(ConfigurationError) {
        guard var account = group.account else { return }
        let (section, facts) = (group.section, account.provider.facts)
        try refuseMissingKeys(of: facts, account, in: section)
        account.secretsFromFiles = account.secrets.fromFiles
        account.credential = try credential(account, in: section, files)
        let port = account.credential.defaultPort
        /// Completes servers with the usual port, by which two texts may name one server.
        func withPorts(_ servers: [Endpoint]) -> [Endpoint] {
            servers.map { $0.port == 0 ? Endpoint($0.address, port: port) : $0 }.eachOnce
        }
        account.dnsIp = account.dnsIp.isEmpty ? account.credential.publicServices : withPorts(account.dnsIp)
        guard !account.dnsIp.isEmpty else {
            throw origins.error(
                section + ".dnsIp",
                "missing; \(quoted(account.provider.rawValue)) has no address of its own to be asked at")
        }
        account.confIp = withPorts(account.confIp)
        if origins.keys[section + ".batch"] == nil { account.batch = facts.namesPerRequest }
        group.kind = .account(account)
    }

    /// Refuses settings that the provider does not support.
    private func refuseMissingKeys(
        of facts: Provider.Facts, _ given: Settings.Account, in section: String
    ) throws(ConfigurationError) {
        let provider = quoted(given.provider.rawValue)
        guard facts.encryptions.contains(given.encryptType) else {
            let right = facts.encryptions.map { quoted($0.rawValue) }.joined(separator: " or ")
            throw origins.error(
                section + ".encryptType",
                "\(quoted(given.encryptType.rawValue)) is not right with \(provider); give \(right)")
        }
        for (key, isGiven, able) in [
            ("routeIpEncrypted", given.routeIpEncrypted, Provider.tencent), ("trace", given.trace, .alibaba),
        ] where isGiven && given.provider != able {
            throw origins.error("\(section).\(key)", "\(provider) cannot do that; give false")
        }
        guard given.batch <= facts.namesPerRequest || origins.keys[section + ".batch"] == nil else {
            throw origins.error(
                section + ".batch",
                "\(given.batch) is not right; \(provider) takes \(facts.namesPerRequest) at most")
        }
    }

    /// The credential for `provider` and `encryptType`. Secrets for other kinds are ignored, so they may stay in the
    /// file.
    private func credential(
        _ given: Settings.Account, in section: String, _ files: Files
    ) throws(ConfigurationError) -> Credential {
        let (provider, encryption) = (given.provider, given.encryptType)
        /// The value that requires the keys read here.
        let needing = quoted(provider == .tencent ? encryption.rawValue : provider.rawValue)
        if provider == .tencent, encryption == .https {
            let (token, key) = try secret("token", given.secrets.token, in: section, needing, files)
            // The token is inserted into a URL without escapes.
            guard token.allSatisfy(isUnreserved) else {
                let right = "letters, digits, \"-\", \".\", \"_\" and \"~\" alone"
                throw origins.error(key, "the token has other characters than a URL takes; give \(right)")
            }
            return .https(token: Secret(token))
        }
        guard given.dnsId > 0 else {
            throw origins.error(section + ".dnsId", "\(needing) needs an authorization ID; give 1 to \(UInt32.max)")
        }
        let (bytes, key) = try secret("dnsKey", given.secrets.dnsKey, in: section, needing, files)
        guard provider == .tencent else {
            let aesKey = try encryption == .aes ? aesKey(given, in: section, files) : nil
            return .signed(provider, id: given.dnsId, secret: Secret(bytes), aesKey: aesKey)
        }
        let length = encryption == .aes ? 16 : 8
        guard bytes.count == length else {
            throw origins.error(key, "the key has \(bytes.count) bytes; \(needing) needs exactly \(length)")
        }
        return encryption == .aes
            ? .aes(id: given.dnsId, key: Secret(bytes)) : .des(id: given.dnsId, key: Secret(bytes))
    }

    private func aesKey(
        _ given: Settings.Account, in section: String, _ files: Files
    ) throws(ConfigurationError) -> Secret {
        let (digits, key) = try secret("aesKey", given.secrets.aesKey, in: section, quoted("aes"), files)
        guard digits.count == 32 else {
            throw origins.error(key, "the key has \(digits.count) bytes; it is 32 hexadecimal digits in the console")
        }
        return Secret(digits)
    }

    /// The bytes of a secret, never empty, and the key by which it was given.
    private func secret(
        _ name: String, _ source: Settings.Account.SecretSource, in section: String, _ needing: String,
        _ files: Files
    ) throws(ConfigurationError) -> (bytes: [UInt8], key: String) {
        if !source.value.bytes.isEmpty { return (source.value.bytes, "\(section).\(name)") }
        guard !source.file.isEmpty else {
            throw origins.error("\(section).\(name)", "missing; \(needing) needs it: give \(name) or \(name)File")
        }
        let key = "\(section).\(name)File"
        return (try secretFile(source.file, key: key, holds: name, files).bytes, key)
    }
}
