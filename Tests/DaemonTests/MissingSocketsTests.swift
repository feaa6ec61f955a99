import Base
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
}
