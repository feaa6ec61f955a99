import Base
import DNSWire

/// For each name, the order in which its addresses answered a TCP connection, and the trials that find this order.
struct AddressRanks {
    /// The name and type whose addresses are tried, with the port.
    struct Subject: Hashable {
        let name: NameKey
        let type: RecordType
        let port: UInt16
    }

    /// The result of a trial.
    struct Order {
        /// Addresses that answered, the fastest first.
        fileprivate(set) var answered: [IPAddress] = []
        /// Addresses that did not answer in time, or refused the connection.
        fileprivate(set) var failed: [IPAddress] = []
        /// When the trial began.
        fileprivate let since: Tick

        /// The rank of an address: first the addresses that answered, then the untried addresses, last the failed
        /// addresses.
        func rank(_ address: IPAddress) -> Int {
            answered.firstIndex(of: address) ?? (failed.contains(address) ? answered.count + 1 : answered.count)
        }

        fileprivate func knows(_ address: IPAddress) -> Bool { answered.contains(address) || failed.contains(address) }
    }

    /// The addresses of one trial under way.
    private struct Trial {
        let subject: Subject
        /// The reports number the addresses by their indices here.
        let addresses: [IPAddress]
        /// The number of addresses that have answered or failed.
        var ended = 0
        var order: Order
    }

    private var orders = Remembered<Subject, Order>(atMost: mostOrders)
    private var trials = Table<Trial>()

    /// Milliseconds after which a silent address counts as failed.
    static let patience = 300
    /// The most addresses of one answer that are tried; the untried addresses follow the addresses that answered.
    static let mostAddresses = 16
    /// The most trials at once. While so many run, an answer begins no trial; its addresses are tried at the next
    /// lookup of its name.
    static let mostTrials = 16
    /// The most orders that are remembered; a name has one order for each family.
    static let mostOrders = 1024
    /// Milliseconds for which the same addresses are not tried again.
    static let holds = 300_000
    /// Milliseconds for which an order is remembered; the order is used while its addresses are tried again.
    private static let remembered = 86_400_000

    func order(of subject: Subject, at now: Tick) -> Order? { orders.value(subject, at: now) }

    func isUnderWay(_ id: TableID) -> Bool { trials.contains(id) }

    /// Begins a trial of the first of these addresses, unless their order is known or a trial is under way.
    mutating func begin(
        _ subject: Subject, _ all: [IPAddress], at now: Tick
    ) -> (id: TableID, addresses: [IPAddress])? {
        let addresses = Array(all.eachOnce.prefix(Self.mostAddresses))
        guard addresses.count > 1, trials.count < Self.mostTrials,
            !trials.ids.contains(where: { trials[$0]?.subject == subject })
        else { return nil }
        if let known = order(of: subject, at: now), now < known.since.advanced(milliseconds: Self.holds),
            addresses.allSatisfy(known.knows)
        {
            return nil
        }
        return (trials.insert(Trial(subject: subject, addresses: addresses, order: Order(since: now))), addresses)
    }

    /// Notes that an address has answered or failed.
    /// - Returns: Whether the address was the last of its trial.
    mutating func ended(_ id: TableID, _ number: Int, hasAnswered: Bool) -> Bool {
        guard var trial = trials[id], trial.addresses.indices.contains(number) else { return false }
        trial.ended += 1
        if hasAnswered { trial.order.answered.append(trial.addresses[number]) }
        trials[id] = trial
        return trial.ended == trial.addresses.count
    }

    /// Ends a trial.
    /// - Returns: The trial's result, and whether addresses are still awaited; nil if there is no such trial.
    mutating func end(_ id: TableID, at now: Tick) -> (subject: Subject, order: Order, isWaiting: Bool)? {
        guard let trial = trials.remove(id) else { return nil }
        var order = trial.order
        order.failed = trial.addresses.filter { !order.answered.contains($0) }
        orders.insert(trial.subject, order, until: now.advanced(milliseconds: Self.remembered))
        return (trial.subject, order, trial.ended < trial.addresses.count)
    }

    /// Ends a trial without a result: an order that is known stays.
    /// - Returns: Whether the trial was under way.
    mutating func abandon(_ id: TableID) -> Bool { trials.remove(id) != nil }

    mutating func forget(_ isMeant: (NameKey) -> Bool) { orders.remove { isMeant($0.name) } }

    /// Forgets all orders.
    /// - Returns: The trials under way, which have ended.
    mutating func forgetAll() -> [TableID] {
        let ids = trials.ids
        for id in ids { trials.remove(id) }
        orders.removeAll()
        return ids
    }
}
