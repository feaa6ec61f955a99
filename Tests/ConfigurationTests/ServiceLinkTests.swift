import Base
import Configuration
import Testing

@Suite("Variables that Kubernetes adds for the Services of a namespace")
struct ServiceLinkTests {
    /// As `kubectl exec … env` shows them for a Service with two named ports.
    private static func links(_ service: String, address: String = "10.96.0.10") -> [String: String] {
        let host = address.contains(":") ? "[\(address)]" : address
        return [
            "\(service)_SERVICE_HOST": address, "\(service)_SERVICE_PORT": "53", "\(service)_SERVICE_PORT_DNS": "53",
            "\(service)_SERVICE_PORT_DNS_TCP": "53", "\(service)_PORT": "udp://\(host):53",
            "\(service)_PORT_53_UDP": "udp://\(host):53", "\(service)_PORT_53_UDP_PROTO": "udp",
            "\(service)_PORT_53_UDP_PORT": "53", "\(service)_PORT_53_UDP_ADDR": address,
            "\(service)_PORT_9153_TCP": "tcp://\(host):9153", "\(service)_PORT_9153_TCP_PROTO": "tcp",
            "\(service)_PORT_9153_TCP_PORT": "9153", "\(service)_PORT_9153_TCP_ADDR": address,
            "\(service)_PORT_7_SCTP": "sctp://\(host):7",
        ]
    }

    @Test(
        "whatever a Service is called, they are not the operator's",
        arguments: [
            "HTTPDNSD", "HTTPDNSD_METRICS", "HTTPDNSD_CONTROL", "HTTPDNSD_CONTROL_METRICS", "HTTPDNSD_LISTEN_ADDRESSES",
            "HTTPDNSD_PORT", "HTTPDNSD_SERVICE", "HTTPDNSD_SERVICE_PORT_53", "HTTPDNSD_PORT_53_UDP", "HTTPDNSD_2",
            "HTTPDNSD_UPSTREAMS", "HTTPDNSD_UPSTREAMS_OFFICE",
        ])
    func services(_ service: String) throws {
        #expect(try load(nil, environment: Self.links(service)) == Settings())
        #expect(try load(nil, environment: Self.links(service, address: "fd00::a")) == Settings())
    }

    @Test(
        "what has not both their name and their value is the operator's, and refused",
        arguments: [
            ("HTTPDNSD_PORT", "53"), ("HTTPDNSD_PORT", "http://10.0.0.1:53"), ("HTTPDNSD_PORT", "tcp://host:53"),
            ("HTTPDNSD_CONTROL_PORT", "9153"), ("HTTPDNSD_SERVICE_HOST", "dns.example.com"),
            ("HTTPDNSD_SERVICE_PORT", "0"), ("HTTPDNSD_SERVICE_PORT_DNS", "domain"), ("HTTPDNSD_SERVICE", "10.0.0.1"),
            ("HTTPDNSD_SERVICE_HOST_NAME", "10.0.0.1"), ("HTTPDNSD_PORT_53_UDP", "10.0.0.1:53"),
            ("HTTPDNSD_PORT_53_UDP_ADDR", "udp"), ("HTTPDNSD_PORT_53_UDP_PROTO", "10.0.0.1"),
            ("HTTPDNSD_PORT_53_UDP_PORT", "70000"), ("HTTPDNSD_PORT_53", "udp://10.0.0.1:53"),
            ("HTTPDNSD_PORT_53_ICMP_PORT", "53"), ("HTTPDNSD_PORT_53_UDP_ADDR_X", "10.0.0.1"),
            ("HTTPDNSD_PORT_UDP", "udp://10.0.0.1:53"), ("HTTPDNSD_METRICS", "10.0.0.1:9153"),
        ])
    func notOne(_ variable: String, _ value: String) {
        let line = message(nil, environment: [variable: value])
        #expect(line.hasPrefix("environment: \(variable): unknown variable in version \(Version.current); "))
    }

    @Test("a misspelled key is answered with the nearest one")
    func misspelled() {
        #expect(
            message(nil, environment: ["HTTPDNSD_CONTROL_METRIC": "10.0.0.1:9153"])
                .hasSuffix("did you mean HTTPDNSD_CONTROL_METRICS?"))
        #expect(
            message(nil, environment: ["HTTPDNSD_HTTPDNS_DNSIPS": "10.0.0.1"])
                .hasSuffix("did you mean HTTPDNSD_HTTPDNS_DNSIP?"))
    }

    @Test("a key's own variable is a key's, whatever stands in it")
    func keys() {
        #expect(message(nil, environment: ["HTTPDNSD_CONTROL_METRICS": "tcp://10.0.0.1:53"]).contains("ADDRESS:PORT"))
    }
}
