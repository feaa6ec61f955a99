import Base
import DNSCache
import DNSWire

/// The answers of the daemon's own.
extension Policy {
    /// The answer for a type that an HTTPDNS account cannot be asked, if no other group may be.
    func notSupported(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL, extendedError: .notSupported)
    }

    /// The answer for a private name while no server knows it.
    func noPrivateNames(_ name: Name, _ type: RecordType) -> Answer {
        .nxDomain(name, type: type, negativeTTL: negativeTTL)
    }

    /// The answer for a private name while the network has not named its resolvers yet. NXDOMAIN would be final to
    /// programs, and stub resolvers would cache it.
    func privateNamesAwaited(_ name: Name, _ type: RecordType) -> Answer {
        var answer = Answer.failure(name, type: type, .servFail)
        answer.add(.notReady, text: "no resolver of this network is known yet")
        return answer
    }

    /// The answer if all addresses were private and the name may not have private ones, by the operator's setting.
    func noPermittedAddress(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL, extendedError: .blocked)
    }

    /// The answer if an HTTPDNS account has no record and no other group may be asked.
    func noRecord(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL)
    }

    /// The answer for an HTTPS or SVCB record of a name that goes to HTTPDNS: the address hints of a resolver's record
    /// would bypass HTTPDNS.
    func noServiceBinding(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL)
    }

    /// The own answer of the group that takes a name; nil: the group asks its servers, or a rule before all groups has
    /// an answer.
    func answerOfGroup(
        _ key: NameKey, _ type: RecordType, _ finding: DomainRules.Finding, isOfThisHost: Bool
    ) -> (way: Way, reason: RouteReason)? {
        guard let group = finding.group, let (answer, groupName) = groupRoutes[group.rawValue].answer,
            hosts.answer(key, type, ttl: 0, isOfThisHost: isOfThisHost) == nil,
            type != .any || answer.addresses.isEmpty && answer.target == nil
        else { return nil }
        let name = key.name
        var reply: Answer
        switch answer {
        case .alias(let target) where Self.isAnsweredByAccounts(type):
            return (.alias(of: target, by: group), .groupAnswers)
        case .alias(let target):
            reply =
                type == .cname
                ? .pointers(name, type: type, [target], ttl: Self.groupTTL)
                : .noData(name, type: type, negativeTTL: Self.groupTTL)
            return (.answer(reply, by: group), .groupAnswers)
        case .addresses(let addresses):
            let isHeld = (type == .a || type == .aaaa) && addresses.contains { $0.isIPv4 == (type == .a) }
            reply =
                isHeld
                ? .addresses(name, type: type, addresses, ttl: Self.groupTTL)
                : .noData(name, type: type, negativeTTL: Self.groupTTL)
            return (.answer(reply, by: group), .groupAnswers)
        // A name of the hosts file exists for every type.
        case .nxdomain where !hosts.holds(key) || !isOfThisHost && hosts.isForThisHostAlone(key):
            reply = .nxDomain(name, type: type, negativeTTL: negativeTTL)
        case .nxdomain, .nodata: reply = .noData(name, type: type, negativeTTL: negativeTTL)
        case .refused: reply = .failure(name, type: type, .refused)
        }
        reply.add(.blocked, text: groupName)
        return (.answer(reply, by: group), .groupAnswers)
    }

    /// TTL of the addresses in groups' own answers, in seconds.
    private static var groupTTL: UInt32 { 300 }

    func localhost(_ name: Name, _ type: RecordType) -> Answer {
        switch type {
        case .a: .addresses(name, type: .a, [.v4(127, 0, 0, 1)], ttl: Self.fixedTTL)
        case .aaaa: .addresses(name, type: .aaaa, [IPAddress(v6: 0, 1)], ttl: Self.fixedTTL)
        default: .noData(name, type: type, negativeTTL: Self.fixedTTL)
        }
    }
}
