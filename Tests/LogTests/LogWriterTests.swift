import Dispatch
import Foundation
import ShellTestSupport
import Synchronization
import Testing

@testable import Log

@Suite("A log that is read slowly, or not at all")
struct LogWriterTests {
    /// Lets lines through as it is told, and keeps them.
    private final class Reader: Sendable {
        let lines = Arrivals<String>()
        private let leave = DispatchSemaphore(value: 0)
        private let isOpen = Atomic(false)

        var sink: LogWriter.Sink {
            { [self] line, _ in
                // Each line it has in hand shows before it is let through.
                lines.append(line.text)
                if !isOpen.load(ordering: .sequentiallyConsistent) { leave.wait() }
                return true
            }
        }

        func open() {
            isOpen.store(true, ordering: .sequentiallyConsistent)
            leave.signal()
        }
    }

    private let reader = Reader()
    private let writer: LogWriter

    init() { writer = LogWriter(reader.sink) }

    private func write(_ text: String, to writer: LogWriter) {
        writer.write(LogText(level: .info, text: text), at: 0)
    }

    @Test("lines come in their order")
    func order() {
        reader.open()
        for number in 0..<1000 { write("\(number)", to: writer) }
        for number in 0..<1000 { #expect(reader.lines.next() == "\(number)") }
        #expect(writer.linesLost == 0)
    }

    @Test("whoever writes never waits; what is lost is counted, and said in its place")
    func lost() {
        write("first", to: writer)
        // The reader has it in hand, and takes no other.
        #expect(reader.lines.next() == "first")
        for number in 0..<LogWriter.mostLines + 3 { write("\(number)", to: writer) }
        #expect(writer.linesLost == 3)
        reader.open()
        for number in 0..<LogWriter.mostLines { #expect(reader.lines.next() == "\(number)") }
        #expect(reader.lines.next() == "3 log lines were lost: the log was not read")
        write("after", to: writer)
        #expect(reader.lines.next() == "after")
        #expect(writer.linesLost == 3)
    }

    @Test("what waits is bounded in octets, too, and nothing overtakes what was lost")
    func octets() {
        write("first", to: writer)
        #expect(reader.lines.next() == "first")
        let long = String(repeating: "x", count: LogWriter.mostOctets / 2)
        write(long, to: writer)
        write(long + "x", to: writer)
        write("short", to: writer)
        #expect(writer.linesLost == 2)
        reader.open()
        #expect(reader.lines.next() == long)
        #expect(reader.lines.next() == "2 log lines were lost: the log was not read")
    }

    @Test("a line that is longer than all that may wait is lost alone")
    func tooLong() {
        reader.open()
        write(String(repeating: "x", count: LogWriter.mostOctets + 1), to: writer)
        #expect(reader.lines.next() == "1 log line was lost: the log was not read")
        write("after", to: writer)
        #expect(reader.lines.next() == "after")
    }

    @Test("a line that cannot be written counts as lost")
    func failed() {
        let writer = LogWriter { _, _ in false }
        write("one", to: writer)
        writer.flush()
        #expect(writer.linesLost == 1)
    }

    @Test("the end waits for the lines, and not for ever")
    func end() {
        write("first", to: writer)
        #expect(reader.lines.next() == "first")
        // Returns although the reader does not go on.
        writer.flush(milliseconds: 1)
        write("last", to: writer)
        reader.open()
        writer.flush(milliseconds: 10_000)
        #expect(!reader.lines.isEmpty)
    }
}
