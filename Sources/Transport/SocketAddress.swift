public import Base
internal import Glibc

/// The source or destination of a datagram or connection: an endpoint, and for link-local IPv6 the interface.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    public var address: IPAddress
    public var port: UInt16
    /// The index of the interface of a link-local IPv6 address (RFC 4007 §6), else 0.
    public var scope: UInt32

    public init(_ endpoint: Endpoint) {
        address = endpoint.address
        port = endpoint.port
        scope = 0
    }

    /// The socket address at which to reach a server, on its link.
    ///
    /// - Throws: ENODEV if its zone names no present interface.
    init(reaching endpoint: Endpoint) throws(SystemError) {
        self.init(endpoint)
        guard let zone = endpoint.zone else { return }
        guard let number = NetworkLink.number(of: zone) else {
            throw SystemError("if_nametoindex", zone.description, code: ENODEV)
        }
        scope = number
    }

    public var endpoint: Endpoint { Endpoint(address, port: port) }

    /// The socket address with the IPv4 address inside an IPv4-mapped one, as which a socket of both families shows its
    /// IPv4 peers; any other socket address unchanged.
    var unmapped: SocketAddress {
        var other = self
        other.address = address.unmapped
        return other
    }

    /// Whether `sender`, with ``unmapped`` applied, is this address and port. If this address has no scope, any
    /// interface of `sender` matches.
    func isReached(as sender: SocketAddress) -> Bool {
        sender.address == address.unmapped && sender.port == port && (scope == 0 || sender.scope == scope)
    }

    public var description: String { endpoint.description }
}

/// The kernel's form of an address: `sockaddr_in` or `sockaddr_in6` in memory of at least `storageSize` bytes, aligned
/// to 8.
extension SocketAddress {
    static let storageSize = MemoryLayout<sockaddr_in6>.size
    /// The distance of two addresses in an array: `storageSize` rounded up.
    static let storageStride = 32

    var family: Int32 { address.isIPv4 ? AF_INET : AF_INET6 }

    /// Nil for another family, or if `length` is too short for an address.
    ///
    /// Sound if `storage` points to `storageSize` readable bytes.
    init?(reading storage: UnsafeRawPointer, length: Int) {
        guard length >= MemoryLayout<sockaddr_in>.size else { return nil }
        switch unsafe Int32(storage.load(as: sa_family_t.self)) {
        case AF_INET:
            let name = unsafe storage.load(as: sockaddr_in.self)
            address = IPAddress(v4: UInt32(bigEndian: name.sin_addr.s_addr))
            port = UInt16(bigEndian: name.sin_port)
            scope = 0
        case AF_INET6:
            guard length >= MemoryLayout<sockaddr_in6>.size else { return nil }
            let offset = MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)!
            address = IPAddress(
                v6: UInt64(bigEndian: unsafe storage.loadUnaligned(fromByteOffset: offset, as: UInt64.self)),
                UInt64(bigEndian: unsafe storage.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)))
            port = UInt16(bigEndian: unsafe storage.load(fromByteOffset: 2, as: UInt16.self))
            scope = unsafe storage.load(fromByteOffset: 24, as: UInt32.self)
        default:
            return nil
        }
    }

    /// Writes the address and returns its length.
    ///
    /// Sound if `storage` points to `storageSize` writable bytes.
    func write(to storage: UnsafeMutableRawPointer) -> socklen_t {
        if address.isIPv4 {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            name.sin_addr.s_addr = UInt32(truncatingIfNeeded: address.low).bigEndian
            unsafe storage.storeBytes(of: name, as: sockaddr_in.self)
            return socklen_t(MemoryLayout<sockaddr_in>.size)
        }
        unsafe storage.storeBytes(of: sa_family_t(AF_INET6), as: sa_family_t.self)
        unsafe storage.storeBytes(of: port.bigEndian, toByteOffset: 2, as: UInt16.self)
        unsafe storage.storeBytes(of: 0, toByteOffset: 4, as: UInt32.self)
        unsafe storage.storeBytes(of: address.high.bigEndian, toByteOffset: 8, as: UInt64.self)
        unsafe storage.storeBytes(of: address.low.bigEndian, toByteOffset: 16, as: UInt64.self)
        unsafe storage.storeBytes(of: scope, toByteOffset: 24, as: UInt32.self)
        return socklen_t(MemoryLayout<sockaddr_in6>.size)
    }

    /// Calls `body` with the kernel's form of this address.
    func withStorage(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        unsafe withUnsafeTemporaryAllocation(byteCount: SocketAddress.storageSize, alignment: 8) { storage in
            let length = unsafe write(to: storage.baseAddress!)
            // Sound: sockaddr is the head that every address in memory begins with; the kernel reads `length` bytes.
            return unsafe body(storage.baseAddress!.assumingMemoryBound(to: sockaddr.self), length)
        }
    }

    /// The address that `body` (getsockname, accept) fills in; nil if `body` fails, or the address is not IP.
    static func filled(
        by body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> (result: Int32, address: SocketAddress?) {
        unsafe withUnsafeTemporaryAllocation(byteCount: MemoryLayout<sockaddr_storage>.size, alignment: 8) { storage in
            var length = socklen_t(storage.count)
            // Sound: as above; the kernel writes at most `length` bytes.
            let result = unsafe body(storage.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
            guard result >= 0 else { return (result, nil) }
            return unsafe (result, SocketAddress(reading: storage.baseAddress!, length: Int(length)))
        }
    }
}
