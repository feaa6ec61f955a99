import Base
import TestSupport
import Testing

@testable import Cryptography

/// Names and values against vectors (computed with Python's `hmac` and `cryptography`), and against forgery.
struct FleetSealTests {
    private static let secret = [UInt8](0..<32)
    private static let question: [UInt8] = [3] + "www".utf8 + [7] + "example".utf8 + [3] + "com".utf8 + [0, 0, 1]

    @Test("a question has the name that HKDF and HMAC give it")
    func name() throws {
        let seal = try FleetSeal(secret: Self.secret)
        #expect(seal.name(of: Self.question) == bytes("aaeb3d65d4f9f728c1e9b21f96cff5df"))
        #expect(seal.name(of: []) != seal.name(of: [0]))
    }

    @Test(
        "a value is the nonce, the ciphertext and the tag of AES-256-GCM",
        arguments: [
            ("192.0.2.1", "101112131415161718191a1b9d63762f99556b13efc301ab16d48e6d03d2f50ebfb3ab1a29"),
            ("", "101112131415161718191a1b4d3a56fad548ed7da7ebca556ecaec50"),
        ])
    func value(plaintext: String, sealed: String) throws {
        let seal = try FleetSeal(secret: Self.secret)
        let name = seal.name(of: Self.question)
        let value = try seal.seal(Array(plaintext.utf8), as: name, nonce: [UInt8](0x10..<0x1C))
        #expect(value == bytes(sealed))
        #expect(seal.open(value, as: name) == Array(plaintext.utf8))
        #expect(value.count == plaintext.utf8.count + FleetSeal.overhead)
    }

    @Test("what was changed, cut, lengthened, moved or sealed with another key does not open")
    func forged() throws {
        let seal = try FleetSeal(secret: Self.secret)
        let name = seal.name(of: Self.question)
        let value = try seal.seal([1, 2, 3], as: name)
        #expect(seal.open(value, as: name) == [1, 2, 3])
        for index in value.indices {
            for bit in 0..<8 {
                var other = value
                other[index] ^= 1 << bit
                #expect(seal.open(other, as: name) == nil)
            }
            #expect(seal.open(Array(value[..<index]), as: name) == nil)
        }
        #expect(seal.open(value + [0], as: name) == nil)
        #expect(seal.open(value, as: seal.name(of: [])) == nil)
        let other = try FleetSeal(secret: Self.secret + [0])
        #expect(other.name(of: Self.question) != name)
        #expect(other.open(value, as: name) == nil)
        // And it still opens what is right.
        #expect(seal.open(value, as: name) == [1, 2, 3])
    }

    @Test("the same is never sealed the same way twice, and no more than fits is taken")
    func nonces() throws {
        let seal = try FleetSeal(secret: Self.secret)
        let values = try (0..<100).map { _ in try seal.seal([7], as: [1]) }
        #expect(Set(values).count == 100)
        let tooLong = [UInt8](repeating: 0, count: FleetSeal.maximumLength + 1)
        #expect(throws: CryptographyError.tooLong(tooLong.count)) { try seal.seal(tooLong, as: [1]) }
        #expect(seal.open(tooLong + [UInt8](repeating: 0, count: FleetSeal.overhead), as: [1]) == nil)
    }
}
