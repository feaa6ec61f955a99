import Base
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Transport

@Suite struct EventLoopTests {
    @Test func aTurnWaitsForTheThreadsOfItsProcessorAlone() throws {
        let loop = try EventLoop(label: "test loop")
        #expect(loop.waitsForThisThread == nil)
        loop.start()
        // The thread may move to another processor in the middle, and back.
        #expect(try loop.inTurn { loop in (0..<1000).contains { _ in loop.waitsForThisThread == true } })
        loop.end()
        #expect(loop.waitsForThisThread == nil)
    }

    @Test func whoIsAwayGoesOnWhenTheLoopHasNothingLeftToDo() throws {
        let loop = try EventLoop(label: "test loop")
        let waiter = Waiter()
        loop.waiters = [waiter]
        loop.start()
        let journal = Journal<Bool>()
        try loop.inTurn { _ in
            waiter.leave()
            loop.submit { journal.append(waiter.isAway) }
        }
        #expect(waiter.gate.wait())
        // In the turn that followed at once it was still away.
        #expect(journal.all == [true])
        loop.end()
    }

    private final class Waiter: LoopWaiter {
        let gate = Gate()
        private let away = Atomic(false)
        var isAway: Bool { away.load(ordering: .relaxed) }
        func leave() { away.store(true, ordering: .relaxed) }
        func goOn() { if away.exchange(false, ordering: .relaxed) { gate.open() } }
    }

