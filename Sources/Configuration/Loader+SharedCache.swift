extension Loader {
    /// Completes `[sharedCache]` with the contents of its files, which are read only if there is a server.
    func complete(_ shared: inout Settings.SharedCache, _ files: Files) throws(ConfigurationError) {
        shared.caFile.path = besideFile(shared.caFile.path)
        guard shared.server != nil else { return }
        guard !shared.keyFile.isEmpty else {
            throw origins.error(
                "sharedCache.keyFile", "missing; answers are shared only sealed: give a file that holds a key")
        }
        try readSecret(&shared.keyFile, key: "sharedCache.keyFile", holds: "key", files)
        try checkKey(shared.keyFile, "keyFile")
        if !shared.keyFileBefore.isEmpty {
            try readSecret(&shared.keyFileBefore, key: "sharedCache.keyFileBefore", holds: "key of before", files)
            try checkKey(shared.keyFileBefore, "keyFileBefore")
        }
        try readSecret(&shared.passwordFile, key: "sharedCache.passwordFile", holds: "password", files)
        if shared.passwordFile.isEmpty, !shared.user.isEmpty {
            throw origins.error("sharedCache.user", "a user without a password; give a passwordFile, or no user")
        }
        try read(&shared.caFile, key: "sharedCache.caFile", files)
    }

    private func checkKey(_ file: NamedFile, _ name: String) throws(ConfigurationError) {
        let octets = file.contents?.bytes ?? []
        let (length, least) = (octets.count, Settings.SharedCache.minimumKeyLength)
        guard length >= least else {
            throw origins.error(
                "sharedCache.\(name)",
                "the key has \(length) octets; give \(least) or more, such as `openssl rand -hex 32`")
        }
        let different = Set(octets).count
        guard different >= Settings.SharedCache.minimumDifferentOctets else {
            throw origins.error(
                "sharedCache.\(name)",
                "the key has only \(different) different octets, so it can be guessed; give one that was drawn by chance, such as "
                    + "`openssl rand -hex 32`")
        }
    }
}
