import CKernel
import Glibc
import SimulatedDispatch
import TestSupport

// The order in dictionaries must be the same in each run, like the rest of the simulation.
kernel_restart_with("SWIFT_DETERMINISTIC_HASHING", "1", CommandLine.unsafeArgv)
// A crash is looked at only when its script is short.
kernel_restart_with("SWIFT_BACKTRACE", getenv("KEEP") == nil ? "enable=no" : "enable=yes", CommandLine.unsafeArgv)

func variable(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
}

let isVerbose = variable("VERBOSE") != nil
let hours = variable("SIMULATED_HOURS").flatMap(Int.init) ?? 1000
let given = variable("SEED").flatMap(UInt64.init)
let kept = variable("KEEP")?.split(separator: ",").compactMap { Int($0) }

/// The most seconds of an episode, which usually takes one or two.
let patience: UInt32 = 300

var first = SystemRandomNumberGenerator()
let seed = given ?? first.next() >> 1
kernel_begin()
kernel_take_random()
kernel.random = Chance(seed: 1)
Scheduler.isReadable = { kernel[$0]?.isReadable ?? false }
Scheduler.advance = { kernel.advance() }
Scheduler.stuck = { judge.stuck("there is no end to what has to be done at this moment") }
_ = certificates.trusted

let began = kernel_real_nanoseconds()
func seconds() -> Double { Double(kernel_real_nanoseconds() - began) / 1e9 }
func rounded(_ number: Double) -> String { "\((number * 10).rounded() / 10)" }

/// Prints the faults, with the fewest events that still cause them.
/// - Parameter run: Runs a script with some of its events, and returns the faults.
func report(
    _ script: Script, _ faults: [String], after before: UInt64, run: @escaping ([Script.Item]) -> [String]
) -> Never {
    print("seed \(script.seed), after \(before / 3600) hours, \(rounded(seconds())) s:\n\(faults[0])")
    fflush(nil)
    let few = Shortening(script, faults, run: run).shortest()
    print("\nthe shortest script that fails:\n")
    for index in few.indices { print(Script.text(script.items[index])) }
    print("# \(few.faults.first ?? faults[0])")
    let indices = few.indices.map(String.init).joined(separator: ",")
    print(
        "\nagain, with its settings, the daemon's log and whom it asks: make simulate SEED=\(script.seed) KEEP=\(indices) VERBOSE=1"
    )
    exit(1)
}

/// The features that have met in several runs together.
if let files = variable("CROSSINGS_OF") {
    var all = Crossings()
    for file in files.split(separator: " ") {
        guard let stream = fopen(String(file), "r") else { continue }
        var octets = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&octets, 1, octets.count, stream)
        fclose(stream)
        all.add(String(decoding: octets[..<count], as: UTF8.self))
    }
    for line in all.lines { print(line) }
    exit(0)
}

if let kept {
    let script = Script(seed: seed)
    let faults = Episode.run(script, items: kept.map { script.items[$0] })
    for fault in faults { print(fault) }
    exit(faults.isEmpty ? 0 : 1)
}

print("seed \(seed)")
fflush(nil)

// Another process runs the episodes: when it crashes, this one still knows the seed.
/// The seed of the episode under way.
let underWay = kernel_shared()!
let worker = kernel_fork(0)
guard worker == 0 else {
    let status = kernel_wait(worker)
    let what =
        switch status {
        case -SIGALRM: "there is no end to what the daemon does at one moment"
        case Judge.stuckStatus: "the daemon never comes to rest"
        case ..<0: "the daemon crashes (signal \(-status))"
        default: exit(status)
        }
    let script = Script(seed: underWay.pointee)
    report(script, [what], after: underWay[1]) { items in
        let other = kernel_fork(1)
        if other == 0 {
            kernel_alarm(patience)
            _ = Episode.run(script, items: items)
            _exit(0)
        }
        return kernel_wait(other) == status ? [what] : []
    }
}
var seeds = Chance(seed: seed)
var simulated: UInt64 = 0
var episodes = 0
var answers = 0
var stale = 0
var allocated: [UInt64] = []
while simulated < UInt64(hours) * 3600 * 1_000_000_000 {
    // The first is the seed's own, so that a failure's seed leads to it at once.
    let script = Script(seed: episodes == 0 ? seed : seeds.next() >> 1)
    (underWay[0], underWay[1]) = (script.seed, simulated / 1_000_000_000)
    kernel_alarm(patience)
    let faults = Episode.run(script)
    if !faults.isEmpty {
        report(script, faults, after: underWay[1]) { items in
            kernel_alarm(patience)
            return Episode.run(script, items: items)
        }
    }
    if episodes == 0 {
        let differs = { (items: [Script.Item]) in
            let digests = [0, 1].map { _ in
                _ = Episode.run(script, items: items)
                return judge.digest
            }
            return digests[0] == digests[1] ? [] : ["the same seed does not lead to the same answers"]
        }
        if case let faults = differs(script.items), !faults.isEmpty {
            report(script, faults, after: underWay[1], run: differs)
        }
    }
    // These records do not belong to the daemon.
    judge.begin()
    episodes += 1
    simulated += kernel.now - Script.start
    allocated.append(kernel_allocated())
}
// Single allocations, and tables that grow to their size, come early.
if allocated.count > 100 {
    let half = allocated.count / 2
    let early = allocated[half / 2..<half].min()!
    let late = allocated[half...].min()!
    if late > early + 64 * UInt64(half) {
        print("memory grows: \(early) octets in the first half of the episodes, \(late) in the second, at the least")
        exit(1)
    }
}
print(
    "\(simulated / 3_600_000_000_000) hours in \(rounded(seconds())) s: \(episodes) daemons, \(judge.answered) answers, "
        + "\(judge.stale) of them stale, \(judge.explained) foretold, \(judge.queries) questions upstream; nothing wrong"
)
if let file = variable("CROSSINGS") {
    guard let stream = fopen(file, "w") else { exit(1) }
    fputs(judge.crossings.text, stream)
    fclose(stream)
} else {
    for line in judge.crossings.lines { print(line) }
}
