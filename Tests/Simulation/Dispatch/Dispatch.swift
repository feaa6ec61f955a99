import Glibc

// What the daemon uses of Dispatch, on one thread and in invented time: the simulation has this module in the place of
// Dispatch (`-module-alias`), so that the sources are the same.

/// The work of all queues, in the order in which it was submitted. Nothing runs at the same time as anything else, and
/// a queue is only a name.
public enum Scheduler {
    typealias Work = () -> Void

    nonisolated(unsafe) private static var ready: [Work] = []
    nonisolated(unsafe) private static var next = 0
    nonisolated(unsafe) private static var later: [(at: UInt64, work: Work)] = []
    nonisolated(unsafe) private static var waiting: [(descriptors: [Int32], work: Work)] = []
    nonisolated(unsafe) private static var delay: [Int32]?
    nonisolated(unsafe) fileprivate static var sources: [ReadSource] = []
    /// Whether a descriptor can be read; the simulated kernel decides.
    nonisolated(unsafe) public static var isReadable: (Int32) -> Bool = { _ in false }
    /// Runs the next event outside of the program; false: there is no further one.
    nonisolated(unsafe) public static var advance: () -> Bool = { false }

    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    static func add(_ work: @escaping Work) {
        if let descriptors = delay.take() { waiting.append((descriptors, work)) } else { ready.append(work) }
    }

    /// The next submitted work, which would have waited in `poll`, runs when one of these descriptors can be read.
    public static func delayNext(until descriptors: [Int32]) { delay = descriptors }

    static func add(at moment: UInt64, _ work: @escaping Work) { later.append((moment, work)) }

    /// The moment of the next delayed work.
    public static var nextMoment: UInt64? { later.map(\.at).min() }

    /// Runs one piece of work; false: none is ready.
    public static func step() -> Bool {
        if next < ready.count {
            let work = ready[next]
            next += 1
            if next == ready.count { (ready, next) = ([], 0) }
            work()
            return true
        }
        if !later.isEmpty {
            let now = now()
            if let index = later.indices.filter({ later[$0].at <= now }).min(by: { later[$0].at < later[$1].at }) {
                later.remove(at: index).work()
                return true
            }
        }
        if let index = waiting.firstIndex(where: { $0.descriptors.contains(where: isReadable) }) {
            waiting.remove(at: index).work()
            return true
        }
        for source in sources where source.isOn && isReadable(source.descriptor) {
            source.handler?()
            return true
        }
        return false
    }

    /// Runs work until none is ready at this moment.
    public static func settle() {
        var steps = 0
        while step() {
            steps += 1
            if steps > 3_000_000 { stuck() }
        }
    }
    /// Called when the work of one moment does not end.
    nonisolated(unsafe) public static var stuck: () -> Void = {}

    /// Whether no work of a daemon that has ended is left.
    public static var isEmpty: Bool { next == ready.count && sources.isEmpty && waiting.isEmpty }
    public static var openSources: Int { sources.count + waiting.count }

    /// Drops the delayed work, for a process that has ended.
    public static func forgetLater() { later = [] }
}

public final class DispatchQueue: @unchecked Sendable {
    public let label: String
    public init(label: String, qos: DispatchQoS = .default) { self.label = label }

    private static let shared = DispatchQueue(label: "global")
    public static func global(qos: DispatchQoS.QoSClass = .default) -> DispatchQueue { shared }

    public func async(execute work: @escaping @Sendable () -> Void) { Scheduler.add(work) }

    public func asyncAfter(deadline: DispatchTime, execute work: @escaping @Sendable () -> Void) {
        Scheduler.add(at: deadline.uptimeNanoseconds, work)
    }
}

public struct DispatchQoS: Sendable {
    public enum QoSClass: Sendable { case utility, userInitiated, `default` }
    public static let background = DispatchQoS()
    public static let utility = DispatchQoS()
    public static let userInitiated = DispatchQoS()
    public static let `default` = DispatchQoS()
    public static let unspecified = DispatchQoS()
}

public enum DispatchTimeInterval: Sendable {
    case seconds(Int)
    case milliseconds(Int)
    case microseconds(Int)
    case nanoseconds(Int)

    fileprivate var count: Int {
        switch self {
        case .seconds(let count): count * 1_000_000_000
        case .milliseconds(let count): count * 1_000_000
        case .microseconds(let count): count * 1000
        case .nanoseconds(let count): count
        }
    }
}

