import Glibc

/// One reader of bytes from strangers. Its `run` returns for any input; what it finds wrong ends the process, and
/// libFuzzer keeps the input.
struct Target: Sendable {
    let name: String
    let run: @Sendable ([UInt8]) -> Void

    static let all = [
        query, response, binding, stream, frames, doh, resp, http, http2, keepalive, request, service, providers, conf,
        cachefile, configuration, server, resolvconf, hosts, addresses, domains, blocklist, history,
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

/// Chooses among `count` ways to try an input, by the input itself: so each is tried in one way alone, which leaves time for
/// more of them, and a finding is found again.
/// - Parameter salt: Another one for each choice that is made of the same input.
func choice(_ bytes: [UInt8], of count: Int, salt: UInt64 = 0) -> Int {
    Int((digest(bytes, salt) >> 33) % UInt64(count))
}

/// Two ways in which one stream can come: whole, and as its own octets choose octet by octet, if it is short, or in pieces, so
/// that each mutation is cut elsewhere.
func splits(of bytes: [UInt8]) -> [[ArraySlice<UInt8>]] {
    if bytes.count <= 512, choice(bytes, of: 4, salt: 1) == 0 {
        return [[bytes[...]], bytes.indices.map { bytes[$0...$0] }]
    }
    var state = digest(bytes)
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
    return [[bytes[...]], pieces]
}

/// FNV-1a.
private func digest(_ bytes: [UInt8], _ salt: UInt64 = 0) -> UInt64 {
    var digest = 0xCBF2_9CE4_8422_2325 ^ salt &* 0x9E37_79B9_7F4A_7C15
    for byte in bytes { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return digest
}
