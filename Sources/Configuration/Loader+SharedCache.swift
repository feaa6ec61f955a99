extension Loader {
    /// Completes `[sharedCache]` with the contents of its files, which are read only if there is a server.
    func complete(_ shared: inout Settings.SharedCache, _ files: Files) throws(ConfigurationError) {
        shared.caFile = besideFile(shared.caFile)
        guard shared.server != nil else { return }
        /// - Parameter file: Becomes the path at which the file was found.
        func secret(_ file: inout String, _ name: String, holds: String) throws(ConfigurationError) -> FileContents {
            let (bytes, path) = try secretFile(file, key: "sharedCache.\(name)", holds: holds, files)
            file = path
            return FileContents(bytes)
        }
        guard !shared.keyFile.isEmpty else {
            throw origins.error(
                "sharedCache.keyFile", "missing; answers are shared only sealed: give a file that holds a key")
        }
        shared.keyContents = try secret(&shared.keyFile, "keyFile", holds: "key")
        try checkKey(shared.keyContents, "keyFile")
        if !shared.keyFileBefore.isEmpty {
            shared.keyBeforeContents = try secret(&shared.keyFileBefore, "keyFileBefore", holds: "key of before")
            try checkKey(shared.keyBeforeContents, "keyFileBefore")
        }
        if !shared.passwordFile.isEmpty {
            shared.passwordContents = try secret(&shared.passwordFile, "passwordFile", holds: "password")
        } else if !shared.user.isEmpty {
            throw origins.error("sharedCache.user", "a user without a password; give a passwordFile, or no user")
        }
        if !shared.caFile.isEmpty {
            shared.anchorContents = FileContents(try contents(of: shared.caFile, key: "sharedCache.caFile", files))
        }
    }

    private func checkKey(_ contents: FileContents?, _ name: String) throws(ConfigurationError) {
        let (length, least) = (contents?.bytes?.count ?? 0, Settings.SharedCache.minimumKeyLength)
        guard length >= least else {
            throw origins.error(
                "sharedCache.\(name)",
                "the key has \(length) octets; give \(least) or more, such as `openssl rand -hex 32`")
        }
        let different = Set(contents?.bytes ?? []).count
        guard different >= Settings.SharedCache.minimumDifferentOctets else {
            throw origins.error(
                "sharedCache.\(name)",
                "the key has only \(different) different octets, so it can be guessed; give one that was drawn by chance, such as "
                    + "`openssl rand -hex 32`")
        }
    }
}
