"""Mutants that change nothing that a test could see, each with the reason."""

EQUIVALENT = {
    "Sources/Forwarding/GroupState+Names.swift: < as <=: count < outbox.count": "only how an empty list is emptied",
    "Sources/Forwarding/Forwarder.swift: <= as <: first <= $0": "which of two deadlines of one moment is first",
    "Sources/Forwarding/GroupDesk+Turns.swift: > as >=: groups[group].waiting.count > 2 * Shares.flights":
        "when memory is given back",
    "Sources/Names/DomainList.swift: > as >=: needed > octets.capacity": "when memory is reserved",
    "Sources/DNSCache/DNSCache.swift: left out: maps[Self.segment(hash)].prefetchBucket(of: hash)": "when memory is fetched",
    "Sources/Forwarding/DomainRules.swift: <= as <: lists.reduce(0, { $0 + $1.0.octets.count }) <= most":
        "one octet of 4 GiB of lists",
    "Sources/Forwarding/DomainTable.swift: > as >=: entry.mark.bits > 0": "a look for networks of 0 bits, which finds none",
    "Sources/Forwarding/Forwarder.swift: > as >=: desk.actions.capacity > Self.actionsCapacity": "when memory is given back",
    "Sources/Forwarding/GroupDesk+Turns.swift: left out: lookup.query = nil": "a query that has ended is found as little as none",
    "Sources/Forwarding/GroupState+Names.swift: <= as <: count <= 64": "when memory is given back",
    "Sources/Forwarding/HostsTable.swift: one more: 2_000_000": "one name more than two million",
    "Sources/Forwarding/Policy+Basis.swift: negated: refusesPrivate": "bases are as different as before",
    "Sources/Forwarding/Policy+Basis.swift: negated: isInHosts": "bases are as different as before",
    "Sources/Forwarding/Policy+Servers.swift: < as <=: $0.key.rawValue < $1.key.rawValue": "no two keys are equal",
    "Sources/Forwarding/Shares.swift: < as <=: $0.value < $1.value": "which of two sources with the same part",
    "Sources/Forwarding/TokenBucket.swift: < as <=: filledAt < now": "in no time nothing is added",
    "Sources/Forwarding/TokenBucket.swift: < as <=: tokens < 1": "a nanosecond, where there is room already",
    "Sources/Forwarding/Translations.swift: one more: 2": "where numbers begin that are far from all others",
    "Sources/Names/DomainList.swift: left out: exact.reserveCapacity(octets.count)": "when memory is reserved",
}
