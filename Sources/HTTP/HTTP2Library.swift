internal import Base
internal import CNGHTTP2

/// Owns an nghttp2 session, which implements the rules of HTTP/2 and HPACK. Only this type and its callbacks use that
/// library.
@safe struct HTTP2Library: ~Copyable {
    /// The most acknowledgements of PING and SETTINGS that may wait for a peer that does not read.
    static let acknowledgementLimit = 1000
    /// The octets that a peer may send on a stream, and on all streams together, before it learns that they were read.
    private static let streamWindow: UInt32 = 128 * 1024
    private static let connectionWindow: Int32 = 1024 * 1024
    /// Octets of fields that a server, and a client, may store here for their next heads: the few fields that requests
    /// for DNS repeat.
    private static let (serversTable, clientsTable): (UInt32, UInt32) = (4096, 512)
    /// The initial room for output, in octets: enough for a request.
    private static let usualOutput = 512

    private let session: OpaquePointer
    private let side: Side

    /// The side of a connection.
    enum Side {
        case client, server
    }

    init(_ side: Side) throws(HTTP2Error) {
        self.side = side
        unsafe session = try Self.newSession(side)
    }

    deinit { unsafe nghttp2_session_del(session) }

    private static func newSession(_ side: Side) throws(HTTP2Error) -> OpaquePointer {
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        var session: OpaquePointer?
        defer {
            unsafe nghttp2_session_callbacks_del(callbacks)
            unsafe nghttp2_option_del(options)
        }
        try check(unsafe nghttp2_session_callbacks_new(&callbacks))
        try check(unsafe nghttp2_option_new(&options))
        unsafe install(in: callbacks)
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        unsafe nghttp2_option_set_max_reserved_remote_streams(options, 0)
        unsafe nghttp2_option_set_max_outbound_ack(options, acknowledgementLimit)
        unsafe nghttp2_option_set_peer_max_concurrent_streams(options, UInt32(HTTP2Session.assumedLimit))
        switch side {
        case .client: try check(unsafe nghttp2_session_client_new2(&session, callbacks, nil, options))
        case .server: try check(unsafe nghttp2_session_server_new2(&session, callbacks, nil, options))
        }
        guard let session = unsafe session else { throw .library(code: 0) }
        return unsafe session
    }

