import Base
import Testing

@testable import Daemon

@Suite struct ProxyEnvironmentTests {
    private func variable(
        _ environment: [String: String], _ server: String = "119.29.29.99:443", isSecure: Bool = true,
        serverName: String = ""
    ) -> String? {
        ProxyEnvironment(environment).variable(for: Endpoint(server)!, isSecure: isSecure, serverName: serverName)
    }

    @Test func eachSchemeHasItsVariableInBothCases() {
        let proxy = "http://user:password@192.0.2.1:3128"
        for (name, http, https) in [
            ("http_proxy", true, false), ("HTTP_PROXY", true, false), ("https_proxy", false, true),
            ("HTTPS_PROXY", false, true), ("all_proxy", true, true), ("ALL_PROXY", true, true),
            ("Http_Proxy", false, false),
            ("ftp_proxy", false, false),
        ] {
            #expect(variable([name: proxy], isSecure: false) == (http ? name : nil))
            #expect(variable([name: proxy], isSecure: true) == (https ? name : nil))
            #expect(variable([name: ""], isSecure: https) == nil)
        }
        #expect(variable([:]) == nil)
    }

    @Test func lowerCaseWinsAndTheSchemesOwnBeforeAll() {
        #expect(variable(["https_proxy": "a", "HTTPS_PROXY": "b", "all_proxy": "c"]) == "https_proxy")
        #expect(variable(["https_proxy": "", "HTTPS_PROXY": "b", "all_proxy": "c"]) == "HTTPS_PROXY")
        #expect(variable(["ALL_PROXY": "b", "all_proxy": "c"]) == "all_proxy")
        // The lower case's list alone counts.
        #expect(variable(["https_proxy": "a", "no_proxy": "192.0.2.1", "NO_PROXY": "*"]) == "https_proxy")
        #expect(variable(["https_proxy": "a", "no_proxy": "", "NO_PROXY": "*"]) == nil)
    }

    @Test(arguments: [
        ("*", true), ("a.example,*", true), ("119.29.29.99", true), ("119.29.29.98", false), ("119.29.29.9", false),
        ("192.0.2.1, 119.29.29.99", true), ("192.0.2.1\t119.29.29.99", true), (",,119.29.29.99,,", true),
        ("119.29.29.0/24", true), ("119.29.29.7/24", true), ("119.0.0.0/8", true), ("120.0.0.0/8", false),
        ("119.29.29.98/31", true), ("119.29.29.96/32", false), ("119.29.29.99/32", true), ("0.0.0.0/0", true),
        ("119.29.29.99/33", false), ("119.29.29.99/-1", false), ("119.29.29.99/", false), ("/8", false),
        ("::/0", false),
        ("119.29.29.99:443", true), ("119.29.29.99:80", false), ("119.29.29.99:", false), ("119.29.29.99:x", false),
        ("dns.example.com", true), ("example.com", true), (".example.com", true), ("EXAMPLE.com.", true),
        ("ample.com", false), ("a.dns.example.com", false), ("example.com:443", true), ("example.com:80", false),
        ("com", true), (".", false), ("", false), (" , ", false), (":", false), ("[", false), ("[]", false),
    ])
    func exceptions(list: String, expected: Bool) {
        let environment = ["https_proxy": "http://192.0.2.1:3128", "no_proxy": list]
        #expect((variable(environment, serverName: "DNS.example.com.") == nil) == expected)
    }

    @Test(arguments: [
        ("2001:db8::1", true), ("2001:DB8:0::1", true), ("[2001:db8::1]", true), ("[2001:db8::1]:443", true),
        ("[2001:db8::1]:80", false), ("2001:db8::2", false), ("2001:db8::/32", true), ("2001:db9::/32", false),
        ("2001:db8::/127", true), ("2001:db8::2/127", false), ("2001:db8::1/128", true), ("2001:db8::1/129", false),
        ("::/0", true), ("0.0.0.0/0", false), ("2001:db8:0:0:8000::/65", false),
    ])
    func exceptionsForIPv6(list: String, expected: Bool) {
        let environment = ["https_proxy": "http://192.0.2.1:3128", "no_proxy": list]
        #expect((variable(environment, "[2001:db8::1]:443") == nil) == expected)
    }

    /// As curl has it; an environment with a proxy usually names these itself.
    @Test func loopbackIsNoExceptionByItself() {
        for server in ["127.0.0.3:80", "[::1]:80"] {
            #expect(variable(["all_proxy": "p"], server, isSecure: false) == "all_proxy")
            #expect(variable(["all_proxy": "p", "no_proxy": "127.0.0.0/8,::1"], server, isSecure: false) == nil)
        }
    }

    @Test func theProxysPasswordIsNotKept() {
        var dumped = ""
        dump(ProxyEnvironment(["https_proxy": "http://user:password@192.0.2.1"]), to: &dumped)
        #expect(!dumped.contains("password"))
    }
}
