import Dispatch
import Foundation
import HTTP
import Testing

/// A session against Python's h2, over pipes.
@Suite(.timeLimit(.minutes(1))) struct HTTP2InteroperabilityTests {
    @Test func requestsArriveAsTheyAre() throws {
        let peer = try Peer()
        var request = HTTP2Request(
            .post, authority: "dns.example:8443", path: "/echo", fields: [("accept", "application/dns-message")])!
        request.body = (0..<300).map { UInt8($0 & 0xFF) }
        try peer.ask([request, HTTP2Request(.get, authority: "dns.example", path: "/echo")!])
        let head =
            ":method: POST\n:scheme: https\n:authority: dns.example:8443\n:path: /echo\n"
            + "accept: application/dns-message\ncontent-length: 300\n\n"
        #expect(peer.responses[0]?.body == Array(head.utf8) + request.body)
        #expect(peer.responses[0]?.isDNSMessage == false)
        #expect(peer.responses[0]?.age == 1)
        let get = ":method: GET\n:scheme: https\n:authority: dns.example\n:path: /echo\n\n"
        #expect(peer.responses[1]?.body == Array(get.utf8))
    }

    @Test("rounds of a hundred requests at once, with bodies up to the limit both ways")
    func manyAtOnce() throws {
        let peer = try Peer()
        for _ in 0..<3 {
            let sizes = (0..<100).map { $0 == 0 ? 65_535 : $0 * 77 }
            let first = peer.next
            try peer.ask(
                sizes.map {
                    var request = HTTP2Request(.post, authority: "dns.example", path: "/size/\($0)")!
                    request.body = [UInt8](repeating: 1, count: $0 / 3)
                    return request
                })
            for (offset, size) in sizes.enumerated() {
                let response = peer.responses[first + UInt64(offset)]
                #expect(response?.status == 200)
                #expect(response?.body == [UInt8](repeating: UInt8(ascii: "x"), count: size))
            }
        }
    }

    @Test func refusalAndFarewell() throws {
        let peer = try Peer()
        try peer.ask([HTTP2Request(.get, authority: "dns.example", path: "/refuse")!])
        #expect(peer.others == [.failed(0, .refused)])
        try peer.ask([HTTP2Request(.get, authority: "dns.example", path: "/away")!])
        try peer.wait { peer.session.isFinished }
        #expect(peer.responses[1]?.body == Array("farewell".utf8))
        #expect(peer.others == [.failed(0, .refused), .goingAway(.noError)])
    }
}

/// The process, and an owner of a session with it.
private final class Peer {
    static let python = URL(filePath: "/usr/bin/python3")
    let session: HTTP2Session
    private(set) var responses: [UInt64: HTTPResponse] = [:]
    private(set) var others: [HTTP2Event] = []
    private(set) var next: UInt64 = 0
    private let process = Process()
    private let writer = DispatchQueue(label: "peer")
    private let (input, output) = (Pipe(), Pipe())

    init() throws {
        session = try HTTP2Session(bodyLimit: 65_535)
        process.executableURL = Self.python
        // The peer may end while octets are on their way to it.
        signal(SIGPIPE, SIG_IGN)
        process.arguments = [URL(filePath: #filePath).deletingLastPathComponent().appending(path: "peer.py").path]
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
    }

    deinit {
        // Started from a thread that blocks SIGTERM, it inherits that.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Until each is answered or failed.
    func ask(_ requests: [HTTP2Request]) throws {
        let before = responses.count + others.count
        for request in requests {
            let isOpen = session.open(request, as: next)
            #expect(isOpen)
            next += 1
            flush()
        }
        try wait { responses.count + others.count >= before + requests.count }
    }

    func wait(until isDone: () -> Bool) throws {
        while true {
            flush()
            while let event = session.nextEvent() {
                if case .answered(let id, let response) = event {
                    responses[id] = response
                } else {
                    others.append(event)
                }
            }
            if isDone() { return }
            let received = [UInt8](output.fileHandleForReading.availableData)
            try #require(!received.isEmpty)
            session.receive(received.span)
        }
    }

    private func flush() {
        var bytes: [UInt8] = []
        while case let part = session.takeOutput(), !part.isEmpty { bytes += part }
        // Aside: a peer that writes does not read meanwhile.
        writer.async { [bytes, handle = input.fileHandleForWriting] in try? handle.write(contentsOf: Data(bytes)) }
    }
}
