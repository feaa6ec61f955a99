import Base
import DNSWire

@testable import Daemon

/// What is asked, as bytes: RD set, one question of class IN, and behind it what `additional` says.
func query(
    _ name: Name, _ type: RecordType = .a, id: UInt16 = 0x1234, flags: UInt16 = 0x0100, recordClass: UInt16 = 1,
    additional: [UInt8] = []
) -> [UInt8] {
    let counts: [UInt8] = [0, 1, 0, 0, 0, 0, 0, additional.isEmpty ? 0 : 1]
    return octets(id) + octets(flags) + counts + name.wire + octets(type.rawValue) + octets(recordClass) + additional
}

func octets(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

/// An OPT record for 1232 octets with these options.
func opt(_ options: [UInt8] = []) -> [UInt8] {
    [0, 0, 41, 4, 208, 0, 0, 0, 0] + octets(UInt16(options.count)) + options
}

/// A reply's RCODE, and the first record's data of an answer of one question and uncompressed owner names alone.
func responseCode(_ reply: some Collection<UInt8>) -> UInt8 { Array(reply)[3] & 0x0F }

let example = Name("www.example.com")!
