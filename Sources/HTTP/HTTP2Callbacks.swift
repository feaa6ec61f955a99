internal import Base
internal import CNGHTTP2

// The callbacks of nghttp2 while a session reads or writes. Each calls the session's owner, and lets the library go on.

extension HTTP2Library {
    static func install(in callbacks: OpaquePointer?) {
        unsafe nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks) { _, _, owner in
            unsafe owned(owner).beganFrame() ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, owner in
            guard let frame = unsafe frame else { return 0 }
            unsafe owned(owner).beganHead(frame.pointee.hd.stream_id)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameLength, value, valueLength, _, owner in
            guard let frame = unsafe frame else { return 0 }
            // Sound: the library gives the lengths of name and value, which stay valid during the call.
            let name = unsafe UnsafeBufferPointer(start: name, count: nameLength)
            let value = unsafe UnsafeBufferPointer(start: value, count: valueLength)
            return unsafe owned(owner).receive(frame.pointee.hd.stream_id, field: name.span, value.span)
                ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, bytes, count, owner in
            // Sound: this many octets are valid during the call.
            let bytes = unsafe UnsafeBufferPointer(start: bytes, count: count)
            unsafe owned(owner).receive(stream, body: bytes.span)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, owner in
            guard let frame = unsafe frame?.pointee else { return 0 }
            unsafe received(frame, owned(owner))
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, owner in
            unsafe owned(owner).closed(stream, HTTP2Code(rawValue: code))
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, owner in
            guard let frame = unsafe frame?.pointee, unsafe frame.hd.type == NGHTTP2_GOAWAY.rawValue else { return 0 }
            unsafe owned(owner).terminated(.violation(HTTP2Code(rawValue: frame.goaway.error_code)))
            return 0
        }
        unsafe nghttp2_session_callbacks_set_error_callback2(callbacks) { _, code, _, _, owner in
            if code == NGHTTP2_ERR_SETTINGS_EXPECTED.rawValue { unsafe owned(owner).terminated(.notHTTP2) }
            return 0
        }
    }
}

/// Reports a whole frame to the owner. The frame's type selects the member of the union.
private func received(_ frame: nghttp2_frame, _ owner: HTTP2Owner) {
    let header = unsafe frame.hd
    switch UInt32(header.type) {
    case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
        if header.flags & flag(NGHTTP2_FLAG_END_STREAM) != 0 { owner.completed(header.stream_id) }
    case NGHTTP2_RST_STREAM.rawValue:
        unsafe owner.wasReset(header.stream_id, HTTP2Code(rawValue: frame.rst_stream.error_code))
    case NGHTTP2_GOAWAY.rawValue:
        unsafe owner.wentAway(HTTP2Code(rawValue: frame.goaway.error_code))
    default:
        break
    }
}

/// Passes the next part of a body to the library.
func readBody(
    _: OpaquePointer?, _ stream: Int32, _ bytes: UnsafeMutablePointer<UInt8>?, _ limit: Int,
    _ flags: UnsafeMutablePointer<UInt32>?, _: UnsafeMutablePointer<nghttp2_data_source>?,
    _ owner: UnsafeMutableRawPointer?
) -> Int {
    let (part, isLast) = unsafe owned(owner).nextPart(of: stream, limit)
    unsafe part.withUnsafeBufferPointer { part in
        // Sound: there is room for as many octets as the limit says.
        if let start = part.baseAddress { unsafe bytes?.update(from: start, count: part.count) }
    }
    if isLast { unsafe flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return part.count
}

func flag(_ flag: nghttp2_flag) -> UInt8 { UInt8(flag.rawValue) }

func flag(_ flag: nghttp2_nv_flag) -> UInt8 { UInt8(flag.rawValue) }

/// The session's owner.
private func owned(_ owner: UnsafeMutableRawPointer?) -> HTTP2Owner {
    // Sound: an owner attaches itself before it makes any call that calls back.
    guard let owner = unsafe owner else {
        // There is no owner to call, and an error cannot be thrown through C.
        fatalError("an HTTP/2 session without owner")
    }
    return unsafe Unmanaged<HTTP2Owner>.fromOpaque(owner).takeUnretainedValue()
}
