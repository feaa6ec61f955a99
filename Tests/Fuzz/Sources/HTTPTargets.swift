import Base
import Cryptography

@testable import DemoService
@testable import HTTP

extension Target {
    /// What a server of the service, or whoever is in its place, sends on one connection.
    static let http = Target(name: "http") { bytes in
        let outcomes = splits(of: bytes).map { read($0) }
        check(outcomes[0] == outcomes[1], "it depends on the pieces")
        for response in outcomes[0].responses {
            check((200..<600).contains(response.status) && response.status != 101, "status \(response.status)")
            check(response.body.count <= HTTPResponseReader.bodyLimit, "a body of \(response.body.count)")
            check(response.retryAfter ?? 0 >= 0, "a time that is over")
        }
    }

    /// What such a server sends behind one request after the other on connections that are kept; at each octet 0 the next
    /// request is sent. Each has to get what a reader would have made of its own part alone.
    static let keepalive = Target(name: "keepalive") { bytes in
        let parts = bytes.split(separator: 0, omittingEmptySubsequences: false).map { splits(of: Array($0)) }
        let alone = parts.map { ways in
            var reader = HTTPResponseReader()
            return exchange(ways[0], &reader)
        }
        let way = min(1, choice(bytes, of: 4, salt: 2))
        var reader = HTTPResponseReader()
        for (number, ways) in parts.enumerated() {
            let kept = exchange(ways[way], &reader)
            check(kept == alone[number], "response \(number) is another than alone")
            if !kept.isKept { reader = HTTPResponseReader() }
        }
    }

    /// What a client of the demo's service sends on one connection.
    static let request = Target(name: "request") { bytes in
        let isSecure = choice(bytes, of: 2, salt: 2) == 0
        let outcomes = splits(of: bytes).map { answers(to: $0, isSecure: isSecure) }
        check(outcomes[0] == outcomes[1], "it depends on the pieces")
    }
}

private struct HTTPOutcome: Equatable {
    var responses: [HTTPResponse] = []
    var error: HTTPError?
}

private func read(_ pieces: [ArraySlice<UInt8>]) -> HTTPOutcome {
    var reader = HTTPResponseReader()
    var outcome = HTTPOutcome()
    check(reader.isIdle, "busy with nothing")
    do throws(HTTPError) {
        for piece in pieces {
            var more = Array(piece)
            while let response = try reader.receive(more.span) {
                outcome.responses.append(response)
                more = []
            }
        }
        if let response = try reader.endOfStream() {
            check(!response.keepAlive, "kept alive behind the end")
            outcome.responses.append(response)
        }
    } catch {
        outcome.error = error
        check(failure(of: &reader) == error, "an error is forgotten")
    }
    return outcome
}

/// What came of one request, and whether its connection carries the next one.
private struct Exchange: Equatable {
    var response: HTTPResponse?
    var error: HTTPError?
    var isKept = false
}

/// Keeps the daemon's rule: the connection is kept when its response allows it and nothing came behind that.
private func exchange(_ pieces: [ArraySlice<UInt8>], _ reader: inout HTTPResponseReader) -> Exchange {
    check(reader.isIdle, "something is left over")
    do throws(HTTPError) {
        for (number, piece) in pieces.enumerated() {
            let bytes = Array(piece)
            guard let response = try reader.receive(bytes.span) else { continue }
            let isLast = number == pieces.count - 1
            return Exchange(response: response, isKept: response.keepAlive && reader.isIdle && isLast)
        }
        return Exchange(response: try reader.endOfStream())
    } catch {
        return Exchange(error: error)
    }
}

/// What the reader says to nothing new.
private func failure(of reader: inout HTTPResponseReader) -> HTTPError? {
    let nothing: [UInt8] = []
    do throws(HTTPError) {
        _ = try reader.receive(nothing.span)
        return nil
    } catch {
        return error
    }
}

/// The account of the seeds. The des key is what makes an answer the same each time it is encrypted.
private let account = DemoAccount(
    id: 4242, aesKey: Array("0123456789abcdef".utf8), desKey: Array("01234567".utf8), token: Array("424242".utf8))

/// Of one thread: libFuzzer has no other.
private struct Engine: @unchecked Sendable {
    let value: ServiceEngine
}

private let engine: Engine = {
    guard let engine = try? ServiceEngine(account, unixSeconds: { 1_700_000_000 }) else { fatalError("no engine") }
    return Engine(value: engine)
}()

/// The responses, each with its length in place of what a random initialization vector has gone into.
private func answers(to pieces: [ArraySlice<UInt8>], isSecure: Bool) -> [[UInt8]] {
    var responses: [[UInt8]] = []
    var hasEnded = false
    let conversation = engine.value.conversation(isSecure: isSecure, client: .v4(192, 0, 2, 1)) { response, isLast in
        check(!hasEnded, "a response behind the last")
        hasEnded = isLast
        var reader = HTTPResponseReader()
        guard let read = try? reader.receive(response.span) else { fatalError("a response that cannot be read") }
        check(reader.isIdle && read.keepAlive != isLast, "a response that ends elsewhere")
        responses.append(isSecure ? response : Array("\(read.status) \(response.count)".utf8))
    }
    for piece in pieces { conversation.receive(Array(piece).span) }
    return responses
}
