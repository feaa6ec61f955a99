import Foundation
import Testing

@testable import Base

/// Octets as text, beside Foundation's own.
@Suite struct Base64Tests {
    /// RFC 4648 §10: what each beginning of `foobar` becomes.
    @Test func vectors() {
        for (length, text) in ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"].enumerated() {
            let octets = Array("foobar".utf8.prefix(length))
            #expect(Base64.standard.decode(Array(text.utf8)) == octets)
            #expect(Base64.standard.encode(octets) == text)
            let bare = text.filter { $0 != "=" }
            #expect(Base64.url.decode(Array(bare.utf8)) == octets)
            #expect(Base64.url.encode(octets) == bare)
        }
    }

    @Test func anyOctetsComeBackAsFoundationWritesThem() {
        for length in 0...70 {
            let octets = (0..<length).map { _ in UInt8.random(in: 0...255) }
            let text = Data(octets).base64EncodedString()
            #expect(Base64.standard.encode(octets) == text)
            #expect(Base64.standard.decode(Array(text.utf8)) == octets)
            #expect(Base64.url.decode(Array(Base64.url.encode(octets).utf8)) == octets)
        }
    }

    @Test(
        "what no encoder writes is refused",
        arguments: ["Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm9v=", "Z=g=", "Zm 9", "Zm8-", "=", "===="])
    func standard(_ text: String) { #expect(Base64.standard.decode(Array(text.utf8)) == nil) }

    @Test(
        "the other alphabet, too", arguments: ["Z", "Zg==", "Zh", "Zm9", "Zm9v\n", "Zm+v", "Zm/v", "Zm9vY", "\u{e9}Zm"])
    func url(_ text: String) { #expect(Base64.url.decode(Array(text.utf8)) == nil) }
}
