import Testing

@testable import Control

@Suite struct RequestTargetTests {
    @Test(
        "path and parameters",
        arguments: [
            ("/", "/", []), ("/flush?", "/flush", []), ("/flush?name=a.example", "/flush", ["a.example"]),
            ("/%66lush?name=a%2Eb&name=&other=1&name", "/flush", ["a.b", "", ""]),
            ("/a?name=%zz%4&name=%", "/a", ["%zz%4", "%"]), ("/a?name=%+F&name=%-1", "/a", ["%+F", "%-1"]),
            ("?name=1?2=3", "", ["1?2=3"]), ("/\u{FF}", "/\u{FF}", []),
        ])
    func parse(_ target: String, _ path: String, _ names: [String]) {
        let parsed = RequestTarget(Array(target.utf8))
        #expect(parsed.path == path)
        #expect(parsed.values("name") == names)
    }

    @Test("any text comes through a target")
    func encoding() {
        for text in ["www.example.com", "a\\.b&name=c", "ü %00\u{0}", "_dns.x-1"] {
            let target = "/flush?name=" + RequestTarget.encoded(text)
            #expect(target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
            #expect(RequestTarget(Array(target.utf8)).values("name") == [text])
        }
    }
}
