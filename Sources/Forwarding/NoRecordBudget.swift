import Base
import DNSWire

/// Limits the names without a record for which HTTPDNS is asked below one registered domain: a program that asks for
/// random names (a page's script is enough) would have each name billed.
///
/// Each name without a record costs its domain one second, and a domain may owe a limited number of seconds; names with
/// addresses cost nothing. A list of search domains, or a mail server that looks senders up in a block list, stays
/// below the limit for a day or continues at the local resolver, while a flood is billed 86,400 names a day instead of
/// some million an hour.
struct NoRecordBudget {
    /// When the debt of each domain ends. The key is a keyed digest of the domain; two domains with the same digest
    /// share a budget.
    private var paidAt = Remembered<Int, Tick>(atMost: maximumDomains)

    /// The domains take some 80 KB. Beyond this number, the oldest domain is forgotten, with its debt.
    static var maximumDomains: Int { 1024 }
    /// The cost of one name, in milliseconds.
    static var price: Int { 1000 }
    /// The most names owed: several times the number that a large page or a starting host looks up at once.
    static var burst: Int { 256 }

    var count: Int { paidAt.count }

    /// Whether HTTPDNS may be asked for a name that is not known.
    func hasRoom(for name: Name, at now: Tick) -> Bool {
        guard paidAt.count > 0, let domain = Self.domain(of: name), let paidAt = paidAt.value(domain, at: now) else {
            return true
        }
        return now.advanced(milliseconds: Self.price * Self.burst) > paidAt
    }

    /// Charges a name of which HTTPDNS has no record. Queries that were under way when the budget was exhausted are
    /// charged as well.
    mutating func charge(_ name: Name, at now: Tick) {
        guard let domain = Self.domain(of: name) else { return }
        let before = max(paidAt.value(domain, at: now) ?? now, now)
        let paid = before.advanced(milliseconds: Self.price)
        paidAt.insert(domain, paid, until: paid)
    }

    mutating func removeAll() { paidAt.removeAll() }

    /// The registered domain above a name, approximated without a list of public suffixes: the last two labels, or the
    /// last three if the last is a country's two letters and the label before it has at most three, as in `co.uk` and
    /// `com.cn`. Nil for a name that may itself be a registered domain: of two labels, or of three in the latter case.
    static func domain(of name: Name) -> Int? {
        let wire = name.wire
        let labels = Name.labels(wire)
        guard labels.count > 1 else { return nil }
        let isBelowCountry = wire[labels[labels.count - 1]] == 2 && wire[labels[labels.count - 2]] <= 3
        let domain = labels.suffix(isBelowCountry ? 3 : 2)
        return domain.count < labels.count ? NameKey.digest(wire, from: domain[domain.startIndex]) : nil
    }
}
