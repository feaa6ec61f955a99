import Base
import Glibc
import SimulatedDispatch
import TestSupport

/// The one simulated machine: its time, its descriptors and its random octets.
nonisolated(unsafe) let kernel = Kernel()

/// An object behind a descriptor. Confined, like all of this, to the only thread.
class KernelObject {
    var isReadable: Bool { false }
    var isWritable: Bool { false }
    var hasFailed: Bool { false }
    func closed() {}
}

final class Kernel {
    static let firstDescriptor: Int32 = 1_000_000

    /// Nanoseconds since the machine started, sleep included.
    private(set) var now: UInt64 = 0
    /// Nanoseconds of `now` in which the machine slept.
    private(set) var slept: UInt64 = 0
    /// Nanoseconds since 1970 at the start of the machine, as its clock has it.
    private(set) var epoch: UInt64 = 0
    /// Seconds by which the clock has been set.
    private var wrongBy = 0
    /// Nanoseconds in which the machine was awake.
    var awake: UInt64 { now - slept }
    var random = Chance(seed: 0)
    private var objects: [KernelObject?] = []
    private var timers: [KernelTimer] = []
    private var events = EventHeap()
    private var serial: UInt64 = 0
    /// The number of moments with events.
    private(set) var moments = 0
    /// The end of the time in which no descriptor is given out.
    private var noDescriptorsUntil: UInt64 = 0
    /// The number of looks in a row without progress of time.
    private var idling = 0
    let files = KernelFiles()
    let network = Network()

    /// Starts another machine.
    func restart(seed: UInt64) {
        precondition(openDescriptors == 0 && Scheduler.isEmpty)
        Scheduler.forgetLater()
        random = Chance(seed: seed)
        (now, slept, noDescriptorsUntil, wrongBy) = (1_000_000_000_000, 0, 0, 0)
        // May 2027, after any build of this program.
        epoch = 1_810_000_000_000_000_000
        (objects, timers) = ([], [])
        events = EventHeap()
        files.clear()
        network.clear()
    }

    /// Drops all planned events.
    func abandon() {
        events = EventHeap()
        for index in objects.indices where objects[index] != nil { _ = close(Int32(index) + Self.firstDescriptor) }
        events = EventHeap()
        network.clear()
    }

    // MARK: Time

    func at(_ moment: UInt64, _ work: @escaping () -> Void) {
        serial += 1
        events.insert(EventHeap.Event(at: max(moment, now), serial: serial, work: work))
    }

    func after(_ nanoseconds: UInt64, _ work: @escaping () -> Void) { at(now + nanoseconds, work) }

    /// Goes on to the next moment with an event; false: there is none.
    func advance() -> Bool {
        var next = events.first?.at ?? .max
        // A due timer that the daemon does not read any more does not count.
        for timer in timers where !timer.isReadable { next = min(next, timer.at) }
        if let moment = Scheduler.nextMoment { next = min(next, moment) }
        guard next < .max else { return false }
        if next > now { idling = 0 }
        isIdling()
        now = max(now, next)
        moments += 1
        while let event = events.first, event.at <= now {
            events.removeFirst()
            event.work()
        }
        return true
    }

    /// A descriptor was looked at, and no time has passed since the last look.
    func isIdling() {
        idling += 1
        if idling > 2_000_000 { judge.stuck("the daemon does something without end, and time stands still") }
    }

    /// Runs all events until `moment`.
    func run(until moment: UInt64) {
        var isOver = false
        at(moment) { isOver = true }
        while !isOver {
            Scheduler.settle()
            guard !isOver else { break }
            _ = advance()
        }
        Scheduler.settle()
    }

    /// Time passes in which nothing runs.
    func sleep(_ nanoseconds: UInt64) {
        now += nanoseconds
        slept += nanoseconds
    }

    func setClock(by seconds: Int) {
        epoch = UInt64(Int(epoch) + seconds * 1_000_000_000)
        wrongBy += seconds
        judge.clockIsSet(by: seconds)
    }

    /// Seconds since 1970 by the right clock.
    var trueTime: UInt64 { (epoch + now) / 1_000_000_000 &- UInt64(bitPattern: Int64(wrongBy)) }

    // MARK: Descriptors

    var hasDescriptors: Bool { now >= noDescriptorsUntil }

    /// Whether descriptors were missing within this time.
    func lackedDescriptors(within time: UInt64) -> Bool { noDescriptorsUntil > 0 && now < noDescriptorsUntil + time }

    func withoutDescriptors(until moment: UInt64) { noDescriptorsUntil = moment }

