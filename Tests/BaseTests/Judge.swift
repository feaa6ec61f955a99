import Base
import Glibc

/// glibc's own reading and writing of addresses: the independent judge of ours.
enum Judge {
    static func octets(_ text: String) -> [UInt8]? {
        var v4 = [UInt8](repeating: 0, count: 4)
        if inet_pton(AF_INET, text, &v4) == 1 { return v4 }
        var v6 = [UInt8](repeating: 0, count: 16)
        return inet_pton(AF_INET6, text, &v6) == 1 ? v6 : nil
    }

    static func text(_ octets: [UInt8]) -> String {
        var buffer = [CChar](repeating: 0, count: 64)
        _ = inet_ntop(octets.count == 4 ? AF_INET : AF_INET6, octets, &buffer, socklen_t(buffer.count))
        return buffer.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }
}

// A span cannot pass through the macros of Testing.

func addressFrom(octets: [UInt8]) -> IPAddress? { IPAddress(bytes: octets.span) }

func addressFrom(parsing bytes: [UInt8]) -> IPAddress? { IPAddress(parsing: bytes.span) }
