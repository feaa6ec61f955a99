import Base

/// A request on its stream, and what has come of its response.
struct HTTP2Exchange {
    /// The owner's name for it, and the connection's.
    let id: UInt64
    let stream: Int32
    private let request: [UInt8]
    /// Octets of the request's body that have gone out.
    private var sent = 0
    private let bodyLimit: Int

    /// Of the last head that began; 0 before it has come, 1xx while it is an interim response's.
    private var status = 0
    private var interims = 0
    /// Whether what comes is a trailer's; nothing in there is looked at.
    private var isTrailer = false
    private var fields = ResponseFields()
    private var body: [UInt8] = []
    /// Of the head or the trailers that come: how many fields, and their size as RFC 9113 §6.5.2 counts it.
    private var fieldCount = 0
    private var headLength = 0

    init(id: UInt64, stream: Int32, request: [UInt8], bodyLimit: Int) {
        (self.id, self.stream, self.request, self.bodyLimit) = (id, stream, request, bodyLimit)
    }

    var isSent: Bool { sent == request.count }

    /// The next part of the request's body, at most so long.
    mutating func send(_ limit: Int, _ write: (Span<UInt8>) -> Void) {
        let end = min(sent + limit, request.count)
        write(request.span.extracting(sent..<end))
        sent = end
    }

    /// The response as a whole; nil if its head has not come.
    var response: HTTPResponse? {
        status >= 200 ? HTTPResponse(status: status, fields: fields, body: body) : nil
    }

    /// A head begins, or behind the body the trailers.
    mutating func beginHead() throws(HTTPError) {
        (fieldCount, headLength) = (0, 0)
        isTrailer = status >= 200
        guard status > 0, !isTrailer else { return }
        interims += 1
        guard interims <= HTTPResponseReader.interimLimit else { throw .interim }
        status = 0
        fields = ResponseFields()
    }

    mutating func receive(field name: Span<UInt8>, _ value: Span<UInt8>) throws(HTTPError) {
        fieldCount += 1
        headLength += name.count + value.count + 32
        guard fieldCount <= HTTP2Session.fieldLimit, headLength <= HTTPResponseReader.headLimit else {
            throw .headTooLong
        }
        if status == 0 {
            // Nothing stands before it (RFC 9113 §8.3).
            guard isEqual(name, name.indices, to: ":status"),
                let status = decimal(value, value.indices, maximum: 999), status >= 100
            else { throw .badHeader }
            self.status = status
        } else if !isTrailer {
            try fields.read(name, value)
            if let length = fields.length, length > bodyLimit { throw .bodyTooLong }
        }
    }

    mutating func receive(body bytes: Span<UInt8>) throws(HTTPError) {
        guard body.count + bytes.count <= bodyLimit else { throw .bodyTooLong }
        if body.isEmpty { body.reserveCapacity(max(fields.length ?? 0, bytes.count)) }
        body.append(bytes)
    }
}
