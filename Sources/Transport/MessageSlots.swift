internal import Base
internal import CLinux
internal import Glibc

/// The memory of a batch of datagrams: for each slot a message header, its one vector, the peer's address, room for one
/// control message and for one payload, so that the kernel can fill or send many datagrams at once. A received payload
/// is in its slot's own room; payloads to send may be anywhere in the room of all slots, and their writer prevents
/// overlaps.
///
/// All unsafe code of the batches is here. It is sound because the five regions are allocated in `init` and freed in
/// `deinit`, no pointer into them leaves but those to payloads (whose users document their lifetime), each index and
/// offset is checked, each header points to its own vector, and each vector into the payloads.
@safe struct MessageSlots: ~Copyable {
    let count: Int
    private let size: Int
    private let messages: UnsafeMutablePointer<clinux_message>
    private let vectors: UnsafeMutablePointer<iovec>
    private let names: UnsafeMutableRawPointer
    private let controls: UnsafeMutableRawPointer
    private let payloads: UnsafeMutablePointer<UInt8>

    /// Waits only for the first datagram, then takes the datagrams that are there.
    static let waitForOne = Int32(MSG_WAITFORONE)

    /// The payloads to send begin at multiples of this, so that a short payload touches few cache lines.
    static let cacheLine = 64

    private static let controlSize = Int(clinux_control_size)

    init(count: Int, size: Int) {
        precondition(count > 0 && size > 0)
        self.count = count
        self.size = size
        unsafe messages = .allocate(capacity: count)
        unsafe vectors = .allocate(capacity: count)
        unsafe names = .allocate(byteCount: count * SocketAddress.storageStride, alignment: 8)
        unsafe controls = .allocate(byteCount: count * MessageSlots.controlSize, alignment: 8)
        unsafe payloads = UnsafeMutableRawPointer.allocate(byteCount: count * size, alignment: MessageSlots.cacheLine)
            .bindMemory(to: UInt8.self, capacity: count * size)
        unsafe messages.initialize(repeating: clinux_message(), count: count)
        for index in 0..<count {
            unsafe (vectors + index).initialize(to: iovec(iov_base: payloads + index * size, iov_len: size))
            unsafe messages[index].header.msg_iov = vectors + index
            unsafe messages[index].header.msg_iovlen = 1
            unsafe messages[index].header.msg_name = name(index)
        }
    }

    deinit {
        unsafe messages.deallocate()
        unsafe vectors.deallocate()
        unsafe names.deallocate()
        unsafe controls.deallocate()
        unsafe UnsafeMutableRawPointer(payloads).deallocate()
    }

    private func name(_ index: Int) -> UnsafeMutableRawPointer {
        precondition(index < count)
        return unsafe names + index * SocketAddress.storageStride
    }

    private func control(_ index: Int) -> UnsafeMutableRawPointer {
        precondition(index < count)
        return unsafe controls + index * MessageSlots.controlSize
    }

    /// Room for one payload.
    func buffer(at offset: Int) -> UnsafeMutableBufferPointer<UInt8> {
        precondition(offset >= 0 && offset <= (count - 1) * size)
        return unsafe UnsafeMutableBufferPointer(start: payloads + offset, count: size)
    }
}

/// Receiving.
extension MessageSlots {
    /// Restores the slot's full room.
    func prepareToReceive(_ index: Int) {
        precondition(index < count)
        unsafe messages[index].header.msg_namelen = socklen_t(SocketAddress.storageSize)
        unsafe messages[index].header.msg_control = control(index)
        unsafe messages[index].header.msg_controllen = MessageSlots.controlSize
    }

    func receive(_ descriptor: Int32, flags: Int32) -> Int {
        Int(unsafe clinux_recvmmsg(descriptor, messages, UInt32(count), flags))
    }

    func received(_ index: Int) -> UnsafeBufferPointer<UInt8> {
        precondition(index < count)
        let length = min(Int(unsafe messages[index].length), size)
        return unsafe UnsafeBufferPointer(start: payloads + index * size, count: length)
    }

    /// Each datagram of an IP socket has a sender; without a sender the reply would go to the unspecified address, that
    /// is, nowhere.
    func peer(_ index: Int) -> SocketAddress {
        let length = Int(unsafe messages[index].header.msg_namelen)
        return unsafe SocketAddress(reading: name(index), length: length)
            ?? SocketAddress(Endpoint(IPAddress(v4: 0), port: 0))
    }

    func local(_ index: Int) -> LocalAddress? {
        precondition(index < count)
        guard unsafe messages[index].header.msg_controllen > 0 else { return nil }
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16) { octets in
            unsafe octets.initialize(repeating: 0)
            var interface: UInt32 = 0
            let length = unsafe clinux_local_address(&messages[index].header, octets.baseAddress!, &interface)
            guard let address = unsafe IPAddress(bytes: octets.span.extracting(first: Int(length))) else { return nil }
            return LocalAddress(address, interface: interface)
        }
    }
}

/// Sending.
extension MessageSlots {
    /// - Parameter offset: The offset of the payload in ``buffer(at:)``.
    func prepareToSend(_ index: Int, at offset: Int, length: Int, to peer: SocketAddress, from source: LocalAddress?) {
        precondition(index < count && length <= size && offset >= 0 && offset <= (count - 1) * size)
        unsafe vectors[index] = iovec(iov_base: payloads + offset, iov_len: length)
        unsafe messages[index].header.msg_namelen = peer.write(to: name(index))
        guard let source else {
            unsafe messages[index].header.msg_control = nil
            unsafe messages[index].header.msg_controllen = 0
            return
        }
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16) { octets in
            unsafe octets.initialize(repeating: 0)
            var span = unsafe octets.mutableSpan
            let length = source.address.write(into: &span, at: 0)
            // The scope of a link-local peer says the same.
            let interface = peer.scope == 0 ? source.interface : 0
            unsafe clinux_set_local_address(
                &messages[index].header, control(index), octets.baseAddress!, Int32(length), interface)
        }
    }

    /// Prepares a payload for the peer of a connected socket.
    func prepareToSend(_ index: Int, at offset: Int, length: Int) {
        precondition(index < count && length <= size && offset >= 0 && offset <= (count - 1) * size)
        unsafe vectors[index] = iovec(iov_base: payloads + offset, iov_len: length)
        unsafe messages[index].header.msg_namelen = 0
        unsafe messages[index].header.msg_control = nil
        unsafe messages[index].header.msg_controllen = 0
    }

    /// The payload of a prepared slot.
    func prepared(_ index: Int) -> UnsafeBufferPointer<UInt8> {
        precondition(index < count)
        let vector = unsafe vectors[index]
        return unsafe UnsafeBufferPointer(
            start: vector.iov_base.assumingMemoryBound(to: UInt8.self), count: vector.iov_len)
    }

    func send(_ descriptor: Int32, _ range: Range<Int>) -> Int {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
        return Int(unsafe clinux_sendmmsg(descriptor, messages + range.lowerBound, UInt32(range.count), flags))
    }
}
