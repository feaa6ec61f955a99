import Base

/// A server's side of one HTTP/2 connection (RFC 9113) as bytes in and bytes out, for clients on the same machine. It is
/// confined to its owner.
///
/// After each call, take the requests and the output, both until there is none left.
package final class HTTP2Server: HTTP2Owner {
    /// A whole request: those of its fields that a DNS server needs. A request that is too long is refused.
    package struct Request {
        /// The number by which it is answered.
        package let stream: Int32
        package internal(set) var method: [UInt8] = []
        /// With the query.
        package internal(set) var path: [UInt8] = []
        /// The value of Content-Type.
        package internal(set) var contentType: [UInt8] = []
        package internal(set) var body: [UInt8] = []
        /// The size of the head, as RFC 9113 §6.5.2 counts it.
        var headLength = 0
    }

    /// The most requests that are read or answered at a time; further ones are refused.
    package static let streamLimit = 100
    /// The most frames from one whole request to the next.
    package static let frameLimit = 1000
    /// Octets of output above which no more is produced until some were taken.
    private static let backlogLimit = 64 * 1024

    private let library: HTTP2Library
    /// The longest body of a request, in octets; a request with a longer one is refused.
    private let bodyLimit: Int
    /// By stream: requests that are not whole yet, and what is still to be sent of responses' bodies.
    private var incoming: [Int32: Request] = [:]
    private var outgoing: [Int32: ArraySlice<UInt8>] = [:]
    private var open: Set<Int32> = []
    private var complete: [Request] = []
    private var hasFailed = false

    /// - Throws: ``HTTP2Error/library(code:)`` when there is no memory.
    package init(bodyLimit: Int) throws(HTTP2Error) {
        library = try HTTP2Library(.server)
        self.bodyLimit = bodyLimit
        super.init(frameLimit: Self.frameLimit)
        try library.start(for: self)
    }

    /// Whether the connection is of no further use: either side has ended it, and nothing is left to be sent.
    package var isFinished: Bool { hasFailed || library.isFinished }

    /// Takes bytes from the client, in any pieces.
    package func receive(_ bytes: Span<UInt8>) {
        guard !hasFailed else { return }
        do throws(HTTP2Error) { try library.receive(bytes) } catch { hasFailed = true }
    }

    package func nextRequest() -> Request? { complete.isEmpty ? nil : complete.removeFirst() }

    /// Answers a request, once; ignored if the client has cancelled it.
    /// - Parameter status: 100...999.
    package func answer(_ stream: Int32, status: Int, contentType: String? = nil, body: [UInt8]) {
        guard !hasFailed, open.contains(stream), outgoing[stream] == nil else { return }
        outgoing[stream] = body[...]
        var fields = [(name: ":status", value: "\(status)")]
        if let contentType { fields.append((name: "content-type", value: contentType)) }
        library.respond(on: stream, HTTP2Head(fields), length: body.count)
    }

    /// The bytes to send to the client; empty if there are none.
    package func takeOutput() -> [UInt8] {
        var output: [UInt8] = []
        do throws(HTTP2Error) {
            while !hasFailed, output.count < Self.backlogLimit, try library.send(into: &output) {}
        } catch {
            hasFailed = true
        }
        return output
    }

    // MARK: What the library tells, while it reads or writes

    /// Trailers are ignored.
    override func beganHead(_ stream: Int32) {
        guard !open.contains(stream) else { return }
        guard open.count < Self.streamLimit else { return library.reset(stream, .refusedStream) }
        open.insert(stream)
        incoming[stream] = Request(stream: stream)
    }

    override func receive(_ stream: Int32, field name: Span<UInt8>, _ value: Span<UInt8>) {
        guard var request = incoming[stream] else { return }
        request.headLength += name.count + value.count + 32
        guard request.headLength <= HTTPResponseReader.headLimit else { return refuse(stream) }
        var octets: [UInt8] = []
        octets.append(value)
        if isEqual(name, name.indices, to: ":method") {
            request.method = octets
        } else if isEqual(name, name.indices, to: ":path") {
            request.path = octets
        } else if isEqual(name, name.indices, to: "content-type") {
            request.contentType = octets
        }
        incoming[stream] = request
    }

    override func receive(_ stream: Int32, body bytes: Span<UInt8>) {
        guard let length = incoming[stream]?.body.count else { return }
        guard length + bytes.count <= bodyLimit else { return refuse(stream) }
        incoming[stream]?.body.append(bytes)
    }

    override func completed(_ stream: Int32) {
        guard let request = incoming.removeValue(forKey: stream) else { return }
        frames = 0
        complete.append(request)
    }

    override func closed(_ stream: Int32, _ code: HTTP2Code) {
        open.remove(stream)
        incoming[stream] = nil
        outgoing[stream] = nil
    }

    override func nextPart(of stream: Int32, _ limit: Int) -> (ArraySlice<UInt8>, isLast: Bool) {
        guard let body = outgoing[stream] else { return ([], true) }
        let part = body.prefix(limit)
        outgoing[stream] = body.dropFirst(limit)
        return (part, part.count == body.count)
    }

    private func refuse(_ stream: Int32) {
        incoming[stream] = nil
        library.reset(stream)
    }
}
