import Base
import Configuration
import DNSWire
import Forwarding
import Foundation
import Log
import Testing

@testable import Daemon
@testable import Transport

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

    /// Names that only this network can know, asked of a server outside it by a list or by `thenTry`.
    @Test func privateNamesThatLeaveTheNetwork() throws {
        try write("# of the office\nlan\n", "names")
        let office = "[fallback]\nservers = ['9.9.9.9']\n[upstreams.office]\nservers = "
        for (text, place) in [
            (
                office + "['9.9.9.9']\ndomainsFile = '\(folder)/names'\n",
                "upstreams.office.domainsFile: \(folder)/names"
            ),
            (office + "['192.168.1.1']\ndomains = ['lan']\nthenTry = ['fallback']\n", "upstreams.office.domains"),
            (office + "['192.168.1.1']\ndomains = ['lan', '']\n", nil),
            (
                "[domains]\nbypassFile = '\(folder)/names'\n" + office + "['9.9.9.9']\ndomains = ['corp.example']\n",
                "domains.bypassFile: \(folder)/names"
            ),
        ] {
            let settings = try Settings.load(text)
            let numbers = GroupNumbers(settings)
            let words = Report.privateNamesElsewhere(settings, try NameLists(settings, numbers), numbers)
            #expect(
                words
                    == (place.map {
                        ["\($0) has lan, which only this network can know, asked of 9.9.9.9:53, which is not on it"]
                    } ?? []))
        }
    }

    /// A program may write a file by many steps, and close it after each: names that the file lacks meanwhile stay, and those that
    /// it gains are taken at once.
    @Test func aFileOfAWallThatIsWrittenInPlace() throws {
        try write("a.example\nb.example\n", "wall")
        let settings = try Settings.load(
            "[upstreams.wall]\nservers = [\"192.0.2.1\"]\ndomainsFile = \"\(folder)/wall\"\n")
        let numbers = GroupNumbers(settings)
        var known = NameLists.Known(cacheFile: "")
        func taken() -> [String] {
            ["a", "b", "c"].filter { known.names?.rules.group(of: Name("\($0).example")!) == numbers["wall"] }
        }
        known.names = try NameLists(settings, numbers, known)
        func read(_ text: String, isPutInPlace: Bool = false) throws -> [String] {
            try text.write(toFile: "\(folder)/wall", atomically: isPutInPlace, encoding: .utf8)
            known.writes["\(folder)/wall", default: 0] += 1
            if isPutInPlace { known.placed["\(folder)/wall"] = FileStamp("\(folder)/wall") }
            known.names = try NameLists(settings, numbers, known)
            return taken()
        }
        #expect(taken() == ["a", "b"])
        #expect(try read("a.example\n") == ["a", "b"] && known.names?.isWaiting == true)
        #expect(try read("a.example\nc.example\n") == ["a", "b", "c"] && known.names?.isWaiting == true)
        let before = try #require(known.names)
        #expect(try read("a.example\n# more\nb.example\n") == ["a", "b", "c"] && known.names?.isWaiting == true)
        #expect(known.names == before)
        #expect(try read("c.example\n# more\nb.example\na.example\n") == ["a", "b", "c"])
        #expect(known.names?.isWaiting == false)
        #expect(try read("") == ["a", "b", "c"] && known.names?.remarks.count == 1)
        #expect(try read("c.example\n", isPutInPlace: true) == ["c"])
    }

    /// A start while a program writes the file of a wall takes the names of the copy as well, but for those that another group has,
    /// and keeps the copy until the file is written.
    @Test func aStartWhileTheFileOfAWallIsWritten() throws {
        try write("a.example\n", "wall")
        var known = NameLists.Known(cacheFile: "\(folder)/cache")
        try NameCopy(path: "\(folder)/wall", text: Array("a.example\nb.example\nc.example\n".utf8))
            .write(beside: known.cacheFile)
        let settings = try Settings.load(
            """
            [upstreams.wall]
            servers = ["192.0.2.1"]
            domainsFile = "\(folder)/wall"
            [upstreams.other]
            servers = ["192.0.2.2"]
            domains = ["c.example"]
            """)
        let numbers = GroupNumbers(settings)
        func read() throws -> (groups: [GroupID?], isCopied: Bool) {
            var names = try NameLists(settings, numbers, known)
            let isCopied = !names.takeTexts().isEmpty
            known.names = names
            return (["a", "b", "c"].map { names.rules.group(of: Name("\($0).example")!) }, isCopied)
        }
        let (wall, other) = (numbers["wall"], numbers["other"])
        for _ in 0..<2 {
            #expect(try read() == ([wall, wall, other], false))
            #expect(known.names?.isWaiting == true && known.names?.remarks.isEmpty == true)
        }
        known.placed["\(folder)/wall"] = FileStamp("\(folder)/wall")
        #expect(try read() == ([wall, nil, other], true))
        #expect(known.names?.isWaiting == false)
    }

    /// A name that is taken out of a wall's file in place may be the name of the wall's server at once; the file's other names stay
    /// until it is written.
    @Test func aServerWithANameThatTheFileOfAWallHad() throws {
        try write("one.example\n", "wall")
        let known = NameLists.Known(cacheFile: "\(folder)/cache")
        func names(copy: String) throws -> NameLists {
            try NameCopy(path: "\(folder)/wall", text: Array(copy.utf8)).write(beside: known.cacheFile)
            let settings = try Settings.load(
                "[upstreams.wall]\nservers = [\"tls://dns.corp.example\"]\ndomainsFile = \"\(folder)/wall\"\n")
            return try NameLists(settings, GroupNumbers(settings), known)
        }
        var lists = try names(copy: "corp.example\none.example\ntwo.example\n")
        let taken = ["corp", "one", "two"].map { lists.rules.group(of: Name("a.\($0).example")!) != nil }
        let copies = lists.takeTexts()
        #expect(taken == [false, true, true] && lists.isWaiting && copies.isEmpty)
        try write("corp.example\n", "wall")
        #expect(throws: StartFailure.self) { _ = try names(copy: "corp.example\none.example\n") }
    }

    /// A file in conflict that is put right in place: its new names are taken at once, and its error is gone.
    @Test func aFileInConflictThatIsPutRightInPlace() throws {
        try write("a.example\nb.example\n", "first")
        try write("x.example\n", "second")
        let settings = try Settings.load(
            ["first", "second"].map {
                "[upstreams.\($0)]\nservers = [\"192.0.2.1\"]\ndomainsFile = \"\(folder)/\($0)\"\n"
            }.joined())
        let numbers = GroupNumbers(settings)
        var known = NameLists.Known(cacheFile: "")
        known.names = try NameLists(settings, numbers, known)
        func read(_ text: String) throws -> [String] {
            try text.write(toFile: "\(folder)/first", atomically: false, encoding: .utf8)
            known.writes["\(folder)/first", default: 0] += 1
            known.names = try NameLists(settings, numbers, known)
            return ["a", "b", "c", "x"].filter {
                known.names?.rules.group(of: Name("\($0).example")!) == numbers["first"]
            }
        }
        #expect(try read("a.example\nb.example\nx.example\n") == ["a", "b"] && known.names?.remarks.count == 1)
        #expect(try read("a.example\nc.example\n") == ["a", "b", "c"] && known.names?.remarks == [])
    }

    @Test func aListDoesNotTakeTheServerOfReports() throws {
        try write("reports.example\nads.example\n", "ads")
        let settings = try Settings.load(
            """
            [httpdns]
            token = "101"
            enableReport = true
            reportUrl = "https://reports.example/"
            [upstreams.ads]
            answer = "nxdomain"
            domainsFile = "\(folder)/ads"
            """)
        let numbers = GroupNumbers(settings)
        let rules = try NameLists(settings, numbers).rules
        #expect(rules.group(of: Name("ads.example")!) == numbers["ads"])
        #expect(rules.group(of: Name("reports.example")!) == nil)
    }

    /// A pattern of two groups is the defect of the file that did not have it before, wherever its group is: all other files are
    /// followed, and the file is as soon as the pattern is in one group.
    @Test(arguments: [["a", "b"], ["b", "a"]])
    func aFileThatGainsAPatternOfAnotherGroup(_ groups: [String]) throws {
        for name in ["a", "b", "ads"] { try write("\(name).example\n", name) }
        let sections = groups.map {
            "[upstreams.\($0)]\nservers = [\"192.0.2.1\"]\ndomainsFile = \"\(folder)/\($0)\"\n"
        }
        let settings = try Settings.load(
            sections.joined() + "[upstreams.ads]\nanswer = \"nxdomain\"\ndomainsFile = \"\(folder)/ads\"\n")
        let numbers = GroupNumbers(settings)
        var known = NameLists.Known(cacheFile: "\(folder)/cache")
        /// Reads the files after these were written, and returns those whose copies are to be written.
        func read(_ texts: [String: String]) throws -> [String] {
            for (name, text) in texts {
                try write(text, name)
                known.writes["\(folder)/\(name)", default: 0] += 1
                known.placed["\(folder)/\(name)"] = FileStamp("\(folder)/\(name)")
            }
            var names = try NameLists(settings, numbers, known)
            defer { known.names = names }
            return names.takeTexts().map { String($0.path.dropFirst(folder.count + 1)) }.sorted()
        }
        func takers(_ names: String...) -> [String] {
            names.map { name in
                let taker = known.names?.rules.group(of: Name("www.\(name).example")!)
                return ["a", "b", "ads"].first { numbers[$0] == taker } ?? "-"
            }
        }
        func wrong() -> [String] { known.names?.files.filter { $0.fault != nil }.map(\.key) ?? [] }

        #expect(try read([:]) == ["a", "ads", "b"])
        #expect(try read(["b": "new.example\na.example\n", "ads": "more.example\n"]) == ["ads"])
        #expect(takers("a", "b", "new", "more", "ads") == ["a", "b", "-", "ads", "-"])
        #expect(wrong() == ["upstreams.b.domainsFile"])
        let remark = "upstreams.b.domainsFile: the 1 name of before stay: \(folder)/b:2: give a.example to one group"
        #expect(known.names?.remarks.first?.hasPrefix(remark) == true)
        #expect(throws: StartFailure.self) { _ = try NameLists(settings, numbers) }

        // The other group's file changes.
        #expect(try read(["a": "# the office\na.example\nc.example\n"]) == ["a"])
        #expect(takers("a", "c", "b", "new") == ["a", "a", "b", "-"])
        #expect(wrong() == ["upstreams.b.domainsFile"])

        // It gives the pattern up, and what was read of the first file is in effect.
        #expect(try read(["a": "c.example\n"]) == ["a", "b"])
        #expect(takers("a", "c", "b", "new") == ["b", "a", "-", "b"])
        #expect(wrong().isEmpty)

        // Both files gain it at once.
        #expect(try read(["a": "c.example\nboth.example\n", "b": "both.example\n"]) == [groups[0]])
        #expect(takers("both", "c", "a") == [groups[0], "a", groups[0] == "b" ? "-" : "b"])
        #expect(wrong() == ["upstreams.\(groups[1]).domainsFile"])
    }
}
