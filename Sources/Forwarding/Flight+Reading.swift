import Base
import DNSCache
import DNSWire

/// The readable properties of a flight.
extension Flight {
    /// Whether a client has asked this question.
    var isWanted: Bool {
        switch phase {
        case .open(let isWanted, _, _), .answered(let isWanted): isWanted
        }
    }

    /// Whether the clients have a stale answer or a failure.
    var isAnswered: Bool { if case .answered = phase { true } else { isOver } }

    /// When a deadline is due that does not depend on a server.
    var nextMoment: Tick? {
        guard case .open(_, let staleAt, let answerBy) = phase else { return hedgeAt }
        return min(min(hedgeAt ?? answerBy, staleAt ?? answerBy), answerBy)
    }

    /// Whether the event that is due gives a stale answer.
    func isStaleDue(at now: Tick) -> Bool {
        if case .open(_, let staleAt?, _) = phase { staleAt <= now } else { false }
    }

    func isUnderWay(_ step: Int) -> Bool { steps[step] == .asked }

    /// Whether a group that carries messages has answered; an earlier step may still be under way.
    var wasAnswered: Bool { has(.answered, in: 0..<route.count) }

    /// Whether no step can still answer.
    var isDone: Bool { !has(.asked, in: 0..<route.count) }

    func has(_ state: StepState, in range: Range<Int>) -> Bool {
        for step in range where steps[step] == state { return true }
        return false
    }

    /// The last step that has begun or was passed over; nil: none has.
    var last: Int? {
        var step = route.count - 1
        while step >= 0, steps[step] == .ahead { step -= 1 }
        return step < 0 ? nil : step
    }

    /// The last step that may still answer; at least one may while the flight is open.
    var lastUnderWay: Int { route.indices.last { isUnderWay($0) } ?? 0 }

    /// The next step whose group has servers and follows this end of the step before; nil: there is none.
    /// - Parameter step: The step before; nil: the last one that has begun.
    func nextStep(after end: StepEnds, behind step: Int? = nil, _ rules: FlightRules) -> Int? {
        var step = (step ?? last).map { $0 + 1 } ?? 0
        while step < route.count {
            if !route[step].after.isDisjoint(with: end), rules.hasServers(route[step]) { return step }
            step += 1
        }
        return nil
    }

    /// Whether another group is asked after a step has failed, or is being asked already.
    func leadsOn(from step: Int, _ rules: FlightRules) -> Bool {
        if let last, last > step { return has(.asked, in: (step + 1)..<route.count) }
        return nextStep(after: .failure, behind: step, rules) != nil
    }

    /// Whether an answer of this step is only a substitute, since a group before it still owes one. That group
    /// - failed, or has not proven that it has no record,
    /// - is still being asked, or
    /// - is an account that could not be asked. An account's answer is as good as another account's.
    ///
    /// - Parameter step: The number of steps, if the answering one is not known.
    func standsIn(_ step: Int, _ rules: FlightRules) -> Bool {
        let isAccount = step < route.count && rules.carriesAddresses(route[step])
        for before in 0..<step {
            let isBeforeAccount = rules.carriesAddresses(route[before])
            switch steps[before] {
            case .failed, .unproven, .asked: if !(isAccount && isBeforeAccount) { return true }
            case .withoutServer: if !isAccount && isBeforeAccount { return true }
            default: continue
            }
        }
        return false
    }

    /// The index of a group in the route, in which it occurs once.
    func step(of group: GroupID) -> Int {
        var step = 0
        while route[step].group != group { step += 1 }
        return step
    }

    /// The question in the form for groups that carry messages.
    var question: MessageQuestion {
        switch key.audience {
        case .everyone, .exceptValidators, .validators:
            MessageQuestion(name: key.name.name, type: key.type, dnssecOK: false, checkingDisabled: false)
        case .those(let dnssecOK, let checkingDisabled):
            MessageQuestion(
                name: key.name.name, type: key.type, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
        }
    }
}
