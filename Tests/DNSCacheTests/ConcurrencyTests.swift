import Base
import DNSWire
import Dispatch
import TestSupport
import Testing

@testable import DNSCache

@Suite struct ConcurrencyTests {
    /// Eight threads find, answer, store and remove on few names in a small cache: every answer read is a whole one, of
    /// the name asked. (The thread sanitizer sees no lock in the standard library's Mutex and reports races that are none;
    /// with a pthread mutex in its place it is silent.)
    @Test func eightThreadsAtOnce() {
        let cache = DNSCache(bytes: 1 << 20, staleSeconds: 10, prefetchAt: 50, seed: (8, 9))
        let names = hosts(512)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            var chance = Chance(seed: UInt64(thread))
            for step in 0..<4_000 {
                let number = chance.below(names.count)
                let name = names[number]
                let now = UInt32(step / 100)
                switch chance.below(8) {
                case 0...2: cache.store(address(UInt32(number), of: name), to: name, type: .a, for: everyone, at: now)
                case 3:
                    let large = filler(name, bodyLength: 64 + chance.below(3000), octet: UInt8(number & 0xFF))
                    cache.store(large, to: name, type: .txt, for: everyone, at: now)
                case 4...5:
                    if let seen = cache.ask(name.description, at: now) {
                        #expect(seen.records == [IPAddress(v4: UInt32(number)).description])
                    }
                case 6:
                    if let found = cache.find(name, type: .txt, for: plain, at: now) {
                        let data = found.answer.records().first?.rdata ?? []
                        #expect(!data.isEmpty && data.allSatisfy { $0 == UInt8(number & 0xFF) })
                    }
                default:
                    if chance.below(100) == 0 { cache.remove(.only(name)) }
                    if chance.below(1000) == 0 { cache.removeAll() }
                    #expect(cache.statistics.bytes <= 1 << 20)
                }
            }
        }
    }
}
