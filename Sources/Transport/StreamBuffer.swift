internal import Base

/// The bytes that a stream could not take yet, in order, up to a limit.
public struct StreamBuffer: ~Copyable, Sendable {
    /// The most memory retained while no bytes wait: enough for most DNS answers, little for an idle connection.
    private static let retainedCapacity = 4096

    private let limit: Int
    private var bytes: [UInt8] = []
    /// The bytes before this index were sent.
    private var head = 0

    /// - Parameter limit: The most bytes that may wait: the most memory that a slow peer can cost.
    public init(limit: Int) { self.limit = limit }

    public var count: Int { bytes.count - head }
    public var isEmpty: Bool { count == 0 }

    /// Adds bytes at the end; false if more than the limit would wait, so that none are added.
    public mutating func append(_ more: Span<UInt8>) -> Bool {
        guard more.count <= limit - count else { return false }
        append { $0.append(more) }
        return true
    }

    /// Writes bytes at once if none wait, as many as the socket takes; the rest is added at the end.
    /// - Returns: false if more than the limit would wait.
    public mutating func send(_ more: Span<UInt8>, to socket: borrowing StreamSocket) throws(SystemError) -> Bool {
        var sent = 0
        if isEmpty {
            while sent < more.count, let taken = try socket.descriptor.send(more.extracting(droppingFirst: sent)) {
                sent += taken
            }
        }
        return sent == more.count || append(more.extracting(droppingFirst: sent))
    }

    /// Whether more bytes wait than the limit.
    public var isOverLimit: Bool { count > limit }

    /// Adds the octets that `fill` appends to its array, which saves a copy; without regard to the limit, as the socket
    /// may take them.
    public mutating func append(_ fill: (inout [UInt8]) -> Void) {
        if head > 0, head >= count {
            // At least half is sent: moving the rest down costs less than the sending did.
            bytes.removeFirst(head)
            head = 0
        }
        fill(&bytes)
    }

    /// Writes as many bytes as the socket takes. True if none are left; else call again when the socket is writable.
    public mutating func flush(to socket: borrowing StreamSocket) throws(SystemError) -> Bool {
        while !isEmpty {
            guard let taken = try socket.descriptor.send(bytes.span.extracting(droppingFirst: head)) else {
                return false
            }
            head += taken
        }
        bytes.removeAll(keepingCapacity: bytes.capacity <= StreamBuffer.retainedCapacity)
        head = 0
        return true
    }
}