    func open(_ object: KernelObject) -> Int {
        guard hasDescriptors else { return -Int(EMFILE) }
        if let timer = object as? KernelTimer { timers.append(timer) }
        let index = objects.firstIndex { $0 == nil } ?? objects.count
        if index == objects.count { objects.append(nil) }
        objects[index] = object
        return Int(Self.firstDescriptor) + index
    }

    subscript(descriptor: Int32) -> KernelObject? {
        let index = Int(descriptor - Self.firstDescriptor)
        return objects.indices.contains(index) ? objects[index] : nil
    }

    func close(_ descriptor: Int32) -> Int {
        guard let object = self[descriptor] else {
            judge.fault("descriptor \(descriptor) is closed twice")
            return -Int(EBADF)
        }
        objects[Int(descriptor - Self.firstDescriptor)] = nil
        for case let epoll as KernelEpoll in objects { epoll.forget(descriptor) }
        if let timer = object as? KernelTimer { timers.removeAll { $0 === timer } }
        object.closed()
        return 0
    }

    var openDescriptors: Int { objects.count { $0 != nil } }
    /// Those of each kind, by its name.
    func count<Object: KernelObject>(_ kind: Object.Type) -> Int { objects.count { $0 is Object } }
    func all<Object: KernelObject>(_ kind: Object.Type) -> [Object] { objects.compactMap { $0 as? Object } }
}

/// The planned events, the earliest first, and those of one moment in the order of their planning.
struct EventHeap {
    struct Event {
        let at: UInt64
        let serial: UInt64
        let work: () -> Void
        static func < (one: Event, other: Event) -> Bool { (one.at, one.serial) < (other.at, other.serial) }
    }
    private var events: [Event] = []
    var first: Event? { events.first }

    mutating func insert(_ event: Event) {
        events.append(event)
        var index = events.count - 1
        while index > 0, events[index] < events[(index - 1) / 2] {
            events.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    mutating func removeFirst() {
        events.swapAt(0, events.count - 1)
        events.removeLast()
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < events.count && events[child] < events[least] {
                least = child
            }
            guard least != index else { return }
            events.swapAt(index, least)
            index = least
        }
    }
}

/// eventfd(2).
final class KernelCounter: KernelObject {
    var count: UInt64 = 0
    override var isReadable: Bool { count > 0 }
}

/// timerfd(2).
final class KernelTimer: KernelObject {
    /// The moment at which it fires; `max`: it is not set, or has fired and was acknowledged.
    fileprivate(set) var at = UInt64.max
    private(set) var isDue = false
    override var isReadable: Bool {
        if at <= kernel.now { (at, isDue) = (.max, true) }
        return isDue
    }
    func set(_ moment: UInt64) { (at, isDue) = (moment, false) }
    func acknowledge() { isDue = false }
}

/// epoll(7), level-triggered.
final class KernelEpoll: KernelObject {
    private var entries: [(descriptor: Int32, events: UInt32, token: UInt64)] = []

    override var isReadable: Bool { entries.contains { Self.ready($0.descriptor, $0.events) != 0 } }

    static func ready(_ descriptor: Int32, _ events: UInt32) -> UInt32 {
        guard let object = kernel[descriptor] else { return 0 }
        var ready: UInt32 = 0
        if object.isReadable { ready |= Control.readable & events }
        if object.isWritable { ready |= Control.writable & events }
        if object.hasFailed { ready |= Control.failed }
        return ready
    }

    func forget(_ descriptor: Int32) { entries.removeAll { $0.descriptor == descriptor } }

    func control(_ operation: Int32, _ descriptor: Int32, _ events: UInt32, _ token: UInt64) -> Int {
        guard kernel[descriptor] != nil else { return -Int(EBADF) }
        let index = entries.firstIndex { $0.descriptor == descriptor }
        switch operation {
        case Control.add:
            guard index == nil else { return -Int(EEXIST) }
            entries.append((descriptor, events, token))
        case Control.modify:
            guard let index else { return -Int(ENOENT) }
            entries[index] = (descriptor, events, token)
        default:
            guard let index else { return -Int(ENOENT) }
            entries.remove(at: index)
        }
        return 0
    }

    /// The next that is ready from an index on, and the index after it; nil: none is.
    func next(_ start: Int) -> (index: Int, events: UInt32, token: UInt64)? {
        guard start < entries.count else { return nil }
        for index in start..<entries.count {
            let ready = Self.ready(entries[index].descriptor, entries[index].events)
            if ready != 0 { return (index + 1, ready, entries[index].token) }
        }
        return nil
    }
}

/// The operations of epoll_ctl(2), as in its header.
private enum Control {
    static let readable: UInt32 = 1
    static let writable: UInt32 = 4
    static let failed: UInt32 = 8
    static let add: Int32 = 1
    static let modify: Int32 = 3
}
