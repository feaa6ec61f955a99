import Base
import Transport

/// The copy of the last valid text of a file of names: it is read instead of the file at a start when that cannot be
/// used.
struct NameCopy: Sendable {
    /// The path of the file.
    let path: String
    let text: [UInt8]

    /// The text between the path of `cache.file` and the digest of the file's path.
    private static let infix = ".names-"

    /// The path of a file's copy; empty: there is none, without a `cache.file`.
    static func path(of path: String, beside cacheFile: String) -> String {
        guard !cacheFile.isEmpty else { return "" }
        var hash = FNV()
        hash.add(path)
        return "\(cacheFile)\(infix)\(String(hash.value, radix: 16))"
    }

    /// Writes the copy, unless it exists. May take long.
    func write(beside cacheFile: String) throws(SystemError) {
        let copy = Self.path(of: path, beside: cacheFile)
        if let old = try? SystemFile.read(copy, limit: text.count), old == text { return }
        var file = try ReplacementFile.begin(copy)
        try file.write(text)
        try file.commit()
    }
}
