import Base
import Testing

@Suite struct ServerTests {
    private let address = IPAddress.v4(192, 0, 2, 1)

    @Test func isCalledAsItIsWrittenWithoutWhatStandsBehindTheHash() {
        let v6 = Server.Host.address(IPAddress(v6: 0x2001_0DB8 << 32, 1), nil)
        #expect("\(Server(Endpoint(address, port: 53)))" == "192.0.2.1:53")
        #expect("\(Server(Endpoint(address, port: 443), .account))" == "192.0.2.1:443")
        #expect("\(Server(Endpoint(address, port: 53), .tcp))" == "tcp://192.0.2.1")
        #expect(
            "\(Server(.tls, .address(address, nil), port: 853, certificateName: "dns.example"))" == "tls://192.0.2.1")
        #expect("\(Server(.tls, v6, port: 8853))" == "tls://[2001:db8::1]:8853")
        #expect("\(Server(.tls, v6, port: 853))" == "tls://[2001:db8::1]")
        let get = Server.Kind.https(path: "/dns-query", usesGET: true)
        #expect(
            "\(Server(get, .name("dns.example"), port: 443, addresses: [address]))"
                == "https://dns.example/dns-query{?dns}")
        #expect("\(Server(get, .name("dns.example"), port: 8443))" == "https://dns.example:8443/dns-query{?dns}")
    }

    @Test func isDialledAtItsAddress() {
        #expect(Server(Endpoint(address, port: 53)).endpoints == [Endpoint(address, port: 53)])
        let named = Server(.tls, .name("dns.example"), port: 853, addresses: [address, .v4(192, 0, 2, 2)])
        #expect(named.endpoints == [Endpoint(address, port: 853), Endpoint(.v4(192, 0, 2, 2), port: 853)])
        #expect(Server(.tls, .name("dns.example"), port: 853).endpoints.isEmpty)
    }

    @Test func isAnotherIfItIsAskedInAnotherWay() {
        let servers = [
            Server(Endpoint(address, port: 853)), Server(Endpoint(address, port: 853), .tcp),
            Server(Endpoint(address, port: 853), .tls), Server(Endpoint(address, port: 854), .tls),
            Server(.tls, .address(address, nil), port: 853, certificateName: "dns.example"),
            Server(.tls, .address(address, nil), port: 853, hashes: [[1]]),
            Server(.tls, .name("dns.example"), port: 853),
            Server(.tls, .name("dns.example"), port: 853, addresses: [address]),
            Server(.https(path: "/", usesGET: false), .name("dns.example"), port: 853),
            Server(.https(path: "/", usesGET: true), .name("dns.example"), port: 853),
        ]
        #expect(Set(servers).count == servers.count)
        #expect(Server(Endpoint(address, port: 853)) == servers[0])
    }
}
