import Glibc

/// One reader of bytes from strangers. Its `run` returns for any input; what it finds wrong ends the process, and
/// libFuzzer keeps the input.
struct Target: Sendable {
    let name: String
    let run: @Sendable ([UInt8]) -> Void

    static let all = [
        query, response, stream, frames, resp, http, http2, keepalive, request, service, providers, conf, cachefile,
        configuration, server, resolvconf, hosts, addresses, domains,
    ]

    /// The one that `FUZZ_TARGET` names: one binary has them all, so that it is linked once.
    static let chosen: Target = {
        let name = getenv("FUZZ_TARGET").map { String(cString: $0) }
        guard let target = all.first(where: { $0.name == name }) else {
            fatalError("FUZZ_TARGET is one of \(all.map(\.name).joined(separator: ", "))")
        }
        return target
    }()
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Target.chosen.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}

/// Ends the process if something is not as it has to be for every input.
func check(_ isRight: Bool, _ what: @autoclosure () -> String, line: Int = #line, file: StaticString = #fileID) {
    guard !isRight else { return }
    fatalError("\(file):\(line): \(what())")
}

/// The ways in which one stream can come: whole, octet by octet if it is short, and in pieces that its own octets choose,
/// so that each mutation is cut elsewhere.
func splits(of bytes: [UInt8]) -> [[ArraySlice<UInt8>]] {
    var ways = [[bytes[...]]]
    if bytes.count <= 512 { ways.append(bytes.indices.map { bytes[$0...$0] }) }
    var state = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    var pieces: [ArraySlice<UInt8>] = []
    var start = 0
    while start < bytes.count {
        // SplitMix64's step; short pieces are as likely as long ones.
        state = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        let longest = 1 << Int(state >> 59 & 15)
        let end = min(bytes.count, start + 1 + Int(state >> 32) % longest)
        pieces.append(bytes[start..<end])
        start = end
        state &+= 0x9E37_79B9_7F4A_7C15
    }
    ways.append(pieces)
    return ways
}
