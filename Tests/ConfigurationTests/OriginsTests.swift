import Configuration
import Testing

@Suite struct OriginsTests {
    private func origins(_ contents: String?, environment: [String: String] = [:]) throws -> Settings.Origins {
        try Settings.loadWithOrigins(
            file: contents == nil ? nil : "/etc/httpdnsd/test.toml", contents: contents, environment: environment,
            readFile: { _ in [1] }
        ).origins
    }

    @Test("an error found in use stands where the key was given, the environment over the file")
    func given() throws {
        let text = "[tls]\ncaOnly = true\n\ncaFile = 'ca.pem'\n"
        let inFile = try origins(text).error("tls.caFile", "holds no certificate; give PEM or DER")
        #expect("\(inFile)" == "/etc/httpdnsd/test.toml:4: tls.caFile: holds no certificate; give PEM or DER")
        #expect(inFile.line == 4)
        for contents in [text, nil] {
            let origins = try origins(contents, environment: ["HTTPDNSD_TLS_CAFILE": "/ca"])
            #expect("\(origins.error("tls.caFile", "no"))" == "environment: HTTPDNSD_TLS_CAFILE: no")
        }
    }

    @Test("a key that was not given is missed at its section, or else as a variable")
    func notGiven() throws {
        let text = "[log]\n\n[tls]\ncaOnly = true\n"
        #expect("\(try origins(text).error("tls.pins", "no"))" == "/etc/httpdnsd/test.toml:3: tls.pins: no")
        #expect("\(try origins(text).error("cache.file", "no"))" == "environment: HTTPDNSD_CACHE_FILE: no")
        #expect("\(try origins(nil).error("cache.file", "no"))" == "environment: HTTPDNSD_CACHE_FILE: no")
    }

    @Test("the settings are those of load")
    func settings() throws {
        let text = "[cache]\nmegabytes = 3"
        let loaded = try Settings.loadWithOrigins(file: "f", contents: text, environment: [:], readFile: { _ in nil })
        #expect(loaded.settings == (try load(text)))
    }
}
