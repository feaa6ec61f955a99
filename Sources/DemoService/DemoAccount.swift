/// The credentials of a ``DemoService``. The description omits the secrets.
public struct DemoAccount: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// The authorization ID of the aes and des modes.
    public let id: UInt32
    /// The key of the aes mode: 16 printable ASCII characters.
    public let aesKey: [UInt8]
    /// The key of the des mode: 8 printable ASCII characters.
    public let desKey: [UInt8]
    /// The token of the https mode: decimal digits.
    public let token: [UInt8]

    /// An account with unpredictable credentials.
    public static func random() -> DemoAccount {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
        func key(_ length: Int) -> [UInt8] { (0..<length).map { _ in letters[Int.random(in: 0..<letters.count)] } }
        return DemoAccount(
            id: .random(in: 10_000..<100_000), aesKey: key(16), desKey: key(8),
            token: Array(String(UInt32.random(in: 100_000_000..<1_000_000_000)).utf8))
    }

    public var description: String { "demo account \(id)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
