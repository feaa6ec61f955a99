import Base
import Cryptography
import Testing

/// For how long one verification of a server's certificate lets its sessions be resumed.
struct TLSTrustTests {
    private static let day: UInt64 = 86_400

    /// Each resumption brings a new ticket, and none of them more time.
    @Test(arguments: [tls12, tls13])
    func aSessionIsVerifiedAnewAfterADay(newest: Int32) throws {
        let (client, server) = (try client(), try server(newest: newest))
        for (seconds, isResumed) in [
            (0, false), (1, true), (Self.day / 2, true), (Self.day - 1, true), (Self.day, false), (Self.day + 1, true),
            (2 * Self.day - 1, true), (2 * Self.day, false),
        ] {
            let link = try carried(client, server, at: anyTime + seconds)
            #expect(link.client.state == .open)
            #expect(link.client.isResumed == isResumed, "after \(seconds) s")
        }
    }

    /// A clock that was set back does not give a session more time.
    @Test(arguments: [tls12, tls13])
    func aClockThatGoesBackEndsTheTrust(newest: Int32) throws {
        let (client, server) = (try client(), try server(newest: newest))
        for (now, isResumed) in [(anyTime, false), (anyTime - 1, false), (anyTime - 1, true)] {
            let link = try carried(client, server, at: now)
            #expect(link.client.isResumed == isResumed)
        }
    }

    /// The server's own certificate, or the one above it, ends within the hour.
    @Test(arguments: ["ending", "underending"], [tls12, tls13])
    func noSessionIsResumedPastTheEndOfACertificate(name: String, newest: Int32) throws {
        let certificates = TestCertificates.shared
        let issuer = name == "ending" ? "intermediate" : "endingintermediate"
        let server = try TLSServerContext(
            certificatePEM: certificates["\(name).pem"] + certificates["\(issuer).pem"],
            keyPEM: certificates["\(name).key"], newestVersion: newest)
        let client = try client()
        let end = TestCertificates.soon
        for (now, isResumed) in [(end - 1800, false), (end - 1, true), (end, false), (end + 1, false)] {
            let link = try carried(client, server, at: now)
            #expect(link.client.state == .open)
            #expect(link.client.isResumed == isResumed, "\(Int64(now) - Int64(end)) s after the end")
            // That is the server's own certificate's end, not its chain's, also of a session that is resumed.
            #expect((link.client.certificateEnd == end) == (name == "ending"))
            #expect(link.server.certificateEnd == nil)
        }
    }

    /// A connection that stands is no longer trusted than what a ticket of it could resume.
    @Test func aConnectionIsTrustedForADay() throws {
        let (client, server) = (try client(), try server())
        let first = try TLSLink(client, server, at: anyTime)
        #expect(!first.client.isTrusted(at: anyTime))
        first.carry()
        let later = try carried(client, server, at: anyTime + 80_000)
        #expect(later.client.isResumed)
        for session in [first.client, later.client] {
            #expect(session.isTrusted(at: anyTime + Self.day - 1))
            #expect(!session.isTrusted(at: anyTime + Self.day))
            #expect(!session.isTrusted(at: anyTime - 1))
        }
    }
}
