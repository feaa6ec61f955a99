import Base
import ShellTestSupport
import Synchronization

/// A server on loopback that keeps its connections, plain or through TLS: the next request, on any connection, gets the
/// next response.
final class ConversingServer: Sendable {
    /// The end of a connection after a response.
    enum End: Sendable {
        case none
        /// TCP closes without close_notify: any host on the path could have done that.
        case cut
        /// close_notify comes first, if there is TLS.
        case goodbye
    }

    struct Response: Sendable {
        let text: String
        /// Octets that are sent after the response, when ``strayIsSent()`` asks for them.
        let stray: String?
        let end: End

        init(_ text: String, stray: String? = nil, then end: End = .none) {
            (self.text, self.stray, self.end) = (text, stray, end)
        }
    }

    private let server: FramesServer
    private let script: Script

    var endpoint: Endpoint { server.endpoint }
    /// The server's certificate in PEM; nil without TLS.
    let certificate: [UInt8]?
    /// The number of the connection, from 1, on which each request came.
    var connections: [Int] { script.state.withLock { $0.connections } }

    init(_ responses: [Response], isSecure: Bool = false) throws {
        let script = Script(responses)
        var tls = try isSecure ? TLSServerSettings(addresses: [.v4(127, 0, 0, 1)]) : nil
        tls?.protocols = ["http/1.1"]
        server = try FramesServer(tls: tls) { number, connection in script.serve(connection, number) }
        (self.script, certificate) = (script, tls?.certificate)
    }

    /// Makes the server send the stray bytes, and returns when they are in the client's socket.
    func strayIsSent() {
        script.wanted.open()
        _ = script.sent.wait()
    }

    /// The remaining responses, used on the threads of all connections.
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
