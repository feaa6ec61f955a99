/// What came of reading a file that settings name.
public enum FileReading: Sendable {
    case bytes([UInt8])
    /// - Parameters:
    ///   - reason: In the system's words, such as `Permission denied`.
    ///   - isDenied: It is there, or may be, but this user may not read it.
    case failed(_ reason: String, isDenied: Bool)

    /// - Parameter bytes: Nil: there is no such file.
    public init(_ bytes: [UInt8]?) {
        self = bytes.map { .bytes($0) } ?? .failed("No such file or directory", isDenied: false)
    }

    /// What lets the daemon read a file that is not for everybody.
    public static func mend(_ path: String) -> String {
        "let the daemon's group read it: chgrp httpdnsd \(path) && chmod 640 \(path)"
    }
}

/// The files that settings name, and where those of secrets are looked for.
struct Files {
    /// The folder of systemd's credentials (systemd.exec(5)); nil or empty: none.
    let credentials: String?
    let read: (String) -> FileReading

    /// The folder beside the configuration whose files the unit hands over, and what stands before their names then.
    static let folder = "credentials"

    /// Where the file of a secret may be, in order: where systemd puts one by its name, and one of that folder; in the folder
    /// itself; beside the configuration.
    /// - Parameter beside: Makes a path that starts from the configuration's folder.
    func places(_ path: String, _ beside: (String) -> String) -> [String] {
        guard !path.hasPrefix("/") else { return [path] }
        let handedOver = credentials.map { $0.isEmpty ? [] : [$0 + "/" + path, "\($0)/\(Self.name(path))"] } ?? []
        return handedOver + [beside("\(Self.folder)/\(path)"), beside(path)]
    }

    /// The name that systemd gives to a file in a folder of credentials, and in one of its folders.
    private static func name(_ path: String) -> String {
        folder + "_" + String(path.map { $0 == "/" ? "_" : $0 })
    }
}

extension Loader {
    /// The bytes of a file that is no secret of its own name, or has a place of its own.
    /// - Parameter path: complete.
    func contents(of path: String, key: String, _ files: Files) throws(ConfigurationError) -> [UInt8] {
        switch files.read(path) {
        case .bytes(let bytes): return bytes
        case .failed(let reason, let isDenied):
            let mend = isDenied ? FileReading.mend(path) : "give one that the daemon may read"
            throw origins.error(key, "cannot read \(quoted(path)): \(reason); \(mend)")
        }
    }

    /// The bytes of a secret's file, never empty and without a final newline, and its full path.
    func secretFile(
        _ path: String, key: String, holds secret: String, _ files: Files
    ) throws(ConfigurationError) -> (bytes: [UInt8], path: String) {
        var failures: [(path: String, reason: String, isDenied: Bool)] = []
        for path in files.places(path, besideFile) {
            switch files.read(path) {
            case .failed(let reason, let isDenied): failures.append((path, reason, isDenied))
            case .bytes(var bytes):
                if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
                if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
                guard !bytes.isEmpty else {
                    throw origins.error(key, "\(quoted(path)) is empty; put the \(secret) into it")
                }
                return (bytes, path)
            }
        }
        let tried = failures.map { "\(quoted($0.path)): \($0.reason)" }.joined(separator: ", ")
        let folder = besideFile(Files.folder)
        let mend =
            switch failures.first(where: \.isDenied)?.path {
            case nil where path.hasPrefix("/"): "give one that the daemon may read"
            case nil: "put the \(secret) into \(quoted("\(folder)/\(path)"))"
            case .some(let path) where path.hasPrefix(folder + "/"):
                "only root reads that folder, and the service gets what is in it when it starts (systemctl restart httpdnsd)"
            case .some(let path): FileReading.mend(path)
            }
        throw origins.error(key, "cannot read \(tried); \(mend)")
    }
}
