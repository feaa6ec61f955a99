/// The base of client and server session. Its methods are nghttp2's callbacks, called while the session calls nghttp2.
/// A session overrides the methods that it needs; the other methods do nothing.
package class HTTP2Owner {
    private let frameLimit: Int
    /// Frames since the last whole response that a client has received, or that a server has sent with a body.
    var frames = 0

    /// - Parameter frameLimit: The most frames between two such responses.
    init(frameLimit: Int) { self.frameLimit = frameLimit }

    /// - Returns: Whether to go on reading.
    final func beganFrame() -> Bool {
        frames += 1
        return frames <= frameLimit
    }

    /// The fields of a head follow, or the trailers after a body.
    func beganHead(_ stream: Int32) {}

    /// - Returns: Whether to go on with the head. If not, its stream is reset, and the rest of the head costs next to
    ///   nothing: otherwise each octet of the rest could refer to a field of some kilobytes, which would be examined
    ///   (RFC 7541 §7.3).
    func receive(_ stream: Int32, field name: Span<UInt8>, _ value: Span<UInt8>) -> Bool { true }

    func receive(_ stream: Int32, body bytes: Span<UInt8>) {}

    /// A whole request or response has come, which the library found well-formed.
    func completed(_ stream: Int32) {}

    /// The peer has reset a stream.
    func wasReset(_ stream: Int32, _ code: HTTP2Code) {}

    /// The library has closed a stream: both sides have finished the stream, or one side has ended it.
    func closed(_ stream: Int32, _ code: HTTP2Code) {}

    /// The peer has sent GOAWAY.
    func wentAway(_ code: HTTP2Code) {}

    /// The library has sent the peer a GOAWAY with the reason.
    func terminated(_ error: HTTP2Error) {}

    /// The next octets of the body that is sent on a stream, at most `limit`, and whether they are the last.
    func nextPart(of stream: Int32, _ limit: Int) -> (ArraySlice<UInt8>, isLast: Bool) { ([], true) }
}
