import Base

/// A server's side of one HTTP/1.1 connection (RFC 9112), which answers each request before it takes the next request.
package final class HTTP1Server: HTTPServer {
    /// The longest head, in octets.
    private static let headLimit = HTTPResponseReader.headLimit
    /// The most octets that may follow a request before it is answered: the octets of one read.
    private static let restLimit = 64 * 1024

    private var reader: HTTPRequestReader
    private var output: [UInt8] = []
    /// Whether the connection goes on after the request that waits for its answer; nil if no request waits.
    private var keepsAlive: Bool?
    /// Whether the buffered octets are only a part of a request.
    private var isPart = true
    private var refusal: HTTPStatus?
    package private(set) var isFinished = false

    /// - Parameter bodyLimit: The longest body of a request, in octets.
    package init(bodyLimit: Int) {
        reader = HTTPRequestReader(
            headLimit: Self.headLimit, pipelineLimit: Self.headLimit + bodyLimit + Self.restLimit, bodyLimit: bodyLimit)
    }

    package var held: Int { reader.held }
    package var unsent: Int { output.count }
    package var mostAtOnce: Int { 1 }
    package var mustListen: Bool { false }
    package var hasRequest: Bool { keepsAlive == nil && !isFinished && (refusal != nil || !isPart) }

    package func receive(_ bytes: Span<UInt8>) {
        guard !isFinished, refusal == nil, !bytes.isEmpty else { return }
        isPart = false
        do throws(MalformedRequest) { try reader.receive(bytes) } catch { refusal = error.status }
    }

    package func nextRequest() -> HTTPServerRequest? {
        guard hasRequest else { return nil }
        do throws(MalformedRequest) {
            if let refusal { throw MalformedRequest(refusal) }
            guard let next = try reader.next() else {
                isPart = true
                if reader.takeExpectation() { output.append("HTTP/1.1 100 Continue\r\n\r\n") }
                return nil
            }
            (keepsAlive, isPart) = (next.keepAlive, reader.held == 0)
            return HTTPServerRequest(next)
        } catch {
            keepsAlive = false
            return HTTPServerRequest(refused: error.status)
        }
    }

    package func answer(_ stream: Int32, _ answer: HTTPAnswer) {
        guard let keepsAlive, !isFinished else { return }
        isFinished = !keepsAlive
        self.keepsAlive = nil
        output += "HTTP/1.1 \(answer.status.line)\r\n".utf8
        answer.addFields { name, value in
            output += "\(Self.capitalized(name.description)): ".utf8
            value(&output)
            output.append("\r\n")
        }
        if isFinished { output.append("Connection: close\r\n") }
        output += "Content-Length: \(answer.body.count)\r\n\r\n".utf8
        output += answer.body
    }

    /// The name of a field as RFC 9110 writes it: some clients (smartdns) know no other form.
    private static func capitalized(_ name: String) -> String {
        name.split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(separator: "-")
    }

    package func announceEnd() {}

    package func takeOutput() -> [UInt8] { exchange(&output, with: []) }
}
