/// A key or token. No description, dump or reflection of it, or of what holds it, shows the bytes.
public struct Secret: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    public let bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    public var description: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
