/// Changes, drops, doubles or inserts a few bytes; most inserted bytes have a meaning for the reader under test.
public func mutate(_ bytes: [UInt8], with syntax: [UInt8], _ generator: inout Chance) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let position = Int.random(in: 0...bytes.count, using: &generator)
        let byte =
            Bool.random(using: &generator)
            ? syntax.randomElement(using: &generator)! : UInt8.random(in: 0...255, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0 where position < bytes.count: bytes[position] = byte
        case 1 where position < bytes.count: bytes.remove(at: position)
        case 2: bytes.removeLast(Int.random(in: 0...bytes.count, using: &generator) / 4)
        default: bytes.insert(byte, at: position)
        }
    }
    return bytes
}
