import Base
import ShellTestSupport
import Synchronization

/// A server on loopback that keeps its connections, plain or through TLS: the next request, on whatever connection it
/// comes, gets the next of its responses.
final class ConversingServer: Sendable {
    /// How a connection ends after a response.
    enum End: Sendable {
        case none
        /// Closed as TCP closes, without close_notify: anyone on the path could have done it.
        case cut
        /// close_notify first, where there is TLS.
        case goodbye
    }

    struct Response: Sendable {
        let text: String
        /// Sent some time behind it, when ``strayIsSent()`` wants it.
        let stray: String?
        let end: End

        init(_ text: String, stray: String? = nil, then end: End = .none) {
            (self.text, self.stray, self.end) = (text, stray, end)
        }
    }

    private let server: FramesServer
    private let script: Script

    var endpoint: Endpoint { server.endpoint }
    /// PEM of the certificate that clients are shown; nil without TLS.
    let certificate: [UInt8]?
    /// Which connection each request came on, counted from 1.
    var connections: [Int] { script.state.withLock { $0.connections } }

    init(_ responses: [Response], isSecure: Bool = false) throws {
        let script = Script(responses)
        var tls = try isSecure ? TLSServerSettings(addresses: [.v4(127, 0, 0, 1)]) : nil
        tls?.protocols = ["http/1.1"]
        server = try FramesServer(tls: tls) { number, connection in script.serve(connection, number) }
        (self.script, certificate) = (script, tls?.certificate)
    }

    /// Has the stray bytes sent and returns when they are in the client's socket.
    func strayIsSent() {
        script.wanted.open()
        _ = script.sent.wait()
    }

    /// The responses that are left, on the threads of all connections.
    private final class Script: Sendable {
        let state: Mutex<(responses: [Response], connections: [Int])>
        let wanted = Gate()
        let sent = Gate()

        init(_ responses: [Response]) { state = Mutex((responses, [])) }

        func serve(_ connection: FramesConnection, _ number: Int) {
            while connection.readHead() {
                let response: Response? = state.withLock { state in
                    guard !state.responses.isEmpty else { return nil }
                    state.connections.append(number)
                    return state.responses.removeFirst()
                }
                guard let response else { return }
                connection.send(Array(response.text.utf8))
                if let stray = response.stray {
                    guard wanted.wait() else { return }
                    connection.send(Array(stray.utf8))
                    sent.open()
                }
                switch response.end {
                case .none: continue
                case .goodbye: connection.sayGoodbye()
                case .cut: break
                }
                return
            }
        }
    }
}

extension FramesConnection {
    /// Reads the head of a request, which has no body; false at the end of the connection.
    fileprivate func readHead() -> Bool {
        while !String(decoding: incoming, as: UTF8.self).hasSuffix("\r\n\r\n") { guard receive() else { return false } }
        incoming = []
        return true
    }
}
