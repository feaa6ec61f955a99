internal import Dispatch
internal import Glibc

/// Reports when files may have changed: written, replaced, removed, recreated, or reached through another link.
///
/// A file such as /etc/resolv.conf is replaced by rename, is often a link, and its folder may not exist yet. So each
/// folder on the way is watched for the next name on the way, through all links, as far as it exists; and the file
/// itself too, since a write through another mount of it (as in containers) is visible only there. While the system has
/// no watches left, or a folder on the way cannot be watched, the files count as changed every ten seconds.
///
/// `@unchecked Sendable`: made on the loop, or passed to it before it starts; from then on used only by the loop.
public final class FileWatch: EventHandler, @unchecked Sendable {
    /// The files that are followed.
    public private(set) var paths: [String] = []
    private let changed: (_ written: Set<String>) -> Void
    private let failed: (SystemError) -> Void
    private weak var loop: EventLoop?
    private var inotify = Descriptor(adopting: -1)
    private var registration: Registration?
    /// Whether the files count as changed soon.
    private var isLookingAgain = false
    /// Whether the owner knows that some paths cannot be watched.
    private var hasFailed = false
    private var watches: [Int32: Watched] = [:]
    /// The stamps of files when they were last put in place, by their paths; none of a file that was written since.
    public private(set) var placed: [String: FileStamp] = [:]

    /// The purpose of a watch.
    private struct Watched {
        /// The path of the folder; empty if the watch is only for files.
        var folder = ""
        /// The names in the folder, each with the paths that lead through it.
        var names: [String: Set<String>] = [:]
        /// The paths of the watched file itself.
        var files: Set<String> = []
    }

    /// The most links on a path, as in the kernel (path_resolution(7)).
    private static let linkLimit = 40
    /// When to try again after an obstacle to reading or watching.
    private static let pause = DispatchTimeInterval.seconds(10)
    private static let folderEvents =
        IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE_SELF
    private static let fileEvents = IN_CLOSE_WRITE | IN_MASK_ADD

    /// - Parameters:
    ///   - changed: Called on the loop, once for all changes until the loop reads them, with the paths of the files
    ///     that were closed after writing, or moved there whole. All other files may have changed as well, and may be
    ///     half-written. Also called without a real change: the caller reads the files again and compares.
    ///   - failed: Why some paths cannot be watched; called once until they can, perhaps at once.
    public init(
        in loop: EventLoop, failed: @escaping (SystemError) -> Void,
        changed: @escaping (_ written: Set<String>) -> Void
    ) {
        (self.loop, self.failed, self.changed) = (loop, failed, changed)
    }

    /// Follows these files from now on, and no others. Call on the loop, or before the loop starts.
    /// - Returns: Whether they are others than before.
    @discardableResult
    public func follow(_ new: [String]) -> Bool {
        guard new != paths else { return false }
        (paths, placed, hasFailed) = (new, [:], false)
        if paths.isEmpty { end() } else if registration == nil { begin() } else { watch() }
        return true
    }

