// swift-tools-version: 6.2
import PackageDescription

/// Settings every target shares: they make the compiler keep the floors (a module sees only what it imports itself)
/// and keep memory safety visible (`unsafe` marks each place that a person must check).
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    // The packet path crosses five modules for each question.
    .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
]

/// Tests may reach for Foundation and raw memory without ceremony.
let testSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
]

/// Modules that the tests ask and mutate by the million: optimized in debug builds as well.
let busy: Set = ["Base", "DNSWire", "Names", "DNSCache", "Forwarding"]

func module(_ name: String, _ dependencies: Target.Dependency...) -> Target {
    let more: [SwiftSetting] = busy.contains(name) ? [.unsafeFlags(["-O"], .when(configuration: .debug))] : []
    return .target(name: name, dependencies: dependencies, swiftSettings: settings + more)
}

func tests(_ name: String, _ dependencies: Target.Dependency..., resources: [Resource] = []) -> Target {
    .testTarget(name: name, dependencies: dependencies, resources: resources, swiftSettings: testSettings)
}

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
    name: "httpdnsd",
    products: [.executable(name: "httpdnsd", targets: ["httpdnsd"])],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2")
    ],
    targets: [
        // System libraries and what Swift cannot import by itself.
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "CMemory"),
        .systemLibrary(name: "CSystemd", providers: [.apt(["libsystemd-dev"])]),
        .target(
            name: "CLinux",
            cSettings: [
                .unsafeFlags(
                    ["-D_FORTIFY_SOURCE=2", "-fstack-protector-strong", "-fstack-clash-protection"],
                    .when(configuration: .release))
            ]),

        // Floor 0: values. Import nothing.
        module("Base"),
        module("DNSWire", "Base"),
        module("Names", "Base", "DNSWire"),

        // Floor 1: bytes in, bytes out.
        module("Configuration", "Base", "DNSWire", "Names"),
        module("DNSCache", "Base", "DNSWire", "CMemory"),
        module("Cryptography", "Base", "COpenSSL"),
        module("HTTP", "Base", "CNGHTTP2"),

        // Floor 2: decisions.
        module("HTTPDNS", "Base", "DNSWire", "Cryptography", "HTTP"),
        module("Forwarding", "Base", "DNSWire", "Names", "DNSCache"),

        // Floor 3: the operating system.
        module("Transport", "Base", "CLinux"),
        module("Counters", "Base", "DNSWire"),
        module("Log", "Base", "Configuration", "Transport", "CSystemd"),

        // Floor 4: connections.
        module("Streams", "Base", "DNSWire", "Cryptography", "HTTP", "Transport"),

        // Floor 5: whom the daemon asks, and who asks it how it is; neither sees the other.
        module(
            "Upstreams", "Base", "DNSWire", "Configuration", "Cryptography", "HTTP", "HTTPDNS", "Forwarding",
            "Transport", "Counters", "Log", "Streams"),

        module(
            "Control", "Base", "DNSWire", "Names", "Configuration", "DNSCache", "HTTP", "Forwarding", "Transport",
            "Counters", "Log", "Streams"),

        // Floor 6: the shell.
        module("DemoService", "Base", "DNSWire", "Cryptography", "HTTP", "HTTPDNS", "Transport", "Streams"),
        module(
            "Daemon", "Base", "DNSWire", "Names", "Configuration", "DNSCache", "Cryptography", "HTTP", "HTTPDNS",
            "Forwarding", "Transport", "Counters", "Log", "Streams", "Upstreams", "Control", "CSystemd"),

        // Floor 7: the commands.
        .executableTarget(
            name: "httpdnsd",
            dependencies: [
                "Base", "DNSWire", "Names", "Configuration", "Transport", "Log", "Control", "Daemon", "DemoService",
                argumentParser,
            ],
            swiftSettings: settings),

        // Counts a thread's allocations, for the tests of paths that must not allocate.
        .target(name: "CAllocations", path: "Tests/CAllocations"),
        .target(name: "TestSupport", path: "Tests/Support", swiftSettings: testSettings),
        .target(
            name: "ShellTestSupport", dependencies: ["Base", "Log"], path: "Tests/ShellSupport",
            swiftSettings: testSettings),
        tests("BaseTests", "Base", "TestSupport"),
        tests("DNSWireTests", "Base", "DNSWire", "CAllocations", "TestSupport"),
        tests("NamesTests", "Base", "DNSWire", "Names", "TestSupport"),
        tests("ConfigurationTests", "Base", "DNSWire", "Configuration", "TestSupport"),
        tests("DNSCacheTests", "Base", "DNSWire", "DNSCache", "CAllocations", "TestSupport"),
        tests("CryptographyTests", "Base", "Cryptography", "TestSupport"),
        tests("HTTPTests", "Base", "HTTP", "CAllocations", "TestSupport", resources: [.copy("peer.py")]),
        tests("HTTPDNSTests", "Base", "DNSWire", "Cryptography", "HTTP", "HTTPDNS", "TestSupport"),
        tests(
            "ForwardingTests", "Base", "DNSWire", "Names", "DNSCache", "Forwarding", "TestSupport",
            resources: [.copy("Scenarios")]),
        tests("TransportTests", "Base", "Transport", "TestSupport"),
        tests(
            "StreamsTests", "Base", "Cryptography", "HTTP", "Transport", "Streams", "TestSupport", "ShellTestSupport"),
        tests("CountersTests", "Base", "DNSWire", "Counters"),
        tests("LogTests", "Configuration", "Log", "ShellTestSupport"),
        tests(
            "DemoServiceTests", "Base", "DNSWire", "Cryptography", "HTTP", "HTTPDNS", "Transport", "Streams",
            "DemoService", "TestSupport"),
        tests(
            "DaemonTests", "Base", "DNSWire", "Configuration", "DNSCache", "Cryptography", "HTTP", "HTTPDNS",
            "Forwarding", "Transport", "Counters", "Log", "Streams", "Daemon", "DemoService", "ShellTestSupport"),
        tests(
            "UpstreamsTests", "Base", "DNSWire", "DNSCache", "Configuration", "Cryptography", "HTTP", "HTTPDNS",
            "Forwarding",
            "Transport", "Streams", "Counters", "Upstreams", "DemoService", "ShellTestSupport", "TestSupport",
            resources: [.copy("Scenarios")]),
        tests(
            "ControlTests", "Base", "DNSWire", "Names", "Configuration", "DNSCache", "Forwarding", "Transport",
            "Streams", "Counters", "Control", "ShellTestSupport"),
        tests("ArchitectureTests"),
    ]
)

