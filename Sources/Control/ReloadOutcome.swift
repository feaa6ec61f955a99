/// What came of reading the configuration again, each with lines for a person.
public enum ReloadOutcome: Sendable, Equatable {
    /// The settings are in effect.
    case done(String)
    /// The configuration is wrong; the settings of before stay.
    case wrong(String)
    /// The configuration could not be read; the settings of before stay.
    case unreadable(String)
}
