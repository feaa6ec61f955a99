import Base
import DNSWire

extension Loader {
    /// The settings, made of all sources read.
    func settings(_ files: Files) throws(ConfigurationError) -> Settings {
        var settings = draft
        for (name, least) in [("minTTL", settings.cache.minTTL), ("negativeMinTTL", settings.cache.negativeMinTTL)]
        where least > settings.cache.maxTTL {
            let key = origins.keys["cache.\(name)"] == nil ? "cache.maxTTL" : "cache.\(name)"
            let message = "\(name) \(least) is more than maxTTL \(settings.cache.maxTTL)"
            throw origins.error(key, message + "; give a \(name) that is not")
        }
        var ranked: Set<Name> = []
        if let twice = settings.cache.rank.firstIndex(where: { !ranked.insert($0.name).inserted }) {
            let name = settings.cache.rank[twice].name
            throw origins.error("cache.rank", item: twice + 1, "\(name) is listed with two ports; give it one")
        }
        try settings.changeGroups { group throws(ConfigurationError) in
            let section = group.tlsSection
            try complete(&group.tls, section, files)
            group.domainsFile = group.domainsFile.map(besideFile)
        }
        settings.domains.interceptFile = settings.domains.interceptFile.map(besideFile)
        settings.domains.bypassFile = settings.domains.bypassFile.map(besideFile)
        settings.fallback.hosts = settings.fallback.hosts.map(besideFile)
        settings.fallback.resolvConf = settings.fallback.resolvConf.map(besideFile)
        settings.cache.file = besideFile(settings.cache.file)
        settings.control.socket = try controlSocket()
        try complete(&settings.listen, beside: settings.control.metrics, files)
        try complete(&settings.sharedCache, files)
        for index in settings.upstreams.indices {
            try checkKind(of: settings.upstreams[index])
            try completeRoute(of: &settings.upstreams[index])
            try completeAccount(of: &settings.upstreams[index], files)
        }
        try completeRoute(of: &settings.ownAccount)
        if origins.keys["private.servers"] == nil {
            settings.privateNames.servers = settings.usualPrivateServers
            if settings.privateNames.egress == Egress() { settings.privateNames.egress = settings.fallback.egress }
        }
        try checkGroups(of: settings)
        if settings.hasHTTPDNS { try completeAccount(of: &settings.ownAccount, files) }
        return settings
    }

    func controlSocket() throws(ConfigurationError) -> String {
        let (path, most) = (besideFile(draft.control.socket), Settings.Control.maximumSocketLength)
        guard path.utf8.count <= most else {
            throw origins.error(
                "control.socket",
                "the path has \(path.utf8.count) bytes with the folder of the file; give one of at most \(most) bytes")
        }
        return path
    }

    /// Completes the rules of `[tls]` or of a group with the contents of their files.
    private func complete(_ tls: inout Settings.TLS, _ section: String, _ files: Files) throws(ConfigurationError) {
        tls.caFile.path = besideFile(tls.caFile.path)
        try read(&tls.caFile, key: section + ".caFile", files)
        // Otherwise any certificate of a public authority would be accepted, for any name.
        guard tls.validateDomain || !tls.caFile.isEmpty && tls.caOnly else {
            let missing = tls.caFile.isEmpty ? "without caFile" : "with caOnly = false"
            let message = "false is not right \(missing): anybody has a certificate that the system's store trusts"
            throw origins.error(section + ".validateDomain", message + "; give true, or trust a caFile alone")
        }
        tls.clientCertificate.path = besideFile(tls.clientCertificate.path)
        guard !tls.clientCertificate.isEmpty else { return }
        try read(&tls.clientCertificate, key: section + ".clientCertificate", files)
        try readSecret(
            &tls.clientCertificatePasswordFile, key: section + ".clientCertificatePasswordFile", holds: "password",
            files)
    }

    /// The path of a file; a relative one starts from the configuration file's folder.
    func besideFile(_ path: String) -> String {
        guard !path.isEmpty, !path.hasPrefix("/"), let slash = file?.lastIndex(of: "/"), let file else { return path }
        return file[...slash] + path
    }
}
