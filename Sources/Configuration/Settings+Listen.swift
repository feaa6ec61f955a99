public import Base

extension Settings.Listen {
    /// Where questions come, over whatever.
    public var everyAddress: [Endpoint] { addresses + tls + https }

    /// The contents of ``certificateFile`` and ``keyFile``; nil without them, and once they are forgotten.
    public var certificate: (certificatePEM: [UInt8], keyPEM: [UInt8])? {
        guard let certificate = certificateContents?.bytes, let key = keyContents?.bytes else { return nil }
        return (certificate, key)
    }

    /// Takes what the files hold.
    public mutating func take(certificatePEM: [UInt8], keyPEM: [UInt8]) {
        certificateContents = FileContents(certificatePEM)
        // However it was read: empty lines at the end make no other key.
        let end = keyPEM.lastIndex { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        keyContents = FileContents(Array(keyPEM.prefix((end ?? -1) + 1)))
    }

    /// Forgets the contents of the files; they can still be compared with later contents.
    public mutating func forgetFiles() {
        certificateContents?.forget()
        keyContents?.forget()
    }
}

extension Loader {
    /// `[listen]` with the contents of its files.
    func listen(_ given: Settings.Listen, _ files: Files) throws(ConfigurationError) -> Settings.Listen {
        var listen = given
        if listen.name != nil, listen.tls.isEmpty, listen.https.isEmpty {
            throw origins.error(
                "listen.name", "listen.tls and listen.https are empty: there is nothing that clients could find")
        }
        guard
            !listen.tls.isEmpty || !listen.https.isEmpty || !listen.certificateFile.isEmpty || !listen.keyFile.isEmpty
        else { return listen }
        for (name, value) in [("certificateFile", listen.certificateFile), ("keyFile", listen.keyFile)]
        where value.isEmpty {
            throw origins.error(
                "listen.\(name)",
                "missing; DNS over TLS and HTTPS need a certificate and its key: give certificateFile and keyFile")
        }
        listen.certificateFile = besideFile(listen.certificateFile)
        let certificate = try contents(of: listen.certificateFile, key: "listen.certificateFile", files)
        let key: [UInt8]
        (key, listen.keyFile) = try secretFile(listen.keyFile, key: "listen.keyFile", holds: "key", files)
        listen.take(certificatePEM: certificate, keyPEM: key)
        return listen
    }
}
