import Base
import Foundation
import Testing

@testable import Daemon

@Suite struct MissingSocketsTests {
    /// What the settings name, the sockets of UDP and of TCP that were handed over, and what is missed.
    @Test(
        arguments: [
            ("192.168.1.2:53", "127.0.0.1:53", "127.0.0.1:53", "192.168.1.2:53"),
            ("127.0.0.1:53 192.168.1.2:53", "127.0.0.1:53", "127.0.0.1:53", "192.168.1.2:53"),
            ("192.168.1.2:53", "192.168.1.2:53", "192.168.1.2:53", ""),
            // Both are needed.
            ("192.168.1.2:53", "192.168.1.2:53", "", "192.168.1.2:53"),
            ("192.168.1.2:53", "", "192.168.1.2:53", "192.168.1.2:53"),
            // Another port; every address of the family.
            ("192.168.1.2:53", "192.168.1.2:5353", "192.168.1.2:5353", "192.168.1.2:53"),
            ("192.168.1.2:53 [fd00::2]:53", "0.0.0.0:53", "0.0.0.0:53", "[fd00::2]:53"),
            ("[fd00::2]:53", "[::]:53", "[::]:53", ""),
            // The standard ones were not asked for.
            ("127.0.0.1:53 [::1]:53", "192.168.1.2:53", "192.168.1.2:53", ""),
        ])
    func missing(_ row: (wanted: String, datagrams: String, streams: String, missing: String)) {
        func endpoints(_ text: String) -> [Endpoint] { text.split(separator: " ").compactMap { Endpoint($0) } }
        #expect(
            Sockets.missing(endpoints(row.wanted), of: endpoints(row.datagrams), endpoints(row.streams))
                == endpoints(row.missing))
    }

    @Test(
        "what is said names the command that mends it",
        arguments: [
            (Sockets.UnitState.unknown, ["httpdnsd-dot.socket with ListenStream=0.0.0.0:853", "systemctl enable"]),
            (.absent, ["there is no httpdnsd-dot.socket", "FileDescriptorName=dot"]),
            (.disabled, ["is not enabled", "systemctl enable httpdnsd-dot.socket && systemctl restart httpdnsd"]),
            (.failed, ["has failed", "systemctl status httpdnsd-dot.socket"]),
            (.enabled(isListed: true), ["was not open", "systemctl restart httpdnsd"]),
            (.enabled(isListed: false), ["ListenStream=0.0.0.0:853", "systemctl edit httpdnsd-dot.socket"]),
        ])
    func words(_ state: Sockets.UnitState, _ words: [String]) {
        let said = Sockets.missing("listen.tls", Endpoint("0.0.0.0:853")!, "dot", state)
        #expect(said.hasPrefix("listen.tls names 0.0.0.0:853, which no socket of systemd is for"))
        for words in words { #expect(said.contains(words), "\(said)") }
    }

    @Test func whoHasAPort() throws {
        let folder = NSTemporaryDirectory() + "ports-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        for (name, lines) in [
            ("udp", ["0100007F:0035 00000000:0000 07", "00000000:0044 00000000:0000 07"]),
            ("tcp", ["3500007F:0035 00000000:0000 0A", "0200007F:0035 0100007F:9000 01"]),
            ("udp6", ["00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07"]), ("tcp6", []),
        ] {
            try (head + lines.map { "    1: \($0) 00000000:00000000 00:00000000\n" }.joined()).write(
                toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
        }
        for (address, isTaken) in [
            ("127.0.0.1:53", true), ("127.0.0.1:54", false), ("192.0.2.1:68", true), ("127.0.0.53:53", true),
            ("127.0.0.2:53", false), ("[::1]:53", true), ("[::2]:53", false), ("[::1]:68", false),
        ] {
            #expect(PortUse.isTaken(Endpoint(address)!, folder: folder) == isTaken, "\(address)")
        }
        #expect(!PortUse.isTaken(Endpoint("127.0.0.1:53")!, folder: folder + "/none"))
    }
}
