package import Base
internal import Foundation
package import Log
import Synchronization

/// The log's lines, each with its level.
package final class LogLines: Sendable {
    private let lines = Mutex<[LogText]>([])

    package init() {}

    package var all: [String] { lines.withLock { $0.map { "\($0.level) \($0.text)" } } }
    package var fields: [[String: String]] {
        lines.withLock { $0.map { Dictionary(uniqueKeysWithValues: $0.fields.map { ($0.name, $0.value) }) } }
    }

    package var report: Report {
        Report(log: Logger(.debug) { [self] line in lines.withLock { $0.append(line) } })
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
