internal import CLinux
internal import Glibc

/// The format of rtnetlink(7) messages.
enum Netlink {
    /// `struct nlmsghdr`.
    private static let headerSize = 16
    /// NLA_TYPE_MASK; the two bits above the mask are flags.
    private static let typeMask = 0x3FFF
    /// The longest datagram in bytes; the kernel makes none larger than 32 KiB (NLMSG_GOODSIZE, and the size of a
    /// dump's parts).
    static let messageLimit = 32 * 1024

    /// One message with its header.
    static func message(type: Int, flags: Int32, _ body: [UInt8]) -> [UInt8] {
        var header = nlmsghdr()
        header.nlmsg_len = UInt32(headerSize + body.count)
        header.nlmsg_type = UInt16(type)
        header.nlmsg_flags = UInt16(flags)
        // Sound: the array copies the bytes of a struct of integers without gaps.
        return unsafe withUnsafeBytes(of: header) { unsafe Array($0) } + body
    }

    /// A request for all objects of a type: its body is a `struct rtgenmsg` for any family.
    static func dumpRequest(type: Int) -> [UInt8] {
        message(type: type, flags: NLM_F_REQUEST | NLM_F_DUMP, [UInt8(AF_UNSPEC), 0, 0, 0])
    }

    /// Calls the closure with each message of a datagram.
    /// - Returns: false if the kernel cut a message that did not fit.
    static func forEachMessage(
        _ datagram: Span<UInt8>, _ take: (_ type: Int, _ flags: Int32, _ body: Span<UInt8>) -> Void
    ) -> Bool {
        var offset = 0
        while offset < datagram.count {
            guard offset + headerSize <= datagram.count else { return false }
            let length = Int(datagram.word(offset))
            guard length >= headerSize, length <= datagram.count - offset else { return false }
            take(
                Int(datagram.half(offset + 4)), Int32(datagram.half(offset + 6)),
                datagram.extracting(offset + headerSize..<offset + length))
            offset += (length + 3) & ~3
        }
        return true
    }

    /// Calls the closure with each whole attribute (`struct rtattr`).
    static func forEachAttribute(
        _ body: Span<UInt8>, from start: Int, _ take: (_ type: Int, _ value: Span<UInt8>) -> Void
    ) {
        var offset = start
        while offset + 4 <= body.count {
            let length = Int(body.half(offset))
            guard length >= 4, length <= body.count - offset else { return }
            take(Int(body.half(offset + 2)) & typeMask, body.extracting(offset + 4..<offset + length))
            offset += (length + 3) & ~3
        }
    }
}

extension Span<UInt8> {
    /// A number in the machine's byte order.
    func word(_ offset: Int) -> UInt32 {
        precondition(offset + 4 <= count)
        // Sound: the bounds are checked, and any bits are an integer.
        return unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self)
    }

    func half(_ offset: Int) -> UInt16 {
        precondition(offset + 2 <= count)
        // Sound: as above.
        return unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self)
    }
}
