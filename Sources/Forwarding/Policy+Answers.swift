import Base
import DNSCache
import DNSWire

/// The answers of the daemon's own.
extension Policy {
    /// The answer when an HTTPDNS account cannot be asked this type and no other group may be.
    func notSupported(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL, extendedError: .notSupported)
    }

    /// The answer for a private name while nobody can know it.
    func noPrivateNames(_ name: Name, _ type: RecordType) -> Answer {
        .nxDomain(name, type: type, negativeTTL: negativeTTL)
    }

    /// The answer when all addresses were private and the name may not have such, by the operator's setting.
    func noPermittedAddress(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL, extendedError: .blocked)
    }

    /// The answer when an HTTPDNS account has no record and no other group may be asked.
    func noRecord(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL)
    }

    /// The answer for an HTTPS or SVCB record of a name that goes to HTTPDNS: the address hints of a resolver's record
    /// would bypass HTTPDNS.
    func noServiceBinding(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL)
    }

    func localhost(_ name: Name, _ type: RecordType) -> Answer {
        switch type {
        case .a: .addresses(name, type: .a, [.v4(127, 0, 0, 1)], ttl: Self.fixedTTL)
        case .aaaa: .addresses(name, type: .aaaa, [IPAddress(v6: 0, 1)], ttl: Self.fixedTTL)
        default: .noData(name, type: type, negativeTTL: Self.fixedTTL)
        }
    }
}
