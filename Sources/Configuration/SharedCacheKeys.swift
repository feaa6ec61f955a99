extension Key where Root == Settings.SharedCache {
    /// The keys of `[sharedCache]`.
    static var ofSharedCache: [Key] { sharedCacheKeys }
}

private let sharedCacheKeys: [Key<Settings.SharedCache>] = [
    Key(
        .sharedCache, "server", \.server, .optionalStore,
        "the store that the daemons of a fleet share; empty = off"),
    Key(
        .sharedCache, "user", \.user, .label,
        "the user of its access list; empty = the default user"),
    Key(
        .sharedCache, "passwordFile", \.passwordFile, .optionalPath,
        holding: \Settings.SharedCache.passwordContents,
        "a file that holds its password"),
    Key(
        .sharedCache, "keyFile", \.keyFile, .optionalPath, holding: \Settings.SharedCache.keyContents,
        "a file that holds the fleet's key, 32 octets or more"),
    Key(
        .sharedCache, "keyFileBefore", \.keyFileBefore, .optionalPath,
        holding: \Settings.SharedCache.keyBeforeContents,
        "a file that holds the key of before, while keys change"),
    Key(
        .sharedCache, "caFile", \.caFile, .optionalPath, holding: \Settings.SharedCache.anchorContents,
        "PEM or DER, trusted alone; empty = the system's store"),
]
