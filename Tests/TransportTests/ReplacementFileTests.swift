import Foundation
import Glibc
import Testing
import Transport

/// Files that are whole, whoever writes and whenever that ends.
@Suite final class ReplacementFileTests {
    private let folder = NSTemporaryDirectory() + "replacement-\(UUID().uuidString)"
    private var path: String { folder + "/cache" }

    init() throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func contents() throws -> [UInt8] { try SystemFile.read(path, limit: 1 << 20) }
    private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder).sorted() }

    private func replace(with parts: [UInt8]...) throws(SystemError) {
        var file = try ReplacementFile.begin(path)
        for part in parts { try file.write(part) }
        try file.commit()
    }

    private func code(_ body: () throws(SystemError) -> Void) -> Int32? {
        do throws(SystemError) {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test func itTakesItsPlaceWhole() throws {
        try replace(with: [1, 2, 3], [], [4])
        #expect(try contents() == [1, 2, 3, 4])
        try replace(with: [UInt8](repeating: 7, count: 300_000))
        #expect(try contents().count == 300_000)
        try replace()
        #expect(try contents() == [])
        #expect(try names() == ["cache"])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test func untilThenTheOldOneStands() throws {
        try replace(with: [1])
        do {
            let file = try ReplacementFile.begin(path)
            try file.write([2, 2, 2])
            #expect(try contents() == [1])
        }
        // Given up: nothing is left behind.
        #expect(try contents() == [1])
        #expect(try names() == ["cache"])
    }

    @Test func whatACrashLeftBehindIsWrittenOver() throws {
        let left = folder + "/cache.new"
        #expect(FileManager.default.createFile(atPath: left, contents: Data(repeating: 9, count: 5000)))
        #expect(chmod(left, 0o644) == 0)
        try replace(with: [1])
        #expect(try contents() == [1])
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        #expect(try names() == ["cache"])
    }

    @Test func ofTwoWritersOneFails() throws {
        var first = try ReplacementFile.begin(path)
        try first.write([1])
        #expect(code { () throws(SystemError) in _ = try ReplacementFile.begin(path) } == EAGAIN)
        try first.commit()
        #expect(try contents() == [1])
        // The one that has ended is in nobody's way, and its finished file is not written into.
        var second = try ReplacementFile.begin(path)
        try second.write([2])
        #expect(try contents() == [1])
        try second.commit()
        #expect(try contents() == [2])
    }

    @Test func manyWritersNeverTearIt() throws {
        try replace(with: [0])
        let path = path
        DispatchQueue.concurrentPerform(iterations: 4) { writer in
            for _ in 0..<100 {
                if writer == 3 {
                    let seen = (try? SystemFile.read(path, limit: 1 << 20)) ?? []
                    #expect(!seen.isEmpty && seen.allSatisfy { $0 == seen[0] } && [1, 50_000].contains(seen.count))
                    continue
                }
                guard var file = try? ReplacementFile.begin(path) else { continue }
                for _ in 0..<50 { try? file.write([UInt8](repeating: UInt8(writer), count: 1000)) }
                try? file.commit()
            }
        }
        #expect(try contents().count == 50_000)
        #expect(try names() == ["cache"])
    }

    @Test func whatIsNoFileIsLeftAlone() throws {
        #expect(mkfifo(path, 0o600) == 0)
        #expect(code { () throws(SystemError) in try replace(with: [1]) } == EEXIST)
        #expect(code { () throws(SystemError) in _ = try ReadableFile(path) } == EINVAL)
        #expect(code { () throws(SystemError) in _ = try ReadableFile(folder) } == EISDIR)
        #expect(code { () throws(SystemError) in _ = try ReadableFile(folder + "/none") } == ENOENT)
        #expect(code { () throws(SystemError) in _ = try ReplacementFile.begin("/nowhere/cache") } == ENOENT)
        // Nor is anything written through a link put where the new file begins.
        #expect(unlink(path) == 0)
        #expect(symlink(folder + "/victim", path + ".new") == 0)
        #expect(code { () throws(SystemError) in try replace(with: [1]) } == ELOOP)
        #expect(try names() == ["cache.new"])
    }

    @Test func aFileIsReadInParts() throws {
        let bytes = (0..<100_000).map { UInt8($0 % 251) }
        try replace(with: bytes)
        let file = try ReadableFile(path)
        #expect(file.length == bytes.count)
        #expect(try file.read(0..<0) == [])
        #expect(try file.read(0..<bytes.count) == bytes)
        #expect(try file.read(999..<5001) == Array(bytes[999..<5001]))
        #expect(try file.read(99_990..<100_010) == Array(bytes[99_990...]))
        // The one that was opened stays, whatever takes its place.
        try replace(with: [1])
        #expect(try file.read(7..<9) == [7, 8])
        #expect(truncate(path, 0) == 0)
        #expect(try ReadableFile(path).read(0..<5) == [])
    }
}