public struct DispatchTime: Comparable, Sendable {
    public let uptimeNanoseconds: UInt64
    public static func now() -> DispatchTime { DispatchTime(uptimeNanoseconds: Scheduler.now()) }
    public static func < (one: DispatchTime, other: DispatchTime) -> Bool {
        one.uptimeNanoseconds < other.uptimeNanoseconds
    }
    public static func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime {
        DispatchTime(uptimeNanoseconds: time.uptimeNanoseconds &+ UInt64(interval.count))
    }
}

public enum DispatchTimeoutResult: Sendable { case success, timedOut }

/// A waiting caller lets all other work go on meanwhile.
public final class DispatchSemaphore: @unchecked Sendable {
    private var value: Int
    public init(value: Int) { self.value = value }

    @discardableResult public func signal() -> Int {
        value += 1
        return 0
    }

    public func wait() {
        while value == 0 {
            precondition(Scheduler.step() || Scheduler.advance(), "waited for what never happens")
        }
        value -= 1
    }

    public func wait(timeout: DispatchTime) -> DispatchTimeoutResult {
        while value == 0 {
            guard DispatchTime.now() < timeout else { return .timedOut }
            guard Scheduler.step() || Scheduler.advance() else { return .timedOut }
        }
        value -= 1
        return .success
    }
}

public final class DispatchGroup: @unchecked Sendable {
    private var count = 0
    private var notified: [@Sendable () -> Void] = []
    public init() {}
    public func enter() { count += 1 }
    public func leave() {
        count -= 1
        tell()
    }
    public func notify(queue: DispatchQueue, execute work: @escaping @Sendable () -> Void) {
        notified.append(work)
        tell()
    }
    public func wait() {
        while count > 0 { precondition(Scheduler.step() || Scheduler.advance(), "waited for what never happens") }
    }
    private func tell() {
        guard count == 0 else { return }
        for work in notified { Scheduler.add(work) }
        notified = []
    }
}

public protocol DispatchSourceProtocol: AnyObject {
    func setEventHandler(handler: (() -> Void)?)
    func setCancelHandler(handler: (() -> Void)?)
    func setRegistrationHandler(handler: (() -> Void)?)
    func activate()
    func suspend()
    func resume()
    func cancel()
}
public protocol DispatchSourceRead: DispatchSourceProtocol {}
public protocol DispatchSourceSignal: DispatchSourceProtocol {}
public protocol DispatchSourceTimer: DispatchSourceProtocol {
    func schedule(deadline: DispatchTime, repeating: DispatchTimeInterval, leeway: DispatchTimeInterval)
}

public enum DispatchSource {
    public static func makeReadSource(fileDescriptor: Int32, queue: DispatchQueue?) -> any DispatchSourceRead {
        ReadSource(fileDescriptor)
    }
    public static func makeSignalSource(signal: Int32, queue: DispatchQueue?) -> any DispatchSourceSignal {
        SilentSource()
    }
    public static func makeTimerSource(queue: DispatchQueue?) -> any DispatchSourceTimer { SilentSource() }
}

/// Level-triggered, like the sources of Dispatch.
final class ReadSource: DispatchSourceRead {
    let descriptor: Int32
    private(set) var handler: (() -> Void)?
    private var cancelled: (() -> Void)?
    private var suspensions = 1
    private var isCancelled = false

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    var isOn: Bool { suspensions == 0 && !isCancelled }

    func setEventHandler(handler: (() -> Void)?) { self.handler = handler }
    func setCancelHandler(handler: (() -> Void)?) { cancelled = handler }
    func setRegistrationHandler(handler: (() -> Void)?) { if let handler { Scheduler.add(handler) } }
    func activate() {
        suspensions -= 1
        Scheduler.sources.append(self)
    }
    func suspend() { suspensions += 1 }
    func resume() { suspensions -= 1 }
    func cancel() {
        guard !isCancelled else { return }
        isCancelled = true
        Scheduler.sources.removeAll { $0 === self }
        Scheduler.add { [self] in
            let told = cancelled
            (handler, cancelled) = (nil, nil)
            told?()
        }
    }
}

/// Signals and the service manager's watchdog do not exist here.
final class SilentSource: DispatchSourceSignal, DispatchSourceTimer {
    func setEventHandler(handler: (() -> Void)?) {}
    func setCancelHandler(handler: (() -> Void)?) {}
    func setRegistrationHandler(handler: (() -> Void)?) { if let handler { Scheduler.add(handler) } }
    func activate() {}
    func suspend() {}
    func resume() {}
    func cancel() {}
    func schedule(deadline: DispatchTime, repeating: DispatchTimeInterval, leeway: DispatchTimeInterval) {}
}
