public import Base

extension Settings.Listen {
    /// All addresses on which clients are served, over any transport.
    public var everyAddress: [Endpoint] { [addresses, tls, https].flatMap { $0 + $0.compactMap(alsoIPv4) } }

    /// `0.0.0.0` in addition to `[::]`, which accepts IPv4 too unless an IPv4 address of the same port is listed.
    public func alsoIPv4(_ address: Endpoint) -> Endpoint? {
        let isAlone = !(addresses + tls + https).contains { $0.port == address.port && $0.address.isIPv4 }
        return isAlone && address.address == IPAddress(v6: 0, 0) ? Endpoint(IPAddress(v4: 0), port: address.port) : nil
    }

    /// The first pair of addresses that exclude each other.
    var overlap: (key: String, address: Endpoint, other: Endpoint)? {
        let all = [("addresses", addresses), ("tls", tls), ("https", https)].flatMap { key, list in
            list.map { (key, $0) }
        }
        for (index, (key, address)) in all.enumerated() where address.port > 0 {
            let other = all[..<index].first { $0.1.isInTheWay(of: address) }
            if let other { return (key, address, other.1) }
        }
        return nil
    }

    /// The contents of ``certificateFile`` and ``keyFile``; nil without the files, and after the contents are
    /// forgotten.
    public var certificate: (certificatePEM: [UInt8], keyPEM: [UInt8])? {
        guard let certificate = certificateFile.contents?.bytes, let key = keyFile.contents?.bytes else { return nil }
        return (certificate, key)
    }

    /// Stores the contents of the files.
    public mutating func take(certificatePEM: [UInt8], keyPEM: [UInt8]) {
        certificateFile.contents = FileContents(certificatePEM)
        // Trailing empty lines do not make a different key.
        let end = keyPEM.lastIndex { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        keyFile.contents = FileContents(Array(keyPEM.prefix((end ?? -1) + 1)))
    }

    /// Whether the files hold the same certificate and key, even after the contents are forgotten.
    public func hasCertificate(of other: Self) -> Bool {
        certificateFile.contents == other.certificateFile.contents && keyFile.contents == other.keyFile.contents
    }

    /// Forgets the contents of the files; they can still be compared with later contents.
    public mutating func forgetFiles() {
        certificateFile.contents?.forget()
        keyFile.contents?.forget()
    }
}

extension Endpoint {
    /// Whether a socket on one endpoint excludes a socket on the other: port and family are the same, and the addresses
    /// are the same or one of them is unspecified.
    fileprivate func isInTheWay(of other: Endpoint) -> Bool {
        port == other.port && address.isIPv4 == other.address.isIPv4
            && (address == other.address && zone == other.zone || address.isUnspecified || other.address.isUnspecified)
    }
}

extension Loader {
    /// Completes `[listen]` with the contents of its files.
    /// - Parameter metrics: `control.metrics`.
    func complete(
        _ listen: inout Settings.Listen, beside metrics: Endpoint?, _ files: Files
    ) throws(ConfigurationError) {
        if let (key, address, other) = listen.overlap {
            throw origins.error(
                "listen.\(key)",
                address == other
                    ? "\(address) is listed twice; give each of addresses, tls and https a port of its own"
                    : "\(address) is within \(other), which is listed too; give one of them, or another port")
        }
        if let metrics, metrics.port > 0, let other = listen.everyAddress.first(where: { $0.isInTheWay(of: metrics) }) {
            throw origins.error(
                "control.metrics", "\(metrics) is taken: clients are served at \(other); give another port")
        }
        if listen.name != nil, listen.tls.isEmpty, listen.https.isEmpty {
            throw origins.error(
                "listen.name", "listen.tls and listen.https are empty: there is nothing that clients could find")
        }
        guard
            !listen.tls.isEmpty || !listen.https.isEmpty || !listen.certificateFile.isEmpty || !listen.keyFile.isEmpty
        else { return }
        for (name, value) in [("certificateFile", listen.certificateFile), ("keyFile", listen.keyFile)]
        where value.isEmpty {
            throw origins.error(
                "listen.\(name)",
                "missing; DNS over TLS and HTTPS need a certificate and its key: give certificateFile and keyFile")
        }
        listen.certificateFile.path = besideFile(listen.certificateFile.path)
        let certificate = try contents(of: listen.certificateFile.path, key: "listen.certificateFile", files)
        let key: [UInt8]
        (key, listen.keyFile.path) = try secretFile(listen.keyFile.path, key: "listen.keyFile", holds: "key", files)
        listen.take(certificatePEM: certificate, keyPEM: key)
    }
}
