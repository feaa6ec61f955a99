/// The features that an answer may depend on. Most faults occur where two of them meet.
enum Feature: Int, CaseIterable {
    // Settings.
    case cacheFile, sharedCache, staleAnswers, prefetch
    case account, encryptedAccount, otherProvider, secondAccount, accountsWall, httpOnly, budget, oneFamily,
        familiesByRoute
    case fixedPrefix, soughtPrefix, encryptedGroupBehind
    // The way of the name.
    case fallback, overTLS, overHTTPS, overTCP, namesFile, thenTry, privateName, hostsFile, blocked, alias
    case namedResolvers, networksResolvers
    // The way of the question.
    case stream, validates, checksNothing, hasCookie
    // The answer.
    case cached, stale, made, denied, failed
    // The events since the daemon's start, within the last hour.
    case started, killed, reloaded, flushed, networkChanged, noIPv6, noIPv4, slept, clockSet, fullDisk, noDescriptors
    case namesChanged, resolversChanged, noResolvers, hostsChanged, listChanged, serverMoved, flooded, serverInTrouble

    /// An answer has at most one feature of each list.
    private static let exclusive: [(Set<Feature>, because: String)] = [
        (
            [.account, .fallback, .overTLS, .overHTTPS, .overTCP, .privateName, .hostsFile, .blocked],
            "a name goes to one group first"
        ),
        ([.fixedPrefix, .soughtPrefix], "a setting has one value"),
        ([.namedResolvers, .networksResolvers], "a setting has one value"),
        ([.oneFamily, .familiesByRoute], "a setting has one value"),
        ([.stale, .failed, .denied], "an answer is one of them"),
        ([.started, .killed], "a daemon begins once"),
        ([.cached, .stale, .failed], "an answer is one of them"),
        ([.cached, .denied], "who has said it, and when, is known of records alone"),
        ([.made, .denied, .failed], "an answer is one of them"),
        ([.oneFamily, .made], "of the family that is left out there is no answer"),
        ([.httpOnly, .namedResolvers], "they are not asked"),
        ([.httpOnly, .networksResolvers], "they are not asked"),
        ([.httpOnly, .encryptedGroupBehind], "it is not asked"),
    ]
    /// The features of answers from this machine, which do not depend on ``ofOthers``.
    private static let fromHere: Set<Feature> = [.hostsFile, .blocked]
    private static let ofOthers: Set<Feature> = [.namedResolvers, .networksResolvers, .cached, .stale, .made, .failed]
    /// The features that occur only with names of an account (``ofAccounts``), or with names of the listed groups.
    private static let needs: [(Feature, Set<Feature>)] = [
        (.namesFile, [.overTLS]),
        (.thenTry, [.overTLS, .overHTTPS, .overTCP]),
    ]
    private static let ofAccounts: Set<Feature> = [
        .encryptedAccount, .otherProvider, .secondAccount, .accountsWall, .httpOnly, .budget, .oneFamily,
        .familiesByRoute,
        .encryptedGroupBehind,
    ]
    private static let routes: Set<Feature> = exclusive[0].0

    /// Whether an answer can depend on both.
    static func canMeet(_ a: Feature, _ b: Feature) -> Bool {
        !exclusive.contains { $0.0.contains(a) && $0.0.contains(b) } && canMeetInOrder(a, b) && canMeetInOrder(b, a)
    }

    private static func canMeetInOrder(_ a: Feature, _ b: Feature) -> Bool {
        if ofAccounts.contains(a) {
            // Answers for other names do not depend on the account's settings.
            if routes.contains(b), b != .account { return false }
            if b == .namesFile || b == .thenTry { return false }
        }
        if fromHere.contains(a), ofOthers.contains(b) { return false }
        if let (_, needed) = needs.first(where: { $0.0 == a }), Self.routes.contains(b) { return needed.contains(b) }
        return true
    }
}

/// The number of answers that depended on two features, and on three of the most dangerous ones.
struct Crossings {
    private var pairs = [Int](repeating: 0, count: Feature.allCases.count * Feature.allCases.count)
    private static let dangerous: [Feature] = [
        .cacheFile, .started, .reloaded, .flushed, .networkChanged, .listChanged, .hostsChanged, .namesChanged,
        .privateName, .soughtPrefix,
        .fixedPrefix, .sharedCache, .encryptedGroupBehind, .secondAccount, .accountsWall, .blocked, .stream, .validates,
        .noDescriptors,
    ]
    private var triples = [Int](repeating: 0, count: dangerous.count * dangerous.count * dangerous.count)

    init() {}

    /// Adds the counts of another run, as ``text`` has them.
    mutating func add(_ text: String) {
        let counts = text.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        guard counts.count == pairs.count + triples.count else { return }
        for index in pairs.indices { pairs[index] += counts[index] }
        for index in triples.indices { triples[index] += counts[pairs.count + index] }
    }

    var text: String { (pairs + triples).map(String.init).joined(separator: " ") }

    private static func index(_ a: Feature, _ b: Feature) -> Int {
        min(a.rawValue, b.rawValue) * Feature.allCases.count + max(a.rawValue, b.rawValue)
    }

    private static func index(_ a: Int, _ b: Int, _ c: Int) -> Int {
        (a * dangerous.count + b) * dangerous.count + c
    }

    mutating func met(_ features: Set<Feature>) {
        let all = features.sorted { $0.rawValue < $1.rawValue }
        for (index, one) in all.enumerated() { for other in all[(index + 1)...] { pairs[Self.index(one, other)] += 1 } }
        let some = Self.dangerous.indices.filter { features.contains(Self.dangerous[$0]) }
        for (i, a) in some.enumerated() {
            for (j, b) in some.enumerated().dropFirst(i + 1) {
                for c in some.dropFirst(j + 1) { triples[Self.index(a, b, c)] += 1 }
            }
        }
    }

    /// The result in words: the number of pairs that have met, the smallest count, and the pairs that have not met.
    var lines: [String] {
        let all = Feature.allCases
        var (counts, missing) = ([Int](), [String]())
        for (index, one) in all.enumerated() {
            for other in all[(index + 1)...] where Feature.canMeet(one, other) {
                counts.append(pairs[Self.index(one, other)])
                if counts.last == 0 { missing.append("\(one) and \(other)") }
            }
        }
        var (met, possible) = (0, 0)
        let some = Self.dangerous
        for a in some.indices {
            for b in some.indices.dropFirst(a + 1) {
                for c in some.indices.dropFirst(b + 1) {
                    let three = [some[a], some[b], some[c]]
                    guard Feature.canMeet(three[0], three[1]), Feature.canMeet(three[0], three[2]),
                        Feature.canMeet(three[1], three[2])
                    else { continue }
                    possible += 1
                    if triples[Self.index(a, b, c)] > 0 {
                        met += 1
                    } else {
                        missing.append("\(three[0]), \(three[1]) and \(three[2])")
                    }
                }
            }
        }
        let head = [
            "pairs: \(counts.count { $0 > 0 }) of \(counts.count) met, the least \(counts.filter { $0 > 0 }.min() ?? 0) times; "
                + "of three: \(met) of \(possible)"
        ]
        return head + (missing.isEmpty ? [] : ["not met: \(missing.prefix(40).joined(separator: "; "))"])
    }
}
