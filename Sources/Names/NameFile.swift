import Base

/// A file of names, and the effect of a read on the former names.
///
/// | defect of the file | a group with servers, `interceptFile`, `bypassFile` | a list of a group that answers |
/// | --- | --- | --- |
/// | unreadable, missing or too long | the former names | the former names |
/// | it has no names | the former names | the former names, if there were any |
/// | a line that is no pattern | the former names | the line is left out, and counted |
/// | most lines are no patterns | | the former names |
/// | its last line has no line feed, as in a half-written file | the former names | taken |
/// | another group has one of its patterns as well | the former names | the other group has the pattern |
/// | it may be half-written, and lacks former names | taken, and these as well until it is written | taken |
///
/// The former names are those in effect, or those of the stored copy of the file. Without either, names of the first
/// kind cannot be used, since they decide where names may go; a list is empty then. The last defect is found where the
/// files of all groups come together.
public struct NameFile: Sendable, Equatable {
    /// The purpose of a file's names.
    public enum Use: Sendable {
        /// The names of a group with servers: a missing name goes to other servers.
        case servers
        /// The names of a group that answers by itself: the lack of single names of a public list does no harm.
        case answers
    }

    /// The reason for which a file is not used.
    public enum Fault: Error, Equatable, Sendable {
        /// The file cannot be read, for this reason of the system.
        case unreadable(String)
        case wrong(DomainListError)
        case noNames
        /// The last line has no end, and may be incomplete.
        case cutOff
        /// Most lines have no known form.
        case noList(lines: Int, BlockList.LeftOut)
        /// Another group, or `except` of the same group, has one of the patterns as well.
        /// - Parameters:
        ///   - String: The remedy.
        ///   - elsewhere: The location of the other pattern.
        case taken(String, line: Int, elsewhere: String)
    }

    /// The names in effect, and the reason for which they are not the names of the file.
    public struct Outcome: Sendable {
        /// The names in effect; nil: there are none.
        public let names: NameFile?
        /// The error of the file; nil: the names are those of the file.
        public let fault: Fault?
        /// Whether the names are the names of the stored copy.
        public let isCopy: Bool
        /// The names in effect that the file lacks, since it may be half-written.
        public var lacked = DomainList()
    }

    public private(set) var taken = DomainList()
    /// The exceptions.
    public private(set) var released = DomainList()
    /// The rules of a list that have no effect.
    public private(set) var rules = BlockList.LeftOut()
    /// The other lines of a list that are left out.
    public private(set) var others = BlockList.LeftOut()

    /// A list with fewer lines is judged only by its names.
    private static let fewLines = 20

    /// - Parameter text: The file's text, or the reason for which the file could not be read.
    /// - Parameter before: The names in effect; nil: there are none yet.
    /// - Parameter mayBeWritten: Whether a program may still be writing the file.
    /// - Parameter copy: Reads the stored copy; called only if the copy is needed.
    public static func read(
        _ text: Result<[UInt8], Fault>, for use: Use, after before: NameFile?, mayBeWritten: Bool,
        copy: () -> [UInt8]?
    ) -> Outcome {
        var (last, isCopy) = (before, false)
        func known() -> NameFile? {
            if last == nil, let text = copy(), let file = try? NameFile(text, for: use) {
                (last, isCopy) = (file, true)
            }
            return last
        }
        func keep(_ fault: Fault) -> Outcome {
            let names = known()
            return Outcome(names: names, fault: fault, isCopy: isCopy)
        }
        do throws(Fault) {
            let new = try NameFile(try text.get(), for: use)
            if use == .answers, new.taken.count == 0, known().map({ $0.taken.count > 0 }) ?? false {
                return keep(.noNames)
            }
            if use == .servers, mayBeWritten, var union = known() {
                let lacked = union.taken.subtracting(new.taken)
                if lacked.count > 0 {
                    if new.taken.subtracting(union.taken).count > 0 {
                        // The file's patterns come first, with their lines.
                        union = new
                        union.taken.append(lacked.octets, count: lacked.count)
                    }
                    return Outcome(names: union, fault: nil, isCopy: false, lacked: lacked)
                }
            }
            return Outcome(names: new, fault: nil, isCopy: false)
        } catch {
            return keep(error)
        }
    }

    private init(_ text: [UInt8], for use: Use) throws(Fault) {
        switch use {
        case .servers:
            taken = try Self.parse(text, DomainList.init(parsing:))
            if taken.count == 0 { throw .noNames }
            guard text.last == UInt8(ascii: "\n") else { throw .cutOff }
        case .answers:
            let list = try Self.parse(text, BlockList.init(parsing:))
            (taken, released, rules, others) = (list.taken, list.released, list.rules, list.others)
            guard list.lines < Self.fewLines || others.count * 2 <= list.lines else {
                throw .noList(lines: list.lines, others)
            }
        }
    }

    private static func parse<List>(
        _ text: [UInt8], _ read: (Span<UInt8>) throws(DomainListError) -> List
    ) throws(Fault) -> List {
        do throws(DomainListError) {
            return try read(text.span)
        } catch {
            throw .wrong(error)
        }
    }

    /// A list without names.
    public init() {}

    /// Gives up patterns.
    public mutating func remove(_ patterns: DomainList) { taken = taken.subtracting(patterns) }
}

extension NameFile.Fault: CustomStringConvertible {
    /// The line of the file; nil: the defect is not in one line.
    public var line: Int? {
        switch self {
        case .wrong(let error): error.line
        case .noList(_, let others): others.firstLine
        case .taken(_, let line, _): line
        case .unreadable, .noNames, .cutOff: nil
        }
    }

    /// The defect and its remedy.
    public var description: String {
        switch self {
        case .unreadable(let reason): "\(reason); give a file that this user may read"
        case .wrong(let error): error.description
        case .noNames: "there is no name in it; give one a line"
        case .cutOff:
            "its last line has no line feed, as in a file that is half-written; write the rest, or end the last line with a line feed"
        case .noList(let lines, let others):
            "it is no list: of \(lines) lines \(others.count) have none of the forms, the first being \"\(others.first)\"; give "
                + "names or patterns such as example.com, lines of a hosts file such as 0.0.0.0 ads.example, or rules of a filter "
                + "list such as ||ads.example^; names with other addresses belong to a group of their own or to fallback.hosts"
        case .taken(let remedy, _, let elsewhere):
            "\(remedy), else a restart fails; it is in \(elsewhere) as well"
        }
    }
}