// The readers of strangers' bytes: `make fuzz` builds them with flags that nothing else wants; all other builds test them on the
// inputs that are kept.
let readers: [Target.Dependency] = [
    "Base", "DNSWire", "Names", "Configuration", "DNSCache", "Cryptography", "HTTP", "HTTPDNS", "Forwarding",
    "Transport", "Log", "Streams", "Upstreams", "Control", "DemoService", "Daemon",
]
if Context.environment["HTTPDNSD_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "Fuzz", dependencies: readers, path: "Tests/Fuzz/Sources",
            // libFuzzer has the main function.
            swiftSettings: testSettings + [.unsafeFlags(["-parse-as-library"])]))
} else {
    package.targets.append(
        .testTarget(
            name: "FuzzTests", dependencies: readers, path: "Tests/Fuzz",
            exclude: ["Corpus", "Dictionaries", "corpus.py", "seeds.py"], swiftSettings: testSettings))
}

// `make simulate` builds the daemon over a kernel, a network and a time that are made up. The sources stay as they are: calls
// of the C library meet CKernel's functions of the same names when the program is linked, and Dispatch is another module.
if Context.environment["HTTPDNSD_SIMULATION"] != nil {
    for target in package.targets where target.path == nil && target.swiftSettings != nil && target.type == .regular {
        target.dependencies.append("SimulatedDispatch")
        target.swiftSettings?.append(.unsafeFlags(["-module-alias", "Dispatch=SimulatedDispatch"]))
    }
    // What is wrong with the simulation itself is found while it is made.
    let unchecked: [SwiftSetting] = [.unsafeFlags(["-enforce-exclusivity=unchecked"])]
    package.targets += [
        .target(
            name: "SimulatedDispatch", path: "Tests/Simulation/Dispatch", swiftSettings: testSettings + unchecked),
        .target(name: "CKernel", path: "Tests/Simulation/CKernel"),
        .executableTarget(
            name: "Simulation",
            dependencies: [
                "Base", "DNSWire", "Configuration", "DNSCache", "Cryptography", "HTTP", "HTTPDNS", "Forwarding",
                "Transport", "Log", "Upstreams", "DemoService", "Daemon", "TestSupport", "SimulatedDispatch", "CKernel",
                "COpenSSL",
            ],
            path: "Tests/Simulation/Sources",
            swiftSettings: testSettings + unchecked),
    ]
}
