import Base

@testable import Configuration

extension Target {
    /// An entry of `servers`: the bytes as text, and as what a stamp holds.
    static let server = Target(name: "server") { bytes in
        let text = String(decoding: bytes, as: UTF8.self)
        checkServer(text)
        checkServer("sdns://" + Base64.url.encode(bytes))
        if let message = refusal("https://Passw0rd@" + text), !text.contains("Passw0rd") {
            check(!message.contains("Passw0rd"), message)
        } else {
            check(text.contains("Passw0rd"), "user information is taken: \(text.debugDescription)")
        }
    }
}

/// Why a text names no server; nil if it names one.
private func refusal(_ text: String) -> String? {
    do throws(Problem) {
        _ = try ServerText.read(text)
        return nil
    } catch {
        return error.message
    }
}

private func checkServer(_ text: String) {
    do throws(Problem) {
        let entry = try ServerText.read(text)
        let written = ServerText.text(of: entry)
        check((try? ServerText.read(written)) == entry, "\(text.debugDescription) is written as \(written)")
        guard case .server(let server) = entry else { return }
        check(server.port > 0, "port 0")
        check(server.addresses.count <= ServerText.maximumAddresses, "\(server.addresses.count) addresses")
        check(server.hashes.allSatisfy { $0.count == 32 }, "a hash of another length")
        check(isPlainText("\(server)"), "\(server)")
        switch server.kind {
        case .https(let path, _):
            check(path.hasPrefix("/") && path.utf8.count <= ServerText.maximumPathLength, path)
        case .plain, .tcp: check(!server.endpoints.isEmpty && server.hashes.isEmpty, "nowhere to ask")
        case .tls: break
        case .account: check(false, "an account")
        }
    } catch {
        check(error.message.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }, error.message)
        check(error.message.contains("give "), "nothing is said to be right: \(error.message)")
        // Of a text that is too long no more than its beginning is shown.
        check(error.message.utf8.count <= 2048, "a message of \(error.message.utf8.count) octets")
    }
}

private func isPlainText(_ text: String) -> Bool { text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } }
