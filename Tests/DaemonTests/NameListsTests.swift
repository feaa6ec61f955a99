import Configuration
import Foundation
import Testing

@testable import Daemon

/// The lists of names of all groups, read again as their files and the settings change.
@Suite final class NameListsTests {
    private let folder = NSTemporaryDirectory() + "names-\(UUID().uuidString)"

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func write(_ text: String, _ name: String) throws {
        try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
    }

    /// A file that has not changed belongs to the groups that name it now.
    @Test func aFileOfARenamedGroupAndOfTwoGroups() throws {
        try write("ads.example\n", "ads")
        var numbers = GroupNumbers()
        var last: NameLists?
        for groups in [["ads"], ["blocked"], ["blocked", "more"], ["blocked", "more"]] {
            let sections = groups.map {
                "[upstreams.\($0)]\nanswer = \"nxdomain\"\ndomainsFile = \"\(folder)/ads\"\n"
            }
            let settings = try Settings.load(sections.joined())
            numbers.add(settings)
            let names = try NameLists(settings, numbers, NameLists.Known(names: last, cacheFile: ""))
            #expect(names.files.map(\.key) == groups.map { "upstreams.\($0).domainsFile" })
            last = names
        }
    }
}
