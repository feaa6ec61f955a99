internal import Base
internal import CNGHTTP2

// What nghttp2 calls back while a server's session reads or writes.

extension HTTP2Library {
    static func installServer(in callbacks: OpaquePointer?) {
        unsafe nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks) { _, _, owner in
            unsafe owned(owner).beganFrame() ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, owner in
            guard let frame = unsafe frame else { return 0 }
            unsafe owned(owner).began(frame.pointee.hd.stream_id)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameLength, value, valueLength, _, owner in
            guard let frame = unsafe frame else { return 0 }
            // Sound: the library says how long name and value are; they stay during the call.
            let name = unsafe UnsafeBufferPointer(start: name, count: nameLength)
            let value = unsafe UnsafeBufferPointer(start: value, count: valueLength)
            unsafe owned(owner).receive(frame.pointee.hd.stream_id, field: name.span, value.span)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, bytes, count, owner in
            // Sound: so many octets are there during the call.
            let bytes = unsafe UnsafeBufferPointer(start: bytes, count: count)
            unsafe owned(owner).receive(stream, body: bytes.span)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, owner in
            guard let header = unsafe frame?.pointee.hd else { return 0 }
            let isOfRequest = header.type == NGHTTP2_HEADERS.rawValue || header.type == NGHTTP2_DATA.rawValue
            if isOfRequest, header.flags & flag(NGHTTP2_FLAG_END_STREAM) != 0 {
                unsafe owned(owner).completed(header.stream_id)
            }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, owner in
            unsafe owned(owner).closed(stream)
            return 0
        }
    }
}

/// Writes the next part of a response's body.
func readResponseBody(
    _: OpaquePointer?, _ stream: Int32, _ bytes: UnsafeMutablePointer<UInt8>?, _ limit: Int,
    _ flags: UnsafeMutablePointer<UInt32>?, _: UnsafeMutablePointer<nghttp2_data_source>?,
    _ owner: UnsafeMutableRawPointer?
) -> Int {
    let (part, isLast) = unsafe owned(owner).nextPart(of: stream, limit)
    unsafe part.withUnsafeBufferPointer { part in
        // Sound: there is room for as many as the limit says.
        if let start = part.baseAddress { unsafe bytes?.update(from: start, count: part.count) }
    }
    if isLast { unsafe flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return part.count
}

private func owned(_ owner: UnsafeMutableRawPointer?) -> HTTP2Server { unsafe HTTP2Library.owner(owner) }
