import Base
import Foundation
import TestSupport
import Testing

@testable import Transport

/// rtnetlink messages, built from the layouts of rtnetlink(7) and netlink(7) with numbers of the kernel's headers.
private struct Message {
    var type: UInt16
    var flags: UInt16 = 0
    var body: [UInt8]

    static func little<T: FixedWidthInteger>(_ value: T) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }

    static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        let padding = [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
        return little(UInt16(4 + value.count)) + little(type) + value + padding
    }

    var bytes: [UInt8] {
        let head = Self.little(UInt32(16 + body.count)) + Self.little(type) + Self.little(flags)
        return head + [UInt8](repeating: 0, count: 8) + body + [UInt8](repeating: 0, count: (4 - body.count % 4) % 4)
    }

    static let (newLink, newAddress, newRoute) = (UInt16(16), UInt16(20), UInt16(24))
    /// The message that says the same thing is gone.
    var deletion: Message { Message(type: type + 1, flags: flags, body: body) }
    static let replace: UInt16 = 0x100
    /// IFF_UP | IFF_RUNNING, and other bits that come and go.
    static let running: UInt32 = 0x41

    static func link(_ index: UInt32, flags: UInt32, family: UInt8 = 0) -> Message {
        Message(type: newLink, body: [family, 0, 1, 0] + little(index) + little(flags) + little(UInt32(0)))
    }

    static func address(
        _ text: String, on index: UInt32 = 2, flags: UInt32 = 0x80, lifetime: UInt32 = 3600
    ) -> Message {
        let address = IPAddress(text)!
        var body: [UInt8] = [address.isIPv4 ? 2 : 10, 24, UInt8(flags & 0xFF), 0] + little(index)
        body += attribute(1, address.octets)
        if address.isIPv4 { body += attribute(2, address.octets) + attribute(3, Array("eth0\0".utf8)) }
        body += attribute(6, little(lifetime) + little(lifetime) + little(UInt32(1)) + little(UInt32(2)))
        body += attribute(8, little(flags))
        return Message(type: newAddress, body: body)
    }

    static func route(
        to text: String = "", by gateway: String, flags: UInt16 = 0, table: UInt8 = 254,
        kind: UInt8 = 1, routeFlags: UInt32 = 0, expires: UInt32 = 1800
    ) -> Message {
        let next = IPAddress(gateway)!
        var body: [UInt8] = [next.isIPv4 ? 2 : 10, text.isEmpty ? 0 : 16, 0, 0, table, 16, 0, kind]
        body += little(routeFlags) + attribute(15, little(UInt32(table)))
        if !text.isEmpty { body += attribute(1, IPAddress(text)!.octets) }
        body += attribute(5, next.octets) + attribute(4, little(UInt32(2)))
        body += attribute(12, little(UInt32.random(in: 0...1000)) + [UInt8](repeating: 7, count: 28))
        body += attribute(23, little(expires))
        return Message(type: newRoute, flags: flags, body: body)
    }
}

@Suite struct NetworkStateTests {
    /// The state, to be asked within an expectation.
    private final class Judge {
        private var state = NetworkState()

        func takes(_ messages: Message...) -> Bool { takes(messages.flatMap(\.bytes)) }
        func takes(_ bytes: [UInt8]) -> Bool { state.apply(bytes.span) }
    }

    @Test func anAddressThatComesAndGoesIsAChangeAndItsRenewalIsNot() {
        let state = Judge()
        for text in ["192.0.2.7", "2001:db8::7"] {
            #expect(state.takes(.address(text)))
            #expect(!state.takes(.address(text, lifetime: 60)))
            // Deprecated: still good for what uses it.
            #expect(!state.takes(.address(text, flags: 0x20)))
            #expect(state.takes(.address(text, on: 3)))
            #expect(state.takes(.address(text).deletion))
            #expect(!state.takes(.address(text).deletion))
            #expect(state.takes(.address(text)))
        }
    }

    @Test func anAddressCountsWhenItCanBeUsed() {
        let state = Judge()
        #expect(!state.takes(.address("2001:db8::7", flags: 0x40)))
        #expect(state.takes(.address("2001:db8::7", flags: 0)))
        // A duplicate was found.
        #expect(state.takes(.address("2001:db8::7", flags: 0x08)))
        #expect(!state.takes(.address("2001:db8::7", flags: 0x48)))
        // Optimistic: used while it is probed.
        #expect(state.takes(.address("2001:db8::7", flags: 0x44)))
        #expect(!state.takes(.address("fe80::1")))
        #expect(!state.takes(.address("fe80::1").deletion))
    }

    @Test func theOwnAddressOfTheTwoEndsCounts() {
        let state = Judge()
        var body: [UInt8] = [2, 32, 0x80, 0] + Message.little(UInt32(5))
        let tail = Message.attribute(2, [192, 0, 2, 1])
        #expect(state.takes(Message(type: 20, body: body + Message.attribute(1, [192, 0, 2, 9]) + tail)))
        body += Message.attribute(1, [192, 0, 2, 10])
        #expect(!state.takes(Message(type: 20, body: body + tail)))
    }

