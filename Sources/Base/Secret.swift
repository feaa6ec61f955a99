/// A key or token. Its description, dump or reflection, and that of a value containing it, does not show the bytes.
public struct Secret: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    public let bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    public var description: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
