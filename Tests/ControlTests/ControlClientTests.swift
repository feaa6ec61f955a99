import Base
import ShellTestSupport
import Streams
import Testing
import Transport

@testable import Control

@Suite struct ControlClientTests {
    /// A signal ends the command while answers come: what still comes finds the client where it was.
    @Test func whatComesAfterTheCommandHasLetGoIsReceived() throws {
        let path = "/tmp/httpdnsd-watch-\(UInt64.random(in: 0...(.max)))"
        let listener = try UnixListener.listen(path)
        let loop = try EventLoop(label: "test")
        let daemon = Daemon()
        try listener.start(in: loop, failed: { _ in }, accepted: { daemon.serve($0, loop) })
        loop.start()
        let (ended, stopped) = (Gate(), Gate())
        var client: ControlClient? = try ControlClient(path)
        client?.watch(WatchFilter(), .plain, write: { _ in false }, ended: { _ in ended.open() })
        #expect(daemon.asked.wait())
        client = nil
        loop.submit { daemon.answer() }
        #expect(ended.wait())
        loop.submit {
            listener.stop()
            loop.stop { stopped.open() }
        }
        #expect(stopped.wait())
    }

    /// The daemon's side of one watcher; confined to its loop.
    private final class Daemon: StreamOwner, @unchecked Sendable {
        let asked = Gate()
        private var stream: Stream?

        func serve(_ socket: consuming StreamSocket, _ loop: EventLoop) {
            stream = try? Stream(
                socket, isConnected: true, tls: nil, limit: 4096, scratch: Scratch(4096), loop: loop, owner: self)
        }

        func answer() {
            stream?.send(Array("HTTP/1.1 200 OK\r\n\r\na line\n".utf8).span)
        }

        func received(_ bytes: Span<UInt8>, on stream: Stream) { asked.open() }
        func ended(_ stream: Stream, isCut: Bool) { stream.close() }
        func failed(_ stream: Stream, _ failure: LinkEnd) { stream.close() }
    }
}
