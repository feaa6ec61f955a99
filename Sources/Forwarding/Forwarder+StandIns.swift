import Base
import DNSCache

/// Answers that stand in for those of a group that has failed, and the end of its outage.
extension Forwarder {
    /// The most questions of one group for which that is remembered, some 200 octets each. What stands in for an older
    /// one stays until its time ends.
    static var maximumStandIns: Int { 4096 }

    /// Another group's answer to a flight stands in for those of the groups that have failed.
    mutating func standsIn(_ flight: Flight, at now: Tick) {
        let end = now.advanced(milliseconds: Int(Timing.standInTTL) * 1000)
        for step in flight.route.indices where flight.steps[step] == .failed {
            let place = flight.route[step].group.rawValue
            guard groups[place].standIns.value(flight.key, at: now) == nil else { continue }
            groups[place].standIns.insert(flight.key, true, until: end)
            guard groups[place].nextLook == nil, groups[place].isFailing else { continue }
            groups[place].nextLook = Self.firstLook
            deadlines.insert(.outage(flight.route[step].group), at: now.advanced(milliseconds: Self.firstLook * 1000))
        }
    }

    /// Seconds after which a group that has failed is asked again for one of the names that another group has answered, if nobody
    /// else asks it: twice as long each time, up to the longest.
    private static var firstLook: Int { 2 }
    private static var longestLook: Int { 32 }

    /// Asks a group again that has failed, as long as anything stands in for its answers: otherwise nobody would notice that it
    /// answers again before these end.
    mutating func lookAgain(_ group: GroupID, at now: Tick) {
        let place = group.rawValue
        guard let last = groups[place].nextLook, let key = groups[place].standIns.first(at: now, where: { $0 }) else {
            groups[place].nextLook = nil
            return
        }
        let next = min(2 * last, Self.longestLook)
        groups[place].nextLook = next
        deadlines.insert(.outage(group), at: now.advanced(milliseconds: next * 1000))
        receive(key.name.name, key.type, for: key.audience, from: nil, of: .daemon, at: now)
    }

    /// A group answers again, or may: what stands in for its answers is forgotten, so that the next question asks it. A
    /// question that the group alone fails is so asked twice a minute at most.
    mutating func outageEnded(of group: GroupID, at now: Tick) {
        let place = group.rawValue
        let end = now.advanced(milliseconds: Int(Timing.standInTTL) * 1000)
        for key in groups[place].standIns.keys(at: now) where groups[place].standIns.value(key, at: now) == true {
            groups[place].standIns.insert(key, false, until: end)
            cache.removeStandIn(key.name.name, type: key.type)
        }
    }
}