    @Test func aLinkMattersWithAnAddress() {
        let state = Judge()
        #expect(!state.takes(.link(2, flags: Message.running)))
        #expect(!state.takes(.link(2, flags: 0)))
        #expect(!state.takes(.link(2, flags: Message.running)))
        #expect(state.takes(.address("192.0.2.7", on: 2)))
        // Wireless events and the like: the same state, other bits.
        #expect(!state.takes(.link(2, flags: Message.running | 0x1_1000)))
        // The bridge's view of its port.
        #expect(!state.takes(.link(2, flags: 0, family: 7)))
        #expect(state.takes(.link(2, flags: 1)))
        #expect(state.takes(.link(2, flags: Message.running)))
        #expect(!state.takes(.link(9, flags: Message.running)))
        #expect(!state.takes(.link(9, flags: 0).deletion))
        #expect(state.takes(.link(2, flags: 0).deletion))
        #expect(!state.takes(.link(2, flags: Message.running)))
    }

    @Test func aRouteThatIsOnlyRenewedIsNoChange() {
        let state = Judge()
        for gateway in ["192.0.2.1", "fe80::1"] {
            #expect(state.takes(.route(by: gateway)))
            #expect(!state.takes(.route(by: gateway, flags: Message.replace, expires: 60)))
            #expect(state.takes(.route(by: gateway).deletion))
            #expect(state.takes(.route(by: gateway)))
        }
        #expect(state.takes(.route(to: "198.51.0.0", by: "192.0.2.1")))
        #expect(state.takes(.route(to: "198.51.0.0", by: "192.0.2.1", table: 100)))
        #expect(state.takes(.route(by: "192.0.2.1", routeFlags: 16)))
        // Offloaded to hardware: the same way.
        #expect(!state.takes(.route(by: "192.0.2.1", routeFlags: 16 | 8)))
    }

    @Test func thereAndBackAgainIsToldTwice() {
        let state = Judge()
        #expect(state.takes(.route(by: "192.0.2.1")))
        #expect(state.takes(.route(by: "192.0.2.2", flags: Message.replace)))
        #expect(state.takes(.route(by: "192.0.2.1", flags: Message.replace)))
        // Two ways side by side, each renewed.
        #expect(state.takes(.route(by: "fe80::1")))
        #expect(state.takes(.route(by: "fe80::2")))
        #expect(!state.takes(.route(by: "fe80::1", flags: Message.replace)))
        #expect(!state.takes(.route(by: "fe80::2", flags: Message.replace)))
    }

    /// IPv4 routes vanish without a word when their link goes down, or their address.
    @Test func aRouteThatReturnsWithItsLinkIsTold() {
        let state = Judge()
        #expect(state.takes(.link(2, flags: Message.running), .address("192.0.2.7"), .route(by: "192.0.2.1")))
        #expect(state.takes(.link(2, flags: 0)))
        #expect(state.takes(.link(2, flags: Message.running)))
        #expect(state.takes(.route(by: "192.0.2.1")))
        #expect(state.takes(.address("192.0.2.7").deletion))
        #expect(state.takes(.address("192.0.2.7")))
        #expect(state.takes(.route(by: "192.0.2.1")))
        // A link without an address of its own has routes, too.
        #expect(!state.takes(.link(7, flags: Message.running)))
        #expect(state.takes(.route(by: "198.51.100.1")))
        #expect(!state.takes(.link(7, flags: 1)))
        #expect(state.takes(.route(by: "198.51.100.1")))
    }

    @Test func routesThatLeadNowhereElseAreIgnored() {
        let state = Judge()
        for message: Message in [
            .route(to: "192.0.2.7", by: "192.0.2.7", table: 255, kind: 2), .route(to: "ff00::", by: "fe80::1", kind: 5),
            .route(to: "fe80::", by: "fe80::1"),
            // What path MTU discovery found.
            .route(to: "2001:db8::1", by: "fe80::1", routeFlags: 0x200),
        ] {
            #expect(!state.takes(message))
            #expect(!state.takes(message.deletion))
        }
        // "unreachable default" is news.
        #expect(state.takes(.route(by: "fe80::1", kind: 7)))
    }

    @Test func routesAreBounded() {
        let state = Judge()
        for number in 0..<NetworkState.routeLimit {
            #expect(state.takes(.route(to: "10.\(number / 256).\(number % 256).0", by: "192.0.2.1")))
        }
        #expect(!state.takes(.route(to: "10.0.0.0", by: "192.0.2.1")))
        #expect(state.takes(.route(to: "11.0.0.0", by: "192.0.2.1")))
        #expect(state.takes(.route(to: "10.0.0.0", by: "192.0.2.1")))
    }

    @Test func oneDatagramMayHoldSeveralMessages() {
        let state = Judge()
        let done = Message(type: 3, flags: 2, body: [0, 0, 0, 0])
        #expect(!state.takes(.link(2, flags: Message.running), done))
        #expect(state.takes(.link(3, flags: 0), .address("192.0.2.7"), done))
        #expect(!state.takes(.address("192.0.2.7"), .link(3, flags: 0), done))
    }

    /// Whatever comes: no trap, and what is cut counts as a change.
    @Test func cutAndRandomBytes() {
        var generator = Chance.announced("NetworkStateTests.cutAndRandomBytes")
        let messages: [Message] = [
            .link(2, flags: 65), .address("192.0.2.7"), .address("2001:db8::7"),
            .route(to: "10.1.0.0", by: "192.0.2.1"),
        ]
        let whole = messages.flatMap(\.bytes)
        let ends = Set(messages.indices.map { messages[...$0].flatMap(\.bytes).count } + [0])
        for length in 0..<whole.count where !ends.contains(length) {
            let state = Judge()
            #expect(state.takes(Array(whole[..<length])), "\(length)")
        }
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            let state = Judge()
            _ = state.takes(bytes)
        }
    }
}
