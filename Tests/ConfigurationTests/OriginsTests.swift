import Configuration
import Testing

@Suite struct OriginsTests {
    private func origins(_ contents: String?, environment: [String: String] = [:]) throws -> Settings.Origins {
        try loaded(contents, environment: environment, files: ["/etc/httpdnsd/ca.pem": "1", "/ca": "1"]).origins
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

    @Test("commands need the option -c for every file but the standard one")
    func option() throws {
        #expect(try origins("").fileOption == " -c /etc/httpdnsd/test.toml")
        let standard = try Settings.load(
            file: Settings.standardFile, contents: nil, environment: [:], readFile: { _ in FileReading(nil) })
        #expect(standard.origins.fileOption.isEmpty)
    }

    @Test("a key that was not given is missed at its section, or else as a variable")
    func notGiven() throws {
        let text = "[log]\n\n[tls]\ncaOnly = true\n"
        #expect("\(try origins(text).error("tls.pins", "no"))" == "/etc/httpdnsd/test.toml:3: tls.pins: no")
        #expect("\(try origins(text).error("cache.file", "no"))" == "environment: HTTPDNSD_CACHE_FILE: no")
        #expect("\(try origins(nil).error("cache.file", "no"))" == "environment: HTTPDNSD_CACHE_FILE: no")
    }

    @Test("an error of a section stands at its own first line, or at a variable that sets it")
    func ofSection() throws {
        let text = "[upstreams.one]\nservers = ['192.0.2.1']\ndomains = ['one.example']\n\n"
        let group = "[upstreams.ads]\nanswer = 'nxdomain'\ndomains = ['ads.example']\n"
        let inFile = try origins(text + group).error("upstreams.ads", "no")
        #expect("\(inFile)" == "/etc/httpdnsd/test.toml:5: upstreams.ads: no")
        let variables = [
            "HTTPDNSD_UPSTREAMS_ADS_ANSWER": "nxdomain", "HTTPDNSD_UPSTREAMS_ADS_DOMAINS": "ads.example",
        ]
        let ofVariables = try origins(text, environment: variables)
        #expect("\(ofVariables.error("upstreams.ads", "no"))" == "environment: HTTPDNSD_UPSTREAMS_ADS_ANSWER: no")
    }

    @Test("an item of a list stands on its own line, wherever the list begins")
    func items() throws {
        let text = """
            [domains]
            bypass = [ # names
              "a.example", "b.example",

              'c.example' # the last
            ]
            intercept = ["d.example", "e.example"]
            [httpdns]
            token = "1234"
            """
        let origins = try origins(
            text,
            environment: [
                "HTTPDNSD_UPSTREAMS_OFFICE_SERVERS": "192.0.2.1",
                "HTTPDNSD_UPSTREAMS_OFFICE_DOMAINS": "x.example",
            ])
        func line(_ key: String, _ item: Int? = nil) -> Int? {
            if case .file("/etc/httpdnsd/test.toml", let line) = origins.find(key, item: item) { line } else { nil }
        }
        #expect([1, 2, 3].map { line("domains.bypass", $0) } == [3, 3, 5])
        #expect(line("domains.bypass") == 2 && line("domains.bypass", 4) == 2)
        #expect(line("domains.intercept", 2) == 7)
        #expect(
            origins.find("upstreams.office.domains", item: 1) == .variable("HTTPDNSD_UPSTREAMS_OFFICE_DOMAINS"))
        #expect(origins.find("cache.file") == .standard)
        #expect(origins.find(section: "httpdns") == .file("/etc/httpdnsd/test.toml", line: 8))
        #expect(origins.find(section: "upstreams.office") == .variable("HTTPDNSD_UPSTREAMS_OFFICE_DOMAINS"))
        #expect(origins.find(section: "log") == .standard)
    }
}
