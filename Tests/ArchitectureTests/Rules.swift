import Foundation

/// What a source file may not do, beyond what the compiler checks.
struct Violation: Equatable, CustomStringConvertible {
    let path: String
    /// Counted from 1.
    let line: Int
    let rule: Rule

    var description: String { "\(path):\(line): \(rule)" }

    enum Rule: Equatable {
        /// A module, a library or a part of the toolchain that this module has no business with.
        case forbiddenImport(String)
        case tooManyLines(Int)
        case forcedTry
        /// It ends the process: a comment on it, or right above, must say why nothing better can be done.
        case unexplainedFatalError
        case unfinished(String)
        /// The forwarder's loop opens no file and walks no interfaces: see ``Rules/readingFiles``.
        case readsHere
        /// What the compiler cannot check stands where it is looked for: see ``Rules/unsafeModules``.
        case unsafeHere
        /// See ``Rules/behindDesk``.
        case behindDesk
    }
}

/// The floors of the house, and what else is agreed about the sources.
enum Rules {
    /// Who may import what is part of the toolchain: the manifest, which says the rest, has no word of it. Foundation is nowhere,
    /// as it would triple the binary.
    static let importers: [String: Set<String>] = [
        "Glibc": ["Transport"],
        "Dispatch": ["Transport", "Log", "Control", "DemoService", "Daemon", "httpdnsd"],
        "Synchronization": [
            "DemoService", "DNSCache", "Transport", "Counters", "Log", "Control", "Daemon", "httpdnsd",
        ],
        "Foundation": [], "FoundationEssentials": [], "FoundationNetworking": [],
    ]

    static let maximumLines = 500

    /// State of the groups' desk, which its own files share, and no other file reads.
    static let behindDesk = ["desk.groups", "desk.queries", "desk.deadlines"]

    /// Where `unsafe` is at home: the borders to C, the cache's memory, and the reader of DNS messages.
    static let unsafeModules: Set<String> = ["DNSWire", "DNSCache", "Cryptography", "Transport"]

    /// The files elsewhere that need it.
    static let unsafeFiles: Set<String> = [
        // Eight octets at a time of what a service sends.
        "Sources/Base/Bytes.swift", "Sources/Base/Hexadecimal.swift", "Sources/Forwarding/NameKey.swift",
        // Calls of nghttp2.
        "Sources/HTTP/HTTP2Library.swift", "Sources/HTTP/HTTP2Callbacks.swift",
        // Counters that one queue writes and others read.
        "Sources/Counters/Tally.swift",
        // Calls of libsystemd.
        "Sources/Log/Journal.swift", "Sources/Daemon/Systemd/ServiceManager.swift",
        "Sources/Daemon/Systemd/SystemBus.swift",
        // Memory that a batch, or the connections of a loop, use in turn.
        "Sources/Upstreams/Asking/PlainUpstream.swift", "Sources/Upstreams/Asking/QueryDatagrams.swift",
        "Sources/Streams/Stream.swift", "Sources/Base/Scratch.swift",
        "Sources/Daemon/Listening/Client.swift", "Sources/Daemon/Listening/DatagramListener.swift",
        "Sources/Daemon/Resolving/TurnReplies.swift", "Sources/Daemon/Listening/StreamClient.swift",
        "Sources/Daemon/Listening/StreamServer.swift",
    ]

    /// What reads files or interfaces, in the modules that run on the forwarder's loop.
    static let reading = ["SystemFile.read(", "ReadableFile(", "FileStamp(", "Interfaces.addresses("]
    static let modulesOfTheLoop: Set<String> = ["Forwarding", "Upstreams", "Daemon"]

    /// The files of these modules that do: on other threads, or before the loop starts.
    static let readingFiles: Set<String> = [
        "Sources/Daemon/Settings/LocalReading.swift", "Sources/Daemon/Settings/NameLists.swift",
        "Sources/Upstreams/Locating/ServerLookup.swift", "Sources/Upstreams/Store/Generations.swift",
        "Sources/Upstreams/Locating/ServerAddressFile.swift", "Sources/Daemon/Resolving/CacheFile.swift",
        "Sources/Daemon/Host/HostFacts.swift", "Sources/Daemon/Listening/CertificateFiles.swift",
        "Sources/Daemon/Systemd/PortUse.swift",
    ]

    /// Files of a module of which each leads to each other, at most.
    static let maximumCircle = 4

    /// - Parameters:
    ///   - path: From the package's folder: `Sources/MODULE/…`.
    ///   - text: The whole file.
    ///   - needs: What each module needs of others by the manifest.
    static func violations(path: String, text: String, needs: [String: Set<String>]) -> [Violation] {
        var found: [Violation] = []
        func report(_ line: Int, _ rule: Violation.Rule) {
            found.append(Violation(path: path, line: line, rule: rule))
        }

        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let lineCount = text.hasSuffix("\n") ? lines.count - 1 : lines.count
        if lineCount > maximumLines { report(maximumLines + 1, .tooManyLines(lineCount)) }

        let module = path.split(separator: "/").dropFirst().first.map(String.init) ?? ""
        for (index, line) in lines.enumerated() {
            let number = index + 1
            for name in importedModules(line)
            where !(importers[name]?.contains(module) ?? needs[module]?.contains(name) ?? false) {
                report(number, .forbiddenImport(name))
            }
            for mark in ["TODO", "FIXME", "XXX"] where words(line).contains(where: { $0 == mark }) {
                report(number, .unfinished(mark))
            }
            let code = withoutComment(line)
            if code.contains("try!") { report(number, .forcedTry) }
            if words(code).contains("unsafe"), !unsafeModules.contains(module), !unsafeFiles.contains(path) {
                report(number, .unsafeHere)
            }
            if modulesOfTheLoop.contains(module), !readingFiles.contains(path),
                reading.contains(where: { code.contains($0) })
            {
                report(number, .readsHere)
            }
            if module == "Forwarding", behindDesk.contains(where: { code.contains($0) }) { report(number, .behindDesk) }
            if words(code).contains("fatalError") {
                let above = index > 0 ? lines[index - 1].drop { $0 == " " } : ""
                if code.count == line.count && !above.hasPrefix("//") { report(number, .unexplainedFatalError) }
            }
        }
        return found
    }

    /// The modules a line imports: `@preconcurrency public import struct A.B` imports A.
    private static func importedModules(_ line: Substring) -> [String] {
        // Most lines have none, and the expression below is slow.
        guard line.utf8.count >= 8, words(line).contains("import") else { return [] }
        return withoutComment(line).split(separator: ";").compactMap { statement in
            statement.firstMatch(
                of:
                    /^\s*(?:@\w+(?:\(\w+\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+)/
            ).map { String($0.1) }
        }
    }

    private static func withoutComment(_ line: Substring) -> Substring {
        guard let comment = line.firstRange(of: "//") else { return line }
        return line[..<comment.lowerBound]
    }

    private static func words(_ text: Substring) -> [Substring] {
        text.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
    }
}
