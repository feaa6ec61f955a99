import DNSCache
import DNSWire

/// `signed` of accounts: validating clients (DO without CD) would find an account's addresses bogus in signed zones, so
/// their questions go to the groups of the route that have signatures and whose queries cannot be read on the way.
extension Policy {
    mutating func setSignedSteps() {
        for index in groupRoutes.indices {
            let isLeft = groupRoutes[index].steps.first.map { kinds.leavingValidators.contains($0.group) } ?? false
            let steps = isLeft ? groupRoutes[index].messageSteps.filter { kinds.signing.contains($0.group) } : []
            groupRoutes[index].signedSteps = steps.isEmpty ? nil : steps
        }
        hasSignedSteps = groupRoutes.contains { $0.signedSteps != nil }
    }

    /// The account whose name a validating client asks at another group; nil: this question takes the common route.
    func leavesToValidators(_ key: Flight.Key) -> GroupID? {
        guard hasSignedSteps, key.audience.validates else { return nil }
        return leavesToValidators(key.name.name, key.type)
    }

    /// The clients that an answer for an audience serves: validating clients have answers of their own for a name whose
    /// other answers come from an account.
    func served(_ audience: Audience, _ name: Name, _ type: RecordType) -> Audience {
        guard hasSignedSteps, audience == .everyone || audience.validates, leavesToValidators(name, type) != nil else {
            return audience
        }
        return audience.validates ? .validators : .exceptValidators
    }

    private func leavesToValidators(_ name: Name, _ type: RecordType) -> GroupID? {
        let finding = find(name, type)
        guard Self.isAnsweredByAccounts(type), Self.canBeAddressed(name) else { return nil }
        let way = groupRoutes[index(finding)]
        return way.signedSteps == nil ? nil : way.steps.first?.group
    }

    /// The types for which an account's answer, or the lack of one, counts.
    static func isAnsweredByAccounts(_ type: RecordType) -> Bool {
        type == .a || type == .aaaa || type == .https || type == .svcb
    }
}
