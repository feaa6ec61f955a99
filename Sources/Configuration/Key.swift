/// One key of the configuration: where it is written, what it wants, and where its value goes. Its default is the
/// initial value of the property in ``Settings``.
struct Key<Root: Sendable>: Sendable {
    let section: Section
    let name: String
    /// One line for an operator, as `check` prints it.
    let documentation: String
    /// Its value is in no message.
    let isSecret: Bool
    let read: @Sendable (Given, inout Root) throws(Problem) -> Void
    /// The value as TOML.
    let show: @Sendable (Root) -> String
    /// Whether the value is the same, for some keys with what the file holds that it names.
    let isEqual: @Sendable (Root, Root) -> Bool
    /// Takes the value over from one to the other.
    let copy: @Sendable (Root, inout Root) -> Void
}

extension Key {
    /// - Parameter contents: What the file holds that the value names, if that counts as well.
    init<Value: Equatable>(
        _ section: Section, _ name: String, _ property: any WritableKeyPath<Root, Value> & Sendable,
        _ kind: Kind<Value>, holding contents: (any KeyPath<Root, FileContents?> & Sendable)? = nil,
        _ documentation: String
    ) {
        self.init(
            section: section, name: name, documentation: documentation, isSecret: Value.self == Secret.self,
            read: { given, root throws(Problem) in root[keyPath: property] = try kind.read(given) },
            show: { kind.show($0[keyPath: property]) },
            isEqual: { left, right in
                left[keyPath: property] == right[keyPath: property]
                    && contents.map { left[keyPath: $0] == right[keyPath: $0] } ?? true
            },
            copy: { $1[keyPath: property] = $0[keyPath: property] })
    }

    /// The same key where its root is a part of another one, in another section.
    func of<Whole>(_ part: any WritableKeyPath<Whole, Root> & Sendable, _ section: Section) -> Key<Whole> {
        Key<Whole>(
            section: section, name: name, documentation: documentation, isSecret: isSecret,
            read: { [read] given, whole throws(Problem) in try read(given, &whole[keyPath: part]) },
            show: { [show] in show($0[keyPath: part]) },
            isEqual: { [isEqual] in isEqual($0[keyPath: part], $1[keyPath: part]) },
            copy: { [copy] in copy($0[keyPath: part], &$1[keyPath: part]) })
    }
}

/// The sections in the order they are shown.
enum Section: String, CaseIterable, Sendable {
    case listen, httpdns, tls, domains, fallback
    /// `[upstreams.NAME]`: a section for each group.
    case upstreams
    case cache, control, log

    /// As it stands in a file.
    var header: String { self == .upstreams ? "[\(rawValue).NAME]" : "[\(rawValue)]" }
}

extension Key where Root == Settings.Group {
    func place(in group: Settings.Group) -> KeyPlace { KeyPlace(section: group.path, name: name) }
}

extension Key where Root == Draft {
    var place: KeyPlace { KeyPlace(section: section.rawValue, name: name) }
    /// `section.name`, as messages call it.
    var path: String { place.path }
    /// The environment variable that wins over the file.
    var variable: String { place.variable }

    /// A secret, or the file that holds one: `token` and `tokenFile`.
    var isSecretSource: Bool {
        isSecret || name.hasSuffix("File") && Key.named(section.rawValue, String(name.dropLast(4)))?.isSecret == true
    }
}