    @Test func aTurnWhoseEventsTakeLongEndsBeforeTheyAreAllDelivered() throws {
        let loop = try EventLoop(label: "test loop")
        let journal = Journal<String>()
        let done = Gate()
        let pairs = (0..<4).map { _ in SocketPair() }
        loop.turnEnded = { journal.append("turn") }
        loop.start()
        let before = try loop.inTurn { _ in
            for (number, pair) in pairs.enumerated() {
                pair.poke()
                try loop.observe(pair) { _ in
                    pair.drain()
                    journal.append("event")
                    // The first ends a turn of its own, the others fit into one.
                    let end = Clock.now() + (number == 0 ? 10_000_000 : 0)
                    while Clock.now() < end {}
                    loop.submit { journal.append("work") }
                    if number == 3 { loop.submit { done.open() } }
                }
            }
            return loop.turns
        }
        #expect(done.wait())
        let after = try loop.inTurn { $0.turns }
        #expect(
            Array(journal.all.drop { $0 == "turn" }.prefix(10)) == [
                "event", "work", "turn", "event", "event", "event", "work", "work", "work", "turn",
            ])
        #expect(after > before + 2)
        loop.end()
    }

    @Test func oneEventATurnIsDeliveredOfThoseThatGiveWay() throws {
        let loop = try EventLoop(label: "test loop")
        let journal = Journal<String>()
        let done = Gate()
        let pairs = (0..<5).map { _ in SocketPair() }
        loop.turnEnded = { journal.append("turn") }
        loop.start()
        try loop.inTurn { loop in
            for (number, pair) in pairs.enumerated() {
                pair.poke()
                // The last one gives way no more, as a client whose handshake is done.
                let registration = try loop.observe(pair, givesWay: number < 3 || number == 4) { _ in
                    pair.drain()
                    journal.append(number < 3 ? "later" : "first")
                    if journal.all.count(where: { $0 == "later" }) == 3 { done.open() }
                }
                if number == 4 { loop.giveWayNoMore(registration) }
            }
        }
        #expect(done.wait())
        // The turn of the last event has ended before another turn does this work.
        try loop.inTurn { _ in }
        #expect(
            Array(journal.all.drop { $0 == "turn" }.prefix(8)) == [
                "first", "first", "later", "turn", "later", "turn", "later", "turn",
            ])
        loop.end()
    }

    @Test func whatIsThereBeforeADescriptorIsWaitedForIsReported() throws {
        let loop = try EventLoop(label: "test loop")
        let sender = PlainClient()
        let socket = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        let ready = Gate()
        loop.start()
        sender.send([1], to: socket.local)
        try loop.inTurn { loop in
            let registration = try loop.register(socket.descriptor, [], ClosureHandler { _ in ready.open() })
            loop.update(registration, .readable)
        }
        #expect(ready.wait())
        loop.end()
    }

    @Test func submissionsFromEightThreadsAllRunInOrder() throws {
        let loop = try EventLoop(label: "test loop")
        let journal = Journal<(thread: Int, number: Int)>()
        let done = Gate()
        loop.start()
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for number in 0..<2000 { loop.submit { journal.append((thread, number)) } }
        }
        loop.submit { done.open() }
        #expect(done.wait())
        let all = journal.all
        #expect(all.count == 16_000)
        for thread in 0..<8 {
            #expect(all.filter { $0.thread == thread }.map(\.number) == Array(0..<2000))
        }
        loop.end()
    }

    @Test func manySubmissionsAreOneTurn() throws {
        let loop = try EventLoop(label: "test loop")
        let journal = Journal<String>()
        loop.turnEnded = { journal.append("turn") }
        let gate = Gate()
        for number in 0..<3 { loop.submit { journal.append("work \(number)") } }
        loop.submit {
            // Submitted in a turn: the next one.
            loop.submit {
                journal.append("next")
                loop.submit { gate.open() }
            }
        }
        loop.start()
        #expect(gate.wait())
        #expect(Array(journal.all.prefix(6)) == ["work 0", "work 1", "work 2", "turn", "next", "turn"])
        loop.end()
    }

    @Test func aTurnIsEventsThenWorkThenTheDeadlineThenItsEnd() throws {
        let loop = try EventLoop(label: "test loop")
        let journal = Journal<String>()
        let gate = Gate()
        let pairs = [SocketPair(), SocketPair()]
        for pair in pairs {
            pair.poke()
            try loop.observe(pair) { _ in
                pair.drain()
                journal.append("event")
            }
        }
        loop.setDeadline(1)
        // The timer is due before the loop begins.
        let due = Clock.now() + 1_000_000
        while Clock.now() < due { sched_yield() }
        loop.submit { journal.append("work") }
        loop.deadlineReached = { journal.append("deadline") }
        loop.turnEnded = {
            journal.append("end")
            gate.open()
        }
        loop.start()
        #expect(gate.wait())
        #expect(journal.all == ["event", "event", "work", "deadline", "end"])
        loop.end()
    }

    @Test func aHandlerMayEndAnotherWhoseEventIsFetchedAlready() throws {
        let loop = try EventLoop(label: "test loop")
        let pairs = [SocketPair(), SocketPair()]
        let journal = Journal<Int>()
        let fresh = SocketPair()
        let gate = Gate()
        nonisolated(unsafe) var registrations: [Registration] = []
        for (index, pair) in pairs.enumerated() {
            pair.poke()
            let handler = ClosureHandler { _ in
                journal.append(index)
                let other = 1 - index
                loop.unregister(registrations[other])
                // The slot and, as likely as not, the number of the descriptor are used again at once.
                pairs[other].ours.close()
                let next = SocketPair()
                registrations[other] = try! loop.observe(next) { _ in journal.append(100 + other) }
                fresh.poke()
                withExtendedLifetime(next) {}
                pair.drain()
            }
            registrations.append(try loop.register(pair.ours, .readable, handler))
        }
        try loop.observe(fresh) { _ in
            fresh.drain()
            gate.open()
        }
        loop.start()
        #expect(gate.wait())
        // Whichever came first ended the other; nobody answered for the newcomer.
        #expect(journal.all.count == 1 && journal.all[0] < 100)
        loop.end()
    }

    @Test func aHandlerMayEndAndCloseItself() throws {
        let loop = try EventLoop(label: "test loop")
        let pair = SocketPair()
        let journal = Journal<String>()
        nonisolated(unsafe) var registration: Registration?
        registration = try loop.observe(pair) { _ in
            journal.append("event")
            loop.unregister(registration!)
            // The second time it means nobody.
            loop.unregister(registration!)
            loop.update(registration!, .writable)
            pair.ours.close()
        }
        pair.poke()
        loop.start()
        for _ in 0..<3 { try loop.inTurn { _ in } }
        #expect(journal.all == ["event"])
        loop.end()
    }

    @Test func readinessIsLevelTriggeredAndFollowsTheInterest() throws {
        let loop = try EventLoop(label: "test loop")
        let pair = SocketPair()
        let journal = Journal<Readiness>()
        let gate = Gate()
        nonisolated(unsafe) var registration: Registration?
        registration = try loop.observe(pair) { readiness in
            journal.append(readiness)
            switch journal.all.count {
            case 1, 2: break
            case 3: loop.update(registration!, [.readable, .writable])
            case 4: loop.update(registration!, .writable)
            default:
                loop.update(registration!, [])
                gate.open()
            }
        }
        pair.poke()
        loop.start()
        #expect(gate.wait())
        for _ in 0..<3 { try loop.inTurn { _ in } }
        #expect(journal.all == [.readable, .readable, .readable, [.readable, .writable], .writable])
        loop.end()
    }

    @Test func aHangUpShowsAsWhatWasAskedForAndIsSilentWithoutInterest() throws {
        let loop = try EventLoop(label: "test loop")
        let pair = SocketPair()
        let journal = Journal<Readiness>()
        nonisolated(unsafe) var registration: Registration?
        registration = try loop.observe(pair) { readiness in
            journal.append(readiness)
            loop.update(registration!, [])
        }
        pair.theirs.close()
        loop.start()
        for _ in 0..<5 { try loop.inTurn { _ in } }
        #expect(journal.all == [.readable])
        try loop.inTurn { $0.update(registration!, .readable) }
        for _ in 0..<3 { try loop.inTurn { _ in } }
        #expect(journal.all == [.readable, .readable])
        loop.end()
    }

    @Test func aPauseIsSilenceForAWhile() throws {
        let loop = try EventLoop(label: "test loop")
        let pair = SocketPair()
        let times = Journal<UInt64>()
        let gate = Gate()
        nonisolated(unsafe) var registration: Registration?
        registration = try loop.observe(pair) { _ in
            times.append(Clock.now())
            if times.all.count == 1 {
                loop.pause(registration!, nanoseconds: 5_000_000)
            } else {
                loop.unregister(registration!)
                gate.open()
            }
        }
        pair.poke()
        loop.start()
        #expect(gate.wait())
        #expect(times.all.count == 2 && times.all[1] - times.all[0] >= 5_000_000)
        loop.end()
    }

    @Test func whatCannotBeWatchedAfterItsPauseIsTriedAgain() throws {
        let loop = try EventLoop(label: "test loop")
        let pair = SocketPair()
        let gate = Gate()
        nonisolated(unsafe) var registration: Registration?
        registration = try loop.observe(pair) { _ in
            loop.unregister(registration!)
            gate.open()
        }
        pair.poke()
        loop.pause(registration!, nanoseconds: 1_000_000)
        // In its place for a while: a file, which cannot be watched, as nothing can while the kernel has no memory.
        let (socket, file) = (dup(pair.ours.raw), open("/proc/self/exe", O_RDONLY))
        defer { for descriptor in [socket, file] { close(descriptor) } }
        dup2(file, pair.ours.raw)
        loop.deadlineReached = { dup2(socket, pair.ours.raw) }
        loop.setDeadline(Clock.now() + 20_000_000)
        loop.start()
        #expect(gate.wait())
        loop.end()
    }

    @Test func aPausedRegistrationThatEndsIsNotWokenUp() throws {
        let loop = try EventLoop(label: "test loop")
        let (first, second) = (SocketPair(), SocketPair())
        let journal = Journal<String>()
        let registration = try loop.register(first.ours, .readable, ClosureHandler { _ in journal.append("first") })
        loop.pause(registration, nanoseconds: 2_000_000)
        loop.unregister(registration)
        // The same slot, with an event that waits but no interest in it.
        _ = try loop.register(second.ours, [], ClosureHandler { _ in journal.append("second") })
        first.poke()
        second.poke()
        let gate = Gate()
        loop.deadlineReached = { gate.open() }
        loop.setDeadline(Clock.now() + 6_000_000)
        loop.start()
        #expect(gate.wait())
        #expect(journal.all == [])
        loop.end()
    }

    @Test func theDeadlineIsNeverEarlyAndTheLastOneSetCounts() throws {
        let loop = try EventLoop(label: "test loop")
        let reached = Journal<UInt64>()
        let gate = Gate()
        nonisolated(unsafe) var expected: [UInt64] = []
        loop.deadlineReached = {
            reached.append(Clock.now())
            let now = Clock.now()
            switch reached.all.count {
            case 1:
                // Later than what the timer may still be set to.
                loop.setDeadline(now + 1_000_000)
                loop.setDeadline(now + 6_000_000)
                expected.append(now + 6_000_000)
            case 2:
                // Earlier.
                loop.setDeadline(now + 3_600_000_000_000)
                loop.setDeadline(now + 1_000_000)
                expected.append(now + 1_000_000)
            case 3:
                // None, then one.
                loop.setDeadline(now + 1_000_000)
                loop.setDeadline(nil)
                loop.setDeadline(now + 4_000_000)
                expected.append(now + 4_000_000)
            case 4:
                // In the past: at once.
                loop.setDeadline(0)
                expected.append(now)
            default: gate.open()
            }
        }
        let first = Clock.now() + 3_000_000
        expected.append(first)
        loop.setDeadline(first)
        loop.start()
        #expect(gate.wait())
        loop.end()
        #expect(reached.all.count == 5)
        for (time, earliest) in zip(reached.all, expected) {
            #expect(time >= earliest)
            // An hour off is what a forgotten re-arming would look like; a busy machine stays far below.
            #expect(time < earliest + 5_000_000_000)
        }
    }

    /// Performs work again and again until the loop was found at rest and it ran on this thread, as a loop is sooner or later.
    private func performHere(_ loop: EventLoop, _ work: @escaping @Sendable () -> Void) -> Bool {
        let ranHere = Journal<Bool>()
        let caller = UInt(pthread_self())
        let end = Clock.now() + 10_000_000_000
        while Clock.now() < end, ranHere.all.last != true {
            let before = ranHere.all.count
            loop.perform {
                if pthread_self() == caller { work() }
                ranHere.append(pthread_self() == caller)
            }
            while ranHere.all.count == before, Clock.now() < end { sched_yield() }
        }
        return ranHere.all.last == true
    }

    @Test func workIsPerformedHereWhenTheLoopIsAtRest() throws {
        let loop = try EventLoop(label: "test loop")
        let journal = Journal<String>()
        let (event, time) = (Gate(), Gate())
        let caller = UInt(pthread_self())
        loop.turnEnded = { if pthread_self() == caller { journal.append("end") } }
        loop.deadlineReached = { time.open() }
        loop.start()
        let pair = SocketPair()
        #expect(
            performHere(loop) {
                journal.append("work")
                loop.assertOnLoop()
                // While the loop's own thread waits, in Dispatch or in epoll_wait.
                loop.setDeadline(Clock.now() + 1_000_000)
                try! loop.observe(pair) { _ in
                    pair.drain()
                    loop.assertOnLoop()
                    event.open()
                }
            })
        #expect(journal.all == ["work", "end"])
        pair.poke()
        #expect(event.wait() && time.wait())
        loop.end()
    }

    @Test func workPerformedInATurnHasOneOfItsOwnAfterwards() throws {
        let loop = try EventLoop(label: "test loop")
        let journal = Journal<String>()
        let gate = Gate()
        loop.turnEnded = { journal.append("end") }
        loop.start()
        #expect(
            performHere(loop) {
                journal.append("first")
                loop.submit { journal.append("second") }
                // What waits already comes first.
                loop.perform {
                    journal.append("third")
                    gate.open()
                }
                journal.append("still first")
            })
        #expect(gate.wait())
        let entries = journal.all.drop { $0 == "end" }
        #expect(entries.filter { $0 != "end" } == ["first", "still first", "second", "third"])
        #expect(Array(entries.prefix(3)) == ["first", "still first", "end"])
        loop.end()
    }

    @Test func workIsNotPerformedBeforeTheStartNorAfterTheStop() throws {
        let loop = try EventLoop(label: "test loop")
        let journal = Journal<String>()
        let gate = Gate()
        loop.perform {
            journal.append("early")
            gate.open()
        }
        #expect(journal.all == [])
        loop.start()
        #expect(gate.wait())
        loop.end()
        loop.perform { journal.append("late") }
        #expect(journal.all == ["early"])
    }

    @Test func turnsOfSeveralThreadsNeverOverlapAndLoseNothing() throws {
        let loop = try EventLoop(label: "test loop")
        let (threads, each) = (4, 2000)
        // Touched in turns only, by plain loads and stores: turns that overlapped would show, and the thread sanitizer sees it.
        final class Confined: @unchecked Sendable {
            var isBusy = false
            var overlaps = 0
            var order: [[Int]]
            var performed = 0
            var events = 0
            init(_ threads: Int) { order = Array(repeating: [], count: threads) }
            func turn(_ body: () -> Void) {
                if isBusy { overlaps += 1 }
                isBusy = true
                body()
                isBusy = false
            }
        }
        let confined = Confined(threads)
        let done = Counters(threads)
        let pair = SocketPair()
        try loop.observe(pair) { _ in
            pair.drain()
            confined.turn { confined.events += 1 }
        }
        loop.turnEnded = { confined.turn {} }
        loop.deadlineReached = { confined.turn {} }
        loop.start()
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            let caller = UInt(pthread_self())
            for number in 0..<each {
                let work: @Sendable () -> Void = {
                    loop.assertOnLoop()
                    confined.turn {
                        confined.order[thread].append(number)
                        if pthread_self() == caller { confined.performed += 1 }
                        if number % 16 == 0 { loop.setDeadline(Clock.now()) }
                    }
                    done.add(thread)
                }
                if number % 5 == thread { loop.submit(work) } else { loop.perform(work) }
                if number % 64 == 0 { pair.poke() }
                // Between bursts the loop comes to rest; what waits is run without anybody's help.
                let end = Clock.now() + 10_000_000_000
                while number % 8 == 7, done.all[thread] <= number, Clock.now() < end { sched_yield() }
            }
        }
        // The threads may never have found the loop at rest.
        #expect(performHere(loop) { confined.turn { confined.performed += 1 } })
        let last = Gate()
        loop.submit { last.open() }
        #expect(last.wait())
        loop.end()
        #expect(confined.overlaps == 0)
        #expect(confined.order.allSatisfy { $0 == Array(0..<each) })
        #expect(confined.performed > 0 && confined.events > 0)
    }

    @Test func stopReleasesEverythingAndDropsWhatIsSubmittedLater() throws {
        final class Witness: Sendable {}
        weak var loop: EventLoop?
        weak var handler: ClosureHandler?
        weak var hooked: Witness?
        weak var submitted: Witness?
        let pair = SocketPair()
        let gate = Gate()
        let ran = Journal<String>()
        do {
            let made = try EventLoop(label: "short-lived")
            let (inHook, inWork, inHandler) = (Witness(), Witness(), ClosureHandler())
            (loop, handler, hooked, submitted) = (made, inHandler, inHook, inWork)
            // Cycles on purpose: only stop can break them.
            inHandler.body = { _ in made.assertOnLoop() }
            made.turnEnded = { withExtendedLifetime((made, inHook)) {} }
            made.deadlineReached = { withExtendedLifetime(made) {} }
            _ = try made.register(pair.ours, .readable, inHandler)
            made.start()
            made.submit {
                // Not begun when the loop stops.
                made.stop { gate.open() }
                made.submit { withExtendedLifetime(inWork) { ran.append("work after stop") } }
            }
        }
        #expect(gate.wait())
        loop?.submit { ran.append("late") }
        // Dispatch lets go of the last handler just after it has run.
        let deadline = Clock.now() + 5_000_000_000
        while loop != nil || handler != nil || hooked != nil || submitted != nil, Clock.now() < deadline {
            sched_yield()
        }
        #expect(loop == nil && handler == nil && hooked == nil && submitted == nil)
        #expect(ran.all == [])
    }

    @Test func stopWithoutStartReleasesToo() throws {
        let gate = Gate()
        weak var handler: ClosureHandler?
        let pair = SocketPair()
        do {
            let loop = try EventLoop(label: "never started")
            let made = ClosureHandler()
            handler = made
            _ = try loop.register(pair.ours, .readable, made)
            loop.stop { gate.open() }
        }
        #expect(gate.wait())
        let deadline = Clock.now() + 5_000_000_000
        while handler != nil, Clock.now() < deadline { sched_yield() }
        #expect(handler == nil)
    }

    @Test func whatCannotBeWatchedIsRefusedAndLeavesNothingBehind() throws {
        let loop = try EventLoop(label: "refusing")
        let closed = Descriptor(adopting: -1)
        #expect(throws: SystemError("epoll_ctl", code: EBADF)) {
            _ = try loop.register(closed, .readable, ClosureHandler())
        }
        let file = Descriptor(adopting: open("/proc/self/exe", O_RDONLY))
        #expect(throws: SystemError("epoll_ctl", code: EPERM)) {
            _ = try loop.register(file, .readable, ClosureHandler())
        }
        let pair = SocketPair()
        #expect(try loop.register(pair.ours, .readable, ClosureHandler()).slot == 0)
    }

    @Test func moreEventsThanATurnHoldsAllCome() throws {
        let loop = try EventLoop(label: "test loop")
        let pairs = (0..<200).map { _ in SocketPair() }
        let seen = Counters(200)
        let gate = Gate()
        for (index, pair) in pairs.enumerated() {
            pair.poke()
            try loop.observe(pair) { _ in
                pair.drain()
                seen.add(index)
                if seen.all.reduce(0, +) == 200 { gate.open() }
            }
        }
        loop.start()
        #expect(gate.wait())
        #expect(seen.all.allSatisfy { $0 == 1 })
        loop.end()
    }
}