    private func begin() {
        do throws(SystemError) {
            inotify = try Descriptor.made(by: "inotify_init1") { inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC)) }
            registration = try loop?.register(inotify, .readable, self)
            watch()
        } catch {
            end()
            cannotWatch(error)
        }
    }

    private func end() {
        if let registration { loop?.unregister(registration) }
        registration = nil
        inotify.close()
    }

    private func cannotWatch(_ error: SystemError) {
        if !hasFailed { failed(error) }
        hasFailed = true
        lookAgain()
    }

    /// Calls `changed` after a while even without a change: an obstacle to reading the files, such as a lack of
    /// descriptors, may be gone then. Call on the loop.
    public func lookAgain() {
        guard !isLookingAgain, !paths.isEmpty, let loop else { return }
        isLookingAgain = true
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.pause) { [weak self, weak loop] in
            guard let self, let loop else { return }
            loop.submit { [self] in looksAgain() }
        }
    }

    private func looksAgain() {
        isLookingAgain = false
        guard !paths.isEmpty else { return }
        if registration == nil { begin() } else { watch() }
        changed([])
    }

    public func ready(_ readiness: Readiness) {
        guard let written = takeEvents() else { return }
        // Watches are set before the callback: a change in between is reported again.
        watch()
        changed(written)
    }

    /// Sets the watches that the paths need now, and removes the others.
    private func watch() {
        defer { if !isLookingAgain { hasFailed = false } }
        let before = watches
        watches = [:]
        for path in paths { watch(path) }
        for watch in before.keys where watches[watch] == nil {
            // The removal fails for a folder that is gone: its watch is gone with it.
            _ = inotify_rm_watch(inotify.raw, watch)
        }
    }

    private func watch(_ path: String) {
        var rest = path.split(separator: "/").map(String.init)[...]
        var folder = path.hasPrefix("/") ? "/" : "."
        var links = 0
        while let name = rest.popFirst() {
            // The watch is set before the link is read, so that no change is missed in between. If the folder does not
            // exist or cannot be searched, its parent is watched for that name already.
            if let watch = add(folder, FileWatch.folderEvents | IN_ONLYDIR) {
                watches[watch, default: Watched()].folder = folder
                watches[watch]?.names[name, default: []].insert(path)
            } else if !SystemFile.isSearchable(folder) {
                return
            }
            let here = folder == "/" ? "/" + name : folder + "/" + name
            if let target = try? SystemFile.target(ofLink: here) {
                links += 1
                guard links <= FileWatch.linkLimit else { return }
                rest = target.split(separator: "/").map(String.init) + rest
                if target.hasPrefix("/") { folder = "/" }
            } else {
                folder = here
            }
        }
        // A folder at the end of one path may be on the way of another: IN_MASK_ADD adds to its watched events.
        if let watch = add(folder, FileWatch.fileEvents) {
            watches[watch, default: Watched()].files.insert(path)
        }
    }

    private func add(_ path: String, _ events: Int32) -> Int32? {
        let watch = unsafe inotify_add_watch(inotify.raw, path, UInt32(events))
        guard watch < 0 else { return watch }
        let error = SystemError("inotify_add_watch", path, code: errno)
        // A folder that may be searched and not read has files that can be read and not followed.
        if error.isShortage || error.isDenied && SystemFile.isSearchable(path) { cannotWatch(error) }
        return nil
    }

    /// Reads all events; nil if none of them is about the files.
    /// - Returns: The paths of the files that were closed after writing, or moved there.
    private func takeEvents() -> Set<String>? {
        var written: Set<String>?
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            // Sound: the kernel writes at most `count` bytes.
            let outcome = unsafe buffer.withUnsafeMutableBytes { room in
                SystemCall.attempt { unsafe read(inotify.raw, room.baseAddress, room.count) }
            }
            guard case .done(let count) = outcome, count > 0 else { return written }
            var offset = 0
            while let event = FileWatch.event(buffer.span.extracting(first: count), &offset) {
                if let paths = paths(written: event) { written = (written ?? []).union(paths) }
            }
        }
    }

    private typealias Event = (watch: Int32, mask: UInt32, name: String)

    /// Reads a `struct inotify_event` and its name, which zeros fill up; nil at the end.
    private static func event(_ bytes: Span<UInt8>, _ offset: inout Int) -> Event? {
        let head = MemoryLayout<inotify_event>.size
        guard offset + head <= bytes.count else { return nil }
        let length = min(Int(bytes.word(offset + 12)), bytes.count - offset - head)
        var name: [UInt8] = []
        for index in offset + head..<offset + head + length where bytes[index] != 0 { name.append(bytes[index]) }
        defer { offset += head + length }
        let watch = Int32(bitPattern: bytes.word(offset))
        return (watch, bytes.word(offset + 4), String(decoding: name, as: UTF8.self))
    }

    /// The paths that an event shows to be written; nil if the event is not about the files.
    private func paths(written event: Event) -> Set<String>? {
        if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return [] }
        // A removed watch may still have events in the queue.
        guard let watched = watches[event.watch],
            let paths = event.name.isEmpty ? watched.files : watched.names[event.name]
        else { return nil }
        let isClosed = event.mask & UInt32(IN_CLOSE_WRITE) != 0
        let isMade = event.mask & UInt32(IN_CREATE) != 0 && Self.isWhole("\(watched.folder)/\(event.name)")
        // A file in a folder that was just made may be half-written, since its end is not seen.
        let isPlaced = event.mask & UInt32(IN_MOVED_TO) != 0 || isMade && event.mask & UInt32(IN_ISDIR) == 0
        guard isClosed || isMade || isPlaced else { return [] }
        for path in paths { placed[path] = isPlaced ? FileStamp(path) : nil }
        return paths
    }

    /// Whether a newly created path is complete: a symbolic link, a folder, a pipe, or a further link to a file. A new
    /// regular file is not: its program has yet to write it.
    private static func isWhole(_ path: String) -> Bool {
        guard let status = SystemFile.status(ofLink: path) else { return false }
        return status.st_mode & S_IFMT != S_IFREG || status.st_nlink > 1
    }
}
