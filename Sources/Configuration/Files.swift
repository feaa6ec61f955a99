/// The result of reading a file that settings name.
public enum FileReading: Sendable {
    case bytes([UInt8])
    /// - Parameters:
    ///   - reason: The system's error text, such as `Permission denied`.
    ///   - mend: The remedy for a user who may not read the file or search its folder; nil for any other reason.
    case failed(_ reason: String, mend: String?)

    /// - Parameter bytes: The contents; nil: there is no such file.
    public init(_ bytes: [UInt8]?) {
        self = bytes.map { .bytes($0) } ?? .failed("No such file or directory", mend: nil)
    }
}

/// The files that settings name, and the folders searched for secrets.
struct Files {
    /// The folder of systemd's credentials (systemd.exec(5)); nil or empty without credentials.
    let credentials: String?
    let read: (String) -> FileReading
    /// Called with each secret's file that was found beside the configuration, and its path in ``folder``.
    let noteBeside: (_ path: String, _ inFolder: String) -> Void

    /// The folder beside the configuration whose files the systemd unit passes on, and the prefix of their new names.
    static let folder = "credentials"

    /// The paths at which a secret's file may be, in order: systemd's credential of its name, systemd's credential for
    /// a file of ``folder``, the file in ``folder`` itself, the file beside the configuration.
    /// - Parameter beside: Makes a path that starts from the configuration's folder.
    func paths(_ path: String, _ beside: (String) -> String) -> [String] {
        guard !path.hasPrefix("/") else { return [path] }
        let handedOver = credentials.map { $0.isEmpty ? [] : [$0 + "/" + path, "\($0)/\(Self.name(path))"] } ?? []
        return handedOver + [beside("\(Self.folder)/\(path)"), beside(path)]
    }

    /// The name that systemd gives to a file of a credentials folder or its subfolders.
    private static func name(_ path: String) -> String {
        folder + "_" + String(path.map { $0 == "/" ? "_" : $0 })
    }
}

extension Loader {
    /// The bytes of a file that is not searched for like a secret.
    /// - Parameter path: The full path.
    func contents(of path: String, key: String, _ files: Files) throws(ConfigurationError) -> [UInt8] {
        switch files.read(path) {
        case .bytes(let bytes): return bytes
        case .failed(let reason, let mend):
            let mend = mend ?? "give one that the daemon may read"
            throw origins.error(key, "cannot read \(quoted(path)): \(reason); \(mend)")
        }
    }

    /// Reads a file, if one is named, that is not searched for like a secret. Its path is the full path.
    func read(_ file: inout NamedFile, key: String, _ files: Files) throws(ConfigurationError) {
        if !file.isEmpty { file.contents = FileContents(try contents(of: file.path, key: key, files)) }
    }

    /// Reads a secret's file, if one is named. Its path becomes the path at which it was found.
    func readSecret(
        _ file: inout NamedFile, key: String, holds secret: String, _ files: Files
    ) throws(ConfigurationError) {
        guard !file.isEmpty else { return }
        let (bytes, path) = try secretFile(file.path, key: key, holds: secret, files)
        file = NamedFile(path: path, contents: FileContents(bytes))
    }

    /// The bytes of a secret's file, never empty and without a final newline, and its full path.
    func secretFile(
        _ path: String, key: String, holds secret: String, _ files: Files
    ) throws(ConfigurationError) -> (bytes: [UInt8], path: String) {
        var failures: [(path: String, reason: String, mend: String?)] = []
        let beside = path.hasPrefix("/") ? nil : besideFile(path)
        let inFolder = besideFile("\(Files.folder)/\(path)")
        for path in files.paths(path, besideFile) {
            switch files.read(path) {
            case .failed(let reason, let mend): failures.append((path, reason, mend))
            case .bytes(var bytes):
                if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
                if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
                guard !bytes.isEmpty else {
                    throw origins.error(key, "\(quoted(path)) is empty; put the \(secret) into it")
                }
                if path == beside { files.noteBeside(path, inFolder) }
                return (bytes, path)
            }
        }
        let tried = failures.map { "\(quoted($0.path)): \($0.reason)" }.joined(separator: ", ")
        let folder = besideFile(Files.folder)
        let mend =
            switch failures.first(where: { $0.mend != nil }) {
            case nil where path.hasPrefix("/"): "give one that the daemon may read"
            case nil: "put the \(secret) into \(quoted("\(folder)/\(path)"))"
            case .some(let failure) where failure.path.hasPrefix(folder + "/"):
                "put the \(secret) there, if it is not: only root reads that folder, and the service gets what is in it when it starts "
                    + "(systemctl restart httpdnsd)"
            case .some(let failure): failure.mend!
            }
        throw origins.error(key, "cannot read \(tried); \(mend)")
    }
}
