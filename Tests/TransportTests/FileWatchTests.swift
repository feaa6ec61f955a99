import Base
import Foundation
import Testing

@testable import Transport

@Suite final class FileWatchTests {
    private let folder: String
    private let loop: EventLoop
    private let changes = Counters(1)

    init() throws {
        folder = NSTemporaryDirectory() + "filewatch-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        loop = try EventLoop(label: "test loop")
        loop.start()
    }

    deinit {
        loop.end()
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func watch(_ paths: [String]) throws {
        let changes = changes
        _ = try loop.inTurn { [folder] loop in
            FileWatch(in: loop, failed: { _ in }) { _ in changes.add(0) }.follow(paths.map { folder + "/" + $0 })
        }
    }

    /// Whether the watch told anything about what `body` did. Events are queued when the calls return and come before
    /// submitted work.
    private func isTold(_ body: () throws -> Void) throws -> Bool {
        try loop.inTurn { _ in }
        let before = changes.all[0]
        try body()
        try loop.inTurn { _ in }
        return changes.all[0] > before
    }

    /// Writes a file and waits until nothing has it open for writing. Another test may have forked meanwhile, and its child
    /// has the file open until it becomes another program: the end of the writing is told only then. A lease is given on a
    /// file that is not open for writing.
    private func write(_ text: String, _ name: String) throws {
        let path = folder + "/" + name
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        let file = open(path, O_RDONLY | O_CLOEXEC)
        try succeed(file < 0 ? -1 : 0)
        defer { close(file) }
        let setLease: Int32 = 1024  // F_SETLEASE of Linux, which the module of the C library leaves out.
        while fcntl(file, setLease, Int32(F_RDLCK)) != 0 { try #require(errno == EAGAIN) }
        try succeed(fcntl(file, setLease, Int32(F_UNLCK)))
    }

    private func succeed(_ result: Int32) throws {
        if result != 0 { throw POSIXError(POSIXErrorCode(rawValue: errno)!) }
    }

    private func replace(_ name: String) throws {
        try write("new", name + ".tmp")
        #expect(rename(folder + "/" + name + ".tmp", folder + "/" + name) == 0)
    }

    @Test func aFileThatIsWrittenReplacedRemovedAndMadeAgainIsTold() throws {
        try write("a", "resolv.conf")
        try watch(["resolv.conf"])
        #expect(try isTold { try self.write("b", "resolv.conf") })
        #expect(try isTold { try self.replace("resolv.conf") })
        #expect(try isTold { try self.replace("resolv.conf") })
        #expect(try isTold { try self.write("c", "resolv.conf") })
        #expect(try isTold { try self.succeed(unlink(self.folder + "/resolv.conf")) })
        #expect(try isTold { try self.write("d", "resolv.conf") })
    }

    @Test func otherFilesInTheFolderAreNotTold() throws {
        try write("a", "resolv.conf")
        try watch(["resolv.conf"])
        #expect(try !isTold { try self.write("b", "resolv.conf.bak") })
        #expect(try !isTold { try self.replace("hosts") })
        #expect(try !isTold { _ = try String(contentsOfFile: self.folder + "/resolv.conf", encoding: .utf8) })
        #expect(try isTold { try self.write("c", "resolv.conf") })
    }

    @Test func aFolderThatDoesNotExistYetIsFollowedAsItGrowsAndGoes() throws {
        try watch(["run/systemd/resolve/resolv.conf"])
        func make(_ name: String) throws { try self.succeed(mkdir(folder + "/" + name, 0o755)) }
        #expect(try isTold { try make("run") })
        #expect(try !isTold { try make("run/other") })
        #expect(try isTold { try make("run/systemd") })
        #expect(try isTold { try make("run/systemd/resolve") })
        #expect(try isTold { try self.write("a", "run/systemd/resolve/resolv.conf") })
        #expect(try isTold { try self.replace("run/systemd/resolve/resolv.conf") })
        #expect(try isTold { try FileManager.default.removeItem(atPath: self.folder + "/run/systemd") })
        #expect(
            try isTold {
                try FileManager.default.createDirectory(
                    atPath: self.folder + "/run/systemd/resolve", withIntermediateDirectories: true)
            })
        #expect(try isTold { try self.write("b", "run/systemd/resolve/resolv.conf") })
        // A folder on the way is moved away as a whole.
        #expect(try isTold { try self.succeed(rename(self.folder + "/run", self.folder + "/gone")) })
    }

    @Test func linksAreFollowedToTheFileAndWhenTheyPointElsewhere() throws {
        for name in ["etc", "run", "run/a", "run/b"] { try self.succeed(mkdir(folder + "/" + name, 0o755)) }
        try write("a", "run/a/resolv.conf")
        try write("b", "run/b/resolv.conf")
        try succeed(symlink("../run/current/resolv.conf", folder + "/etc/resolv.conf"))
        try succeed(symlink(folder + "/run/a", folder + "/run/current"))
        try watch(["etc/resolv.conf", "etc/hosts"])
        #expect(try isTold { try self.write("c", "run/a/resolv.conf") })
        #expect(try !isTold { try self.write("c", "run/b/resolv.conf") })
        #expect(
            try isTold {
                try self.succeed(symlink("b", self.folder + "/run/next"))
                try self.succeed(rename(self.folder + "/run/next", self.folder + "/run/current"))
            })
        #expect(try isTold { try self.replace("run/b/resolv.conf") })
        #expect(try !isTold { try self.write("d", "run/a/resolv.conf") })
        #expect(try isTold { try self.replace("etc/resolv.conf") })
        #expect(try !isTold { try self.write("e", "run/b/resolv.conf") })
        #expect(try isTold { try self.write("f", "etc/hosts") })
    }

