import Base

/// One request on its stream, and the part of its response that has come.
struct HTTP2Exchange {
    /// The ID that the session's owner gave the request.
    let id: UInt64
    let stream: Int32
    private let request: [UInt8]
    /// Octets of the request's body that were sent.
    private var sent = 0
    private let bodyLimit: Int
    /// Whether no client waits for its response any more, which still ends its stream.
    var isAbandoned = false

    /// The status of the last head; 0 if no head came; 1xx if only an interim response has come.
    private var status = 0
    private var interims = 0
    /// Whether the next fields are trailers, which are ignored.
    private var isTrailer = false
    private var fields = ResponseFields()
    private var body: [UInt8] = []
    /// The number of fields in the current head or trailers, and their size by RFC 9113 §6.5.2.
    private var fieldCount = 0
    private var headLength = 0

    init(id: UInt64, stream: Int32, request: [UInt8], bodyLimit: Int) {
        (self.id, self.stream, self.request, self.bodyLimit) = (id, stream, request, bodyLimit)
    }

    var isSent: Bool { sent == request.count }

    /// The next part of the request's body to send, at most `limit` octets.
    mutating func nextPart(_ limit: Int) -> ArraySlice<UInt8> {
        let part = request[sent..<min(sent + limit, request.count)]
        sent = part.endIndex
        return part
    }

    /// The whole response; nil: its head has not come.
    var response: HTTPResponse? {
        status >= 200 ? HTTPResponse(status: status, fields: fields, body: body) : nil
    }

    /// Begins a head, or the trailers if the body has begun already.
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
            // No other field may precede the status (RFC 9113 §8.3).
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
