/// The result of a reload of the configuration, each with lines for a person.
public enum ReloadOutcome: Sendable, Equatable {
    /// The settings are in effect.
    case done(String)
    /// The configuration is wrong; the former settings stay.
    case wrong(String)
    /// The configuration could not be read; the former settings stay.
    case unreadable(String)
}
