import CKernel
import Glibc
import SimulatedDispatch
import TestSupport

// Dictionaries whose order is the same each time are half of a simulation that is.
kernel_restart_with("SWIFT_DETERMINISTIC_HASHING", "1", CommandLine.unsafeArgv)

func variable(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
}

let isVerbose = variable("VERBOSE") != nil
let hours = variable("SIMULATED_HOURS").flatMap(Int.init) ?? 1000
let given = variable("SEED").flatMap(UInt64.init)
let kept = variable("KEEP")?.split(separator: ",").compactMap { Int($0) }

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

/// Says what is wrong, with the fewest events that still bring it about.
func report(_ script: Script, _ faults: [String]) -> Never {
    print("seed \(script.seed), after \(rounded(seconds())) s: \(faults[0])")
    let few = Shortening(script, faults).shortest()
    print("the shortest script that fails:\n")
    print("# \(few.faults.first ?? faults[0])")
    for place in few.places { print(Script.text(script.items[place])) }
    let places = few.places.map(String.init).joined(separator: ",")
    print("\nagain: make simulate SEED=\(script.seed) KEEP=\(places) VERBOSE=1")
    exit(1)
}

if let kept {
    let script = Script(seed: seed)
    let faults = Episode.run(script, items: kept.map { script.items[$0] })
    for fault in faults { print(fault) }
    exit(faults.isEmpty ? 0 : 1)
}

print("seed \(seed)")
fflush(nil)
var seeds = Chance(seed: seed)
var simulated: UInt64 = 0
var episodes = 0
var answers = 0
var stale = 0
var allocated: [UInt64] = []
while simulated < UInt64(hours) * 3600 * 1_000_000_000 {
    // The first is the seed's own, so that a failure's seed leads to it at once.
    let script = Script(seed: episodes == 0 ? seed : seeds.next() >> 1)
    let faults = Episode.run(script)
    if !faults.isEmpty { report(script, faults) }
    if episodes == 0 {
        let digest = judge.digest
        _ = Episode.run(script)
        if judge.digest != digest { report(script, ["the same seed does not lead to the same answers"]) }
    }
    // Neither these books nor what TOMLKit never frees are the daemon's.
    judge.begin()
    episodes += 1
    simulated += kernel.now - Script.start
    allocated.append(kernel_allocated() &- Episode.heldByTOML)
}
// What is allocated once, and tables that grow to their size, come early.
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
        + "\(judge.stale) of them stale, \(judge.queries) questions upstream; nothing wrong")
