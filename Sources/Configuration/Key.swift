import Base

/// One key of the configuration: its section, its valid values and its property. Its default is the initial value of
/// the property in ``Settings``.
struct Key<Root: Sendable>: Sendable {
    /// The section of the key; ``of(_:_:)`` replaces it.
    var section = Section.upstreams
    /// The kinds of groups that have this key; empty for a key that no group has.
    var holders: Holders = []
    /// When a new value takes effect.
    var effect = Effect.atOnce
    /// One line for an operator, printed by `check`.
    var documentation = ""
    let name: String
    /// A description of valid values, to follow "give" in messages.
    let expected: String
    /// Whether the key's value must not appear in messages.
    let isSecret: Bool
    let read: @Sendable (Given, inout Root) throws(Problem) -> Void
    /// The value as TOML.
    let show: @Sendable (Root) -> String
    /// Whether the values are equal.
    let isEqual: @Sendable (Root, Root) -> Bool
    /// Copies the value from one root to another.
    let copy: @Sendable (Root, inout Root) -> Void
}

extension Key {
    /// The key paths are closures: creating the key paths of all keys would take a tenth of the time of a start.
    init<Value: Equatable>(
        _ name: String,
        _ property: @escaping @autoclosure @Sendable () -> any WritableKeyPath<Root, Value> & Sendable,
        _ kind: Kind<Value>
    ) {
        self.init(
            name: name, expected: kind.expected, isSecret: Value.self == Secret.self,
            read: { given, root throws(Problem) in root[keyPath: property()] = try kind.read(given) },
            show: { kind.show($0[keyPath: property()]) },
            isEqual: { $0[keyPath: property()] == $1[keyPath: property()] },
            copy: { $1[keyPath: property()] = $0[keyPath: property()] })
    }

    /// A copy of the key, with its line for an operator.
    func about(_ documentation: String) -> Key {
        var key = self
        key.documentation = documentation
        return key
    }

    /// A copy of the key, whose new values take effect at another time.
    func effective(_ effect: Effect) -> Key {
        var key = self
        key.effect = effect
        return key
    }

    /// A copy of the key in another section, for a `Whole` that contains this `Root`.
    func of<Whole>(
        _ part: @escaping @autoclosure @Sendable () -> any WritableKeyPath<Whole, Root> & Sendable, _ section: Section
    ) -> Key<Whole> {
        Key<Whole>(
            section: section, holders: holders, effect: effect, documentation: documentation, name: name,
            expected: expected, isSecret: isSecret,
            read: { [read] given, whole throws(Problem) in try read(given, &whole[keyPath: part()]) },
            show: { [show] in show($0[keyPath: part()]) },
            isEqual: { [isEqual] in isEqual($0[keyPath: part()], $1[keyPath: part()]) },
            copy: { [copy] in copy($0[keyPath: part()], &$1[keyPath: part()]) })
    }
}

/// When a new value of a key takes effect.
enum Effect: Sendable {
    case atOnce
    /// At the start: sockets, threads, memory, the log or an open file depend on the value.
    case atStart
    /// At once; at the start, if sockets need the former certificate and there is no other.
    case withCertificate
}

/// The sections, in the order in which they are shown.
enum Section: String, CaseIterable, Sendable {
    case listen, httpdns, tls, domains, fallback
    case privateNames = "private"
    /// `[upstreams.NAME]`: one section for each group.
    case upstreams
    case nat64, cache, sharedCache, control, log

    /// The section's header, as in a file.
    var header: String { self == .upstreams ? "[\(rawValue).NAME]" : "[\(rawValue)]" }
}

extension Key where Root == Settings {
    var id: KeyID { KeyID(section: section.rawValue, name: name) }
    /// `section.name`, as in messages.
    var path: String { id.path }
    /// The environment variable that overrides the file.
    var variable: String { id.variable }
}

extension Key {
    /// Whether the key is a secret or names the file that holds one: `token` and `tokenFile`.
    var isSecretSource: Bool {
        isSecret || Key<Settings.Group>.ofGroup.contains { $0.isSecret && $0.name + "File" == name }
    }
}
