import Forwarding

/// Something that is under way for a query.
protocol ForQuery: AnyObject {
    var id: QueryID { get }
}

/// What is under way, by the ids of its queries. Queries are numbered from the lowest free number on, so that a number
/// serves as a place in the table, and none has to be hashed.
struct UnderWay<Subject: ForQuery> {
    /// A power of two of places, at least half of them free. A subject stands at its number, or in the first free place
    /// behind it.
    private var places: [Subject?] = []
    private(set) var count = 0

    private static var fewestPlaces: Int { 16 }

    /// All subjects, in no order.
    var all: [Subject] { places.compactMap(\.self) }

    subscript(id: QueryID) -> Subject? { place(of: id).flatMap { places[$0] } }

    /// Adds a subject, in the place of one with the same id.
    mutating func insert(_ subject: Subject) {
        if let place = place(of: subject.id) {
            places[place] = subject
            return
        }
        if 2 * (count + 1) > places.count { grow() }
        places[freePlace(for: subject)] = subject
        count += 1
    }

    @discardableResult
    mutating func remove(_ id: QueryID) -> Subject? {
        guard var gap = place(of: id) else { return nil }
        let removed = places[gap].take()
        count -= 1
        // A subject further behind would not be found beyond the gap, unless it stands between its number and that.
        var place = next(gap)
        while let subject = places[place] {
            if distance(from: number(of: subject.id), to: place) >= distance(from: gap, to: place) {
                places.swapAt(gap, place)
                gap = place
            }
            place = next(place)
        }
        return removed
    }

    private func place(of id: QueryID) -> Int? {
        guard count > 0 else { return nil }
        var place = number(of: id)
        while let subject = places[place] {
            if subject.id == id { return place }
            place = next(place)
        }
        return nil
    }

    private func freePlace(for subject: Subject) -> Int {
        var place = number(of: subject.id)
        while places[place] != nil { place = next(place) }
        return place
    }

    private mutating func grow() {
        let subjects = all
        places = [Subject?](repeating: nil, count: max(Self.fewestPlaces, 2 * places.count))
        for subject in subjects { places[freePlace(for: subject)] = subject }
    }

    private func number(of id: QueryID) -> Int { id.number & (places.count - 1) }
    private func next(_ place: Int) -> Int { (place + 1) & (places.count - 1) }
    private func distance(from: Int, to: Int) -> Int { (to - from) & (places.count - 1) }
}
