import Base
import DNSWire

/// The flights and clients whose answers are made from the answer to another question: a flight for AAAA waits for the
/// A records of its name (RFC 6147), and a client of an alias for the records of its target.
///
/// Each subject puts the other question to the forwarder as a client would, under a number that the shell never gives.
struct Translations {
    enum Subject {
        /// - Parameter absence: The negative result for AAAA; if nil, the flight fails when there is no A record.
        case synthesis(TableID, absence: StepAnswer?)
        /// The name and type that the client asks for.
        case alias(Name, RecordType, AskingClient)
    }

    /// An answer for a subject.
    struct Arrival {
        let subject: Subject
        let answer: Answer
        let age: Reply.Age
        let by: Answerer
        /// The least protected way in which the question was sent.
        let way: Exposure
    }

    private var subjects: [ClientNumber: Subject] = [:]
    private var numbers: [TableID: ClientNumber] = [:]
    private var arrivals: [Arrival] = []
    private var latest = Translations.first

    /// The bound of the subjects' numbers, which go down from just below; the shell's numbers are above.
    private static let first = ClientNumber.min / 2

    var isEmpty: Bool { subjects.isEmpty }
    var count: Int { subjects.count }
    var hasArrivals: Bool { !arrivals.isEmpty }

    func isAwaited(by flight: TableID) -> Bool { numbers[flight] != nil }

    /// The result for AAAA of a flight that waits for the A records.
    func absence(of flight: TableID) -> StepAnswer? {
        guard let number = numbers[flight], case .synthesis(_, let absence)? = subjects[number] else { return nil }
        return absence
    }

    /// Notes that another step of a waiting flight has no AAAA record either: the result of the earlier step counts.
    mutating func add(_ absence: StepAnswer, of flight: TableID) {
        guard let number = numbers[flight], case .synthesis(_, let known)? = subjects[number],
            absence.step < known?.step ?? .max
        else { return }
        subjects[number] = .synthesis(flight, absence: absence)
    }

    /// Whether a subject still waits for the answer under this number.
    func awaits(_ number: ClientNumber) -> Bool { subjects[number] != nil }

    static func isOne(_ number: ClientNumber) -> Bool { number < first }

    /// - Returns: The number of the subject's question.
    mutating func add(_ subject: Subject) -> ClientNumber {
        latest -= 1
        subjects[latest] = subject
        if case .synthesis(let flight, _) = subject { numbers[flight] = latest }
        return latest
    }

    /// A flight has ended, and needs no other question's answer.
    mutating func ended(_ flight: TableID) {
        if let number = numbers.removeValue(forKey: flight) { subjects[number] = nil }
    }

    mutating func answered(
        _ number: ClientNumber, _ answer: Answer, _ age: Reply.Age, by answerer: Answerer, way: Exposure
    ) {
        guard let subject = subjects.removeValue(forKey: number) else { return }
        if case .synthesis(let flight, _) = subject { numbers[flight] = nil }
        arrivals.append(Arrival(subject: subject, answer: answer, age: age, by: answerer, way: way))
    }

    mutating func takeArrivals() -> [Arrival] { exchange(&arrivals, with: []) }
}
