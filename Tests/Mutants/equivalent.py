"""Mutants that change nothing that a test could see, each with the reason."""

EQUIVALENT = {
    "Sources/Forwarding/GroupState+Names.swift: < as <=: count < outbox.count": "only how an empty list is emptied",
    "Sources/Forwarding/Forwarder.swift: <= as <: first <= $0": "which of two deadlines of one moment is first",
    "Sources/Forwarding/GroupDesk+Turns.swift: > as >=: groups[group].waiting.count > 2 * Shares.flights":
        "when memory is given back",
    "Sources/Names/DomainList.swift: > as >=: needed > octets.capacity": "when memory is reserved",
}
