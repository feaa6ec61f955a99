import Base
import DNSWire

/// How many names without a record HTTPDNS is asked for below one registered domain: a program that asks for random
/// names (a page's script is enough) would have each of them billed.
///
/// Each name that HTTPDNS has no record of costs its domain a second, and a domain may owe so many seconds at a time;
/// names with addresses cost nothing. So a list of search domains, or a mail server that looks senders up in a block
/// list, stays below it for a day or goes on at the local resolver, while a flood is billed 86,400 names a day instead
/// of some million an hour.
struct NoRecordBudget {
    /// When each domain owes nothing any more. A domain's place is its name's keyed digest: two that meet in one share
    /// it.
    private var paidAt = Remembered<Int, Tick>(atMost: maximumDomains)

    /// Some 80 KB. Past it the domain that was first is forgotten, and what it owes.
    static var maximumDomains: Int { 1024 }
    /// What one name costs, in milliseconds.
    static var price: Int { 1000 }
    /// Names that may be owed: what a big page or a host's start looks up in one go, several times over.
    static var burst: Int { 256 }

    var count: Int { paidAt.count }

    /// Whether HTTPDNS may be asked for a name of which nothing is known.
    func hasRoom(for name: Name, at now: Tick) -> Bool {
        guard paidAt.count > 0, let domain = Self.domain(of: name), let paidAt = paidAt.value(domain, at: now) else {
            return true
        }
        return now.advanced(milliseconds: Self.price * Self.burst) > paidAt
    }

    /// HTTPDNS has no record of a name. What was under way already when the budget was spent is owed as well.
    mutating func charge(_ name: Name, at now: Tick) {
        guard let domain = Self.domain(of: name) else { return }
        let before = max(paidAt.value(domain, at: now) ?? now, now)
        let paid = before.advanced(milliseconds: Self.price)
        paidAt.insert(domain, paid, until: paid)
    }

    mutating func removeAll() { paidAt.removeAll() }

    /// The registered domain above a name, as far as that can be told without a list of all: the last two labels, or
    /// the last three where the last is a country's, of two letters, and the one before it has three or fewer, as
    /// `co.uk` and `com.cn` have. Nil for a name that may itself be a registered domain: those of two labels, or of
    /// three of the latter kind.
    static func domain(of name: Name) -> Int? {
        let wire = name.wire
        var (offset, last, second, third, labels) = (0, 0, 0, 0, 0)
        while wire[offset] != 0 {
            (third, second, last) = (second, last, offset)
            labels += 1
            offset += Int(wire[offset]) + 1
        }
        let isBelowCountry = wire[last] == 2 && wire[second] <= 3
        guard labels > (isBelowCountry ? 3 : 2) else { return nil }
        return NameKey.digest(wire, from: isBelowCountry ? third : second)
    }
}
