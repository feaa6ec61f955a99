import Glibc

/// The files of the simulated machine, all in the folder `/d`. Written data is on the disk at once.
final class KernelFiles {
    final class File {
        var bytes: [UInt8] = []
        var isSocket = false
        let number: UInt64
        init(number: UInt64) { self.number = number }
    }
    private(set) var files: [String: File] = [:]
    private var serial: UInt64 = 10
    /// Whether further writes are lost: the process has ended, and only does not know.
    var isFrozen = false

    /// The end of the time in which the disk is full.
    var fullUntil: UInt64 = 0
    var isFull: Bool { kernel.now < fullUntil }

    func clear() { (files, isFrozen, fullUntil) = ([:], false, 0) }

    private func make() -> File {
        serial += 1
        return File(number: serial)
    }

    subscript(path: String) -> [UInt8]? {
        get { files[path]?.bytes }
        set {
            if let newValue {
                files[path] = make()
                files[path]!.bytes = newValue
            } else {
                files[path] = nil
            }
            changed(path)
        }
    }

    func open(_ path: String, _ flags: Int32) -> Int {
        if path == "/dev/null" || path == "/d" { return kernel.open(KernelObject()) }
        if files[path] == nil {
            guard flags & O_CREAT != 0 else { return -Int(ENOENT) }
            guard !isFrozen else { return -Int(EROFS) }
            files[path] = make()
        }
        return kernel.open(OpenFile(files[path]!))
    }

    func status(_ path: String) -> (mode: UInt32, size: UInt64, number: UInt64)? {
        if path == "/" || path == "/d" { return (S_IFDIR | 0o755, 0, 1) }
        return files[path].map { ($0.isSocket ? S_IFSOCK : S_IFREG | 0o600, UInt64($0.bytes.count), $0.number) }
    }

    func makeSocket(_ path: String) -> Int {
        guard files[path] == nil else { return -Int(EADDRINUSE) }
        files[path] = make()
        files[path]!.isSocket = true
        return 0
    }

    func rename(_ from: String, _ to: String) -> Int {
        guard !isFrozen else { return -Int(EROFS) }
        guard let file = files.removeValue(forKey: from) else { return -Int(ENOENT) }
        files[to] = file
        changed(to)
        return 0
    }

    func remove(_ path: String) -> Int {
        guard !isFrozen else { return -Int(EROFS) }
        return files.removeValue(forKey: path) == nil ? -Int(ENOENT) : 0
    }

    private func changed(_ path: String) {
        for watch in kernel.all(Inotify.self) { watch.changed(path) }
    }
}

final class OpenFile: KernelObject {
    let file: KernelFiles.File
    init(_ file: KernelFiles.File) { self.file = file }
    var offset = 0
    override var isReadable: Bool { true }
}

/// inotify(7): each change of a file is reported as the end of a write.
final class Inotify: KernelObject {
    private var watches: [(number: Int32, path: String)] = []
    private var numbers: Int32 = 0
    private var events: [UInt8] = []

    override var isReadable: Bool { !events.isEmpty }

    func add(_ path: String) -> Int {
        guard kernel.files.status(path) != nil else { return -Int(ENOENT) }
        if let watch = watches.first(where: { $0.path == path }) { return Int(watch.number) }
        numbers += 1
        watches.append((numbers, path))
        return Int(numbers)
    }

    func remove(_ number: Int32) -> Int {
        watches.removeAll { $0.number == number }
        return 0
    }

    func changed(_ path: String) {
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        for watch in watches where path == watch.path + "/" + name {
            var text = Array(name.utf8) + [0]
            while text.count % 16 != 0 { text.append(0) }
            for word in [UInt32(bitPattern: watch.number), UInt32(8), 0, UInt32(text.count)] {
                withUnsafeBytes(of: word) { events += $0 }
            }
            events += text
        }
    }

    func take(_ most: Int) -> [UInt8] {
        defer { events = [] }
        precondition(events.count <= most)
        return events
    }
}
