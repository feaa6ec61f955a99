import Base
import Transport

/// The state of a host before `httpdnsd host enable`, and the way back: written before the first change, and removed
/// after the last one of `disable`.
struct HostRecord: Sendable, Equatable {
    /// The steps back.
    var disable: [HostPlan.Step]
    /// The state of each path.
    var before: [String: FileState]

    private static let first = "httpdnsd host 1"

    init(_ plan: HostPlan, before: [String: FileState]) { (disable, self.before) = (plan.disable, before) }

    /// A line for each step; words are in Base64, so that they may contain anything.
    var text: String {
        let lines = disable.map { step in
            switch step {
            case .run(let words): "run " + words.map(Self.encoded).joined(separator: " ")
            case .restore(let path): "restore \(Self.encoded(path)) \(Self.encoded(before[path] ?? .absent))"
            case .put: preconditionFailure("nothing new is put when all is taken back")
            }
        }
        return ([Self.first] + lines + ["end"]).map { $0 + "\n" }.joined()
    }

    /// - Returns: nil: the text is no whole record.
    init?(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count >= 3, lines[0] == Self.first, lines.suffix(2) == ["end", ""] else { return nil }
        (disable, before) = ([], [:])
        for line in lines.dropFirst().dropLast(2) {
            let words = line.split(separator: " ").map(String.init)
            let decoded = words.dropFirst().compactMap(Self.decoded)
            switch words.first {
            case "run" where words.count > 1 && decoded.count == words.count - 1: disable.append(.run(decoded))
            case "restore" where words.count >= 3:
                guard let path = decoded.first, let state = Self.state(Array(words.dropFirst(2))) else { return nil }
                disable.append(.restore(path))
                before[path] = state
            default: return nil
            }
        }
    }

    private static func encoded(_ text: String) -> String { Base64.standard.encode(Array(text.utf8)) }

    private static func decoded(_ word: String) -> String? {
        Base64.standard.decode(word.utf8).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func encoded(_ state: FileState) -> String {
        switch state {
        case .absent: "absent"
        case .folder: "folder"
        case .link(let target): "link \(encoded(target))"
        case .file(let octets, let mode, let owner, let group):
            "file \(mode) \(owner) \(group) =\(Base64.standard.encode(octets))"
        }
    }

    private static func state(_ words: [String]) -> FileState? {
        switch (words.first, words.count) {
        case ("absent", 1): return .absent
        case ("folder", 1): return .folder
        case ("link", 2): return decoded(words[1]).map(FileState.link)
        case ("file", 5):
            guard let mode = UInt32(words[1]), let owner = UInt32(words[2]), let group = UInt32(words[3]),
                words[4].hasPrefix("="), let octets = Base64.standard.decode(words[4].utf8.dropFirst())
            else { return nil }
            return .file(octets, mode: mode, owner: owner, group: group)
        default: return nil
        }
    }
}
