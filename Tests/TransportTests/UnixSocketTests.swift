import Base
import Foundation
import Testing

@testable import Transport

@Suite struct UnixSocketTests {
    private let folder = FileManager.default.temporaryDirectory.path + "/httpdnsd-\(UUID().uuidString.prefix(8))"
    private var path: String { folder + "/control.sock" }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    @Test("its file is for the owner and the group, its folder is made, and both ends meet")
    func listening() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let before = umask(0)
        defer { umask(before) }
        let listener = try UnixListener.listen(path)
        #expect(mode(path) == 0o660 && mode(folder) == 0o750)
        _ = try StreamSocket.connect(toPath: path)
        #expect(throws: SystemError("bind", path, code: EADDRINUSE)) { try UnixListener.listen(path) }
        listener.stop()
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(throws: SystemError("connect", path, code: ENOENT)) { _ = try StreamSocket.connect(toPath: path) }
    }

    @Test("a dead socket is replaced, and the one who comes late does not take away the new one's file")
    func dead() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let first = try UnixListener.listen(path)
        #expect(rename(path, path + ".old") == 0)
        let second = try UnixListener.listen(path)
        first.stop()
        _ = try StreamSocket.connect(toPath: path)
        #expect(link(path, path + ".dead") == 0)
        second.stop()
        let third = try UnixListener.listen(path + ".dead")
        _ = try StreamSocket.connect(toPath: path + ".dead")
        third.stop()
    }

    @Test("what is no socket is nobody's to replace, and a path too long is refused")
    func refused() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try Data("mine".utf8).write(to: URL(filePath: path))
        #expect(throws: SystemError("bind", path, code: EEXIST)) { try UnixListener.listen(path) }
        #expect(try SystemFile.read(path, limit: 10) == Array("mine".utf8))
        let long = folder + "/" + String(repeating: "x", count: 108)
        #expect(throws: SystemError("bind", long, code: ENAMETOOLONG)) { try UnixListener.listen(long) }
        let nowhere = folder + "/not/there/control.sock"
        #expect(throws: SystemError("mkdir", folder + "/not/there", code: ENOENT)) {
            try UnixListener.listen(nowhere)
        }
    }
}