    /// Queues the first flight.
    /// - Parameter owner: The session that gets the callbacks. The owner must live as long as this value.
    func start(for owner: HTTP2Owner) throws(HTTP2Error) {
        // Sound: callbacks run only inside calls that the owner makes, so the unretained pointer is alive then.
        unsafe nghttp2_session_set_user_data(session, Unmanaged.passUnretained(owner).toOpaque())
        let (table, own): (UInt32, (nghttp2_settings_id, UInt32)) =
            switch side {
            case .client: (Self.serversTable, (NGHTTP2_SETTINGS_ENABLE_PUSH, 0))
            case .server:
                (Self.clientsTable, (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, UInt32(HTTP2Server.streamLimit)))
            }
        let settings = [
            (NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, table), own,
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, Self.streamWindow),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(HTTPResponseReader.headLimit)),
            (NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
        ].map { nghttp2_settings_entry(settings_id: Int32($0.rawValue), value: $1) }
        try Self.check(unsafe nghttp2_submit_settings(session, flag(NGHTTP2_FLAG_NONE), settings, settings.count))
        try Self.check(
            unsafe nghttp2_session_set_local_window_size(session, flag(NGHTTP2_FLAG_NONE), 0, Self.connectionWindow))
    }

    // MARK: Calls of the owner

    /// Whether streams can still be opened on the connection, without regard to the server's limit of streams.
    var takesRequests: Bool { unsafe nghttp2_session_check_request_allowed(session) != 0 }

    /// The number of streams that the server allows at once.
    var streamLimit: Int {
        Int(unsafe nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    /// Whether the library neither wants to read nor has bytes to send.
    var isFinished: Bool {
        unsafe nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    /// - Returns: The request's stream; nil if no stream can be opened. A callback fetches the body later.
    func submit(_ request: HTTP2Request) -> Int32? {
        let hasBody = !request.body.isEmpty
        var head = request.head
        if hasBody { head.add("content-length") { $0.appendDecimal(UInt64(request.body.count)) } }
        var body = unsafe nghttp2_data_provider()
        unsafe body.read_callback = readBody
        let stream = unsafe Self.withFields(head) { fields, count in
            unsafe hasBody
                ? nghttp2_submit_request(session, nil, fields, count, &body, nil)
                : nghttp2_submit_request(session, nil, fields, count, nil, nil)
        }
        return stream > 0 ? stream : nil
    }

    /// Answers the request on a stream.
    /// - Parameters:
    ///   - head: All fields, including Content-Length.
    ///   - hasBody: Whether the answer has a body, which a callback fetches later.
    func respond(on stream: Int32, _ head: HTTP2Head, hasBody: Bool) {
        var body = unsafe nghttp2_data_provider()
        unsafe body.read_callback = readBody
        // The call fails without memory, which the next call reports, or if the client is gone.
        _ = unsafe Self.withFields(head) { fields, count in
            unsafe hasBody
                ? nghttp2_submit_response(session, stream, fields, count, &body)
                : nghttp2_submit_response(session, stream, fields, count, nil)
        }
    }

    /// Converts a head to the library's form.
    @inline(__always)
    private static func withFields(_ head: HTTP2Head, _ take: (UnsafePointer<nghttp2_nv>?, Int) -> Int32) -> Int32 {
        // Sound: the library copies the fields during the call, and names are within the memory that they point to.
        unsafe head.text.withUnsafeBufferPointer { text in
            unsafe withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: head.lengths.count) { fields in
                var next = unsafe UnsafeMutablePointer(mutating: text.baseAddress)
                for (index, (name, value)) in head.lengths.enumerated() {
                    let start = unsafe next
                    unsafe next = start.map { unsafe $0 + name + value }
                    unsafe fields.initializeElement(
                        at: index,
                        to: nghttp2_nv(
                            name: start, value: start.map { unsafe $0 + name }, namelen: name, valuelen: value,
                            flags: flag(NGHTTP2_NV_FLAG_NONE)))
                }
                return unsafe take(fields.baseAddress, head.lengths.count)
            }
        }
    }

    /// Resets a stream, so that the peer stops sending on it.
    func reset(_ stream: Int32, _ code: HTTP2Code = .cancel) {
        // The call fails only without memory, which the next call reports.
        _ = unsafe nghttp2_submit_rst_stream(session, flag(NGHTTP2_FLAG_NONE), stream, code.rawValue)
    }

    /// Announces to the peer that no more of its streams are taken. Streams that have come go on (RFC 9113 §6.8).
    func goAway() {
        // The call fails only without memory, and then nothing is sent.
        _ = unsafe nghttp2_submit_goaway(
            session, flag(NGHTTP2_FLAG_NONE), nghttp2_session_get_last_proc_stream_id(session),
            HTTP2Code.noError.rawValue, nil, 0)
    }

    /// Ends the connection. The peer gets the reason, and nothing more is read.
    func terminate(_ code: HTTP2Code) {
        // The call fails only without memory, and then nothing is sent.
        _ = unsafe nghttp2_session_terminate_session(session, code.rawValue)
    }

    // MARK: Bytes

    func receive(_ bytes: Span<UInt8>) throws(HTTP2Error) {
        let count = unsafe bytes.withUnsafeBufferPointer {
            unsafe nghttp2_session_mem_recv(session, $0.baseAddress, $0.count)
        }
        // nghttp2 takes all bytes or fails.
        try Self.check(Int32(clamping: min(count, 0)))
    }

    /// Appends the next frame for the peer, or a part of a frame; false: there is no frame.
    func send(into output: inout [UInt8]) throws(HTTP2Error) -> Bool {
        var piece: UnsafePointer<UInt8>?
        let count = unsafe nghttp2_session_mem_send(session, &piece)
        try Self.check(Int32(clamping: min(count, 0)))
        if output.capacity == 0, count > 0 { output.reserveCapacity(Self.usualOutput) }
        // Sound: this many octets stay valid until the next call.
        unsafe output.append(contentsOf: UnsafeBufferPointer(start: piece, count: count))
        return count > 0
    }

    private static func check(_ code: Int32) throws(HTTP2Error) {
        switch code {
        case 0...: return
        // The only callback that fails is the callback that counts frames.
        case NGHTTP2_ERR_FLOODED.rawValue, NGHTTP2_ERR_TOO_MANY_CONTINUATIONS.rawValue,
            NGHTTP2_ERR_CALLBACK_FAILURE.rawValue:
            throw .flood
        default: throw .library(code: Int(code))
        }
    }
}
