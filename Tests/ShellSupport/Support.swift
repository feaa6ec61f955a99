package import Base
package import Foundation
package import Log
package import Logging
import Synchronization

/// The log's lines, each with its level.
package final class LogLines: Sendable {
    private let lines = Mutex<[(text: String, metadata: Logger.Metadata)]>([])

    package init() {}

    package var all: [String] { lines.withLock { $0.map(\.text) } }
    package var metadata: [Logger.Metadata] { lines.withLock { $0.map(\.metadata) } }

    package var report: Report { Report(log: Logger(label: "test") { _ in Handler(lines: self) }) }

    private struct Handler: LogHandler {
        let lines: LogLines
        var logLevel = Logger.Level.trace
        var metadata: Logger.Metadata = [:]
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) {
            lines.lines.withLock { $0.append(("\(event.level) \(event.message)", event.metadata ?? [:])) }
        }
    }
}

/// A signal between threads that fails the test instead of hanging it.
package struct Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    package init() {}
    package func open() { semaphore.signal() }
    /// False after ten seconds.
    package func wait() -> Bool { semaphore.wait(timeout: .now() + 10) == .success }
}

/// What came, in order, and how to wait for it.
package final class Arrivals<Item: Sendable>: Sendable {
    private let items = Mutex<[Item]>([])
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    package func append(_ item: Item) {
        items.withLock { $0.append(item) }
        semaphore.signal()
    }

    package var isEmpty: Bool { items.withLock { $0.isEmpty } }

    /// The next one that was not taken yet; nil after ten seconds.
    package func next() -> Item? {
        guard semaphore.wait(timeout: .now() + 10) == .success else { return nil }
        return items.withLock { $0.removeFirst() }
    }
}

/// Something that is confined to a loop and reached from a test by way of that loop alone.
package final class OnLoop<Value>: @unchecked Sendable {
    package var value: Value
    package init(_ value: Value) { self.value = value }
}

/// A server's socket, of which its thread and its owner each let go in their own time. It is closed when both have: closed
/// earlier, its number could be another test's when the thread waits on it next.
package final class ServerSocket: Sendable {
    private let raw: Int32
    package init(_ raw: Int32) { self.raw = raw }
    deinit { close(raw) }

    /// Whoever waits on it is woken, and nobody waits any more.
    package func end() { shutdown(raw, Int32(SHUT_RDWR)) }

    /// The next connection; nil at the end.
    package func accept() -> Int32? {
        let client = Foundation.accept(raw, nil, nil)
        return client < 0 ? nil : client
    }

    /// Answers each datagram that comes until the end; nil: not at all.
    package func answerAll(_ answer: (ArraySlice<UInt8>) -> [UInt8]?) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            var peer = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = withUnsafeMutablePointer(to: &peer) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(raw, &buffer, buffer.count, 0, $0, &length)
                }
            }
            guard count > 0 else { return }
            guard let reply = answer(buffer[..<count]) else { continue }
            withUnsafePointer(to: &peer) {
                _ = $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(raw, reply, reply.count, 0, $0, length)
                }
            }
        }
    }
}

/// A TCP socket that listens on a port of its own of 127.0.0.1.
package func listeningSocket() throws -> (descriptor: Int32, endpoint: Endpoint) {
    let listener = try loopbackSocket(SOCK_STREAM)
    guard listen(listener.descriptor, 16) == 0 else { throw POSIXError(.EADDRINUSE) }
    return listener
}

/// A socket bound to a port of its own of 127.0.0.1.
package func loopbackSocket(_ type: __socket_type) throws -> (descriptor: Int32, endpoint: Endpoint) {
    let descriptor = socket(AF_INET, Int32(type.rawValue), 0)
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &name) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, length) + getsockname(descriptor, $0, &length)
        }
    }
    guard status == 0 else { throw POSIXError(.EADDRINUSE) }
    return (descriptor, Endpoint(.v4(127, 0, 0, 1), port: UInt16(bigEndian: name.sin_port)))
}

/// Answers each connection's first bytes with the next of its responses, on threads of its own; nil: closes without a
/// word; the last one is repeated.
package final class ScriptedServer: Sendable {
    package let endpoint: Endpoint
    package let requests = Arrivals<String>()
    private let listener: ServerSocket

    package init(_ responses: [String?]) throws {
        let (descriptor, endpoint) = try listeningSocket()
        (listener, self.endpoint) = (ServerSocket(descriptor), endpoint)
        Thread.detachNewThread { [requests, listener] in
            var responses = responses
            while let client = listener.accept() {
                let response = responses.count > 1 ? responses.removeFirst() : responses[0]
                requests.append(Self.request(client))
                if let bytes = response.map({ Array($0.utf8) }) {
                    send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
                }
                close(client)
            }
        }
    }

    deinit { listener.end() }

    /// Head and body by Content-Length.
    private static func request(_ client: Int32) -> String {
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var text = ""
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            if let end = text.range(of: "\r\n\r\n") {
                let field = text[..<end.lowerBound].components(separatedBy: "Content-Length: ").dropFirst().first
                let length = field.flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
                if text[end.upperBound...].utf8.count >= length { return text }
            }
            let count = recv(client, &buffer, buffer.count, 0)
            guard count > 0 else { return text }
            text += String(decoding: buffer[..<count], as: UTF8.self)
        }
    }
}
