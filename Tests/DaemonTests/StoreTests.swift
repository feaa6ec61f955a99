import Base
import Configuration
import DNSWire
import Forwarding
import Testing
import Transport

@testable import Daemon
@testable import Upstreams

/// The store of a fleet over a reload.
@Suite struct StoreTests {
    @Test func whatIsToBeDeletedIsNotForgottenByAReload() throws {
        let text = "[sharedCache]\nserver = \"unix:/run/valkey.sock\"\nkeyFile = \"fleet-key\"\n"
        let settings = try Settings.load(text) { _ in .bytes(Array("a key of the fleet, long enough to be one".utf8)) }
        let prepared = try Store.Prepared(settings.sharedCache)
        let store = Store(nil, loop: try EventLoop(label: "test"), outbox: Outbox())
        #expect(store.apply(prepared))
        let former = try #require(store.upstream)
        former.apply([.httpdns: [1]])
        let now = UInt64(1_700_000_000)
        let name = Name("www.example.com")!
        former.perform(
            .delete([SharedQuestion(group: .httpdns, name: name, type: .a, audience: .everyone)]), wall: now)
        former.perform(.beginGeneration, wall: now)
        // The entry and its stale copy.
        #expect(former.pendingDeletes.count == 2)
        #expect(store.apply(prepared))
        let upstream = try #require(store.upstream)
        #expect(upstream !== former && upstream.pendingDeletes == former.pendingDeletes && upstream.isGenerationDue)
        for key in upstream.pendingDeletes { #expect(upstream.forgotten.holds(key, stored: now - 1)) }
        #expect(store.apply(nil) && store.upstream == nil)
        // A later reload has the store again.
        #expect(!store.apply(nil) && store.apply(prepared))
        let last = try #require(store.upstream)
        #expect(last !== former && last.pendingDeletes == former.pendingDeletes && last.isGenerationDue)
    }
}