    /// Its files can be read and not followed, which the owner of the watch is told.
    @Test func aFolderThatMayBeSearchedAndNotRead() async {
        await #expect(processExitsWith: .success) {
            let tests = try FileWatchTests()
            try tests.write("a", "hosts")
            try tests.succeed(chmod(tests.folder, 0o311))
            // Root may read every folder.
            if getuid() == 0 { try tests.succeed(seteuid(65_534)) }
            let (path, failures) = (tests.folder + "/hosts", Counters(1))
            _ = try tests.loop.inTurn { loop in
                FileWatch(in: loop, failed: { _ in failures.add(0) }) { _ in }.follow([path])
            }
            if getuid() == 0 { try tests.succeed(seteuid(0)) }
            try tests.succeed(chmod(tests.folder, 0o755))
            guard failures.all == [1] else { exit(1) }
        }
    }

    @Test func aLinkToItselfEnds() throws {
        try succeed(symlink("loop", folder + "/loop"))
        try watch(["loop"])
        #expect(try isTold { try self.succeed(unlink(self.folder + "/loop")) })
    }

    @Test func manyChangesAtOnceAreToldOnceAndStopEndsIt() throws {
        let watch = Journal<FileWatch>()
        let changes = changes
        try loop.inTurn { [folder] loop in
            watch.append(FileWatch(in: loop, failed: { _ in }) { _ in changes.add(0) })
            watch.all[0].follow([folder + "/hosts"])
        }
        // On the loop, so that it cannot look in between.
        try loop.inTurn { [folder] _ in
            for _ in 0..<50 { #expect(mkdir(folder + "/hosts", 0o755) == 0 && rmdir(folder + "/hosts") == 0) }
        }
        try loop.inTurn { _ in }
        #expect(changes.all == [1])
        try loop.inTurn { _ in _ = watch.all[0].follow([]) }
        #expect(try !isTold { try self.write("y", "hosts") })
    }

    /// Which files are whole: those that were closed after writing or put in place, and no other that changed at the same time.
    @Test func whatIsWrittenIsToldByItsPath() throws {
        for name in ["a", "b", "old"] { try write("x", name) }
        try succeed(mkdir(folder + "/d1", 0o755))
        try write("x", "d1/f")
        try succeed(symlink("d1", folder + "/d"))
        let (told, watch) = (Journal<Set<String>>(), Journal<FileWatch>())
        let names = ["a", "b", "d/f", "e/f"]
        try loop.inTurn { [folder] loop in
            watch.append(FileWatch(in: loop, failed: { _ in }) { told.append($0) })
            watch.all[0].follow(names.map { folder + "/" + $0 })
        }
        func placed() throws -> Set<String> {
            let paths = try loop.inTurn { _ in Set(watch.all[0].placed.keys) }
            return Set(paths.map { String($0.dropFirst(folder.utf8.count + 1)) })
        }
        func written(_ body: () throws -> Void) throws -> Set<String>? {
            try loop.inTurn { _ in }
            let before = told.all.count
            try body()
            try loop.inTurn { _ in }
            let sets = told.all.dropFirst(before)
            return sets.isEmpty
                ? nil : Set(sets.joined().map { String($0.dropFirst(self.folder.utf8.count + 1)) })
        }
        let path = folder + "/a"
        #expect(try written { try self.write("y", "a") } == ["a"])
        #expect(try placed() == [])
        #expect(try written { try self.replace("a") } == ["a"])
        #expect(try placed() == ["a"])
        var file: Int32 = -1
        #expect(try written { file = open(path, O_WRONLY | O_TRUNC) } == nil)
        #expect(try written { try self.replace("b") } == ["b"])
        #expect(try written { try self.succeed(chmod(path, 0o600)) } == [])
        #expect(try written { close(file) } == ["a"])
        #expect(try placed() == ["b"])
        #expect(try written { try self.succeed(unlink(path)) } == [])
        #expect(try written { file = open(path, O_WRONLY | O_CREAT, 0o644) } == [])
        #expect(try written { close(file) } == ["a"])
        #expect(try placed() == ["b"])
        try succeed(unlink(path))
        #expect(try written { try self.succeed(link(self.folder + "/old", path)) } == ["a"])
        #expect(try placed() == ["a", "b"])
        try succeed(unlink(path))
        #expect(try written { try self.succeed(symlink("old", path)) } == ["a"])
        try succeed(mkdir(folder + "/d2", 0o755))
        try write("x", "d2/f")
        try succeed(symlink("d2", folder + "/next"))
        #expect(try written { try self.succeed(rename(self.folder + "/next", self.folder + "/d")) } == ["d/f"])
        #expect(try placed() == ["a", "b", "d/f"])
        #expect(try written { try self.write("z", "d2/f") } == ["d/f"])
        #expect(try placed() == ["a", "b"])
        // The file is begun before its folder is watched.
        let made = try written {
            try loop.inTurn { [folder] _ in
                #expect(mkdir(folder + "/e", 0o755) == 0)
                #expect(FileManager.default.createFile(atPath: folder + "/e/f", contents: nil))
            }
        }
        #expect(made == ["e/f"])
        #expect(try placed() == ["a", "b"])
    }
}
