package import Base

/// The certificate for clients over TLS and HTTPS.
package struct ShownCertificate: Sendable, Equatable {
    let file: String
    /// The begin and end of the certificate's validity, in seconds since 1970.
    let begins: UInt64
    let ends: UInt64
    /// `listen.name`, if the certificate is not valid for this name.
    let lackedName: String?
    /// Addresses at which clients discover the daemon, but for which the certificate is not valid.
    let lackedAddresses: [IPAddress]

    package init(file: String, begins: UInt64, ends: UInt64, lackedName: String?, lackedAddresses: [IPAddress]) {
        (self.file, self.begins, self.ends) = (file, begins, ends)
        (self.lackedName, self.lackedAddresses) = (lackedName, lackedAddresses)
    }

    /// Seconds until the certificate's end, negative after the end.
    /// - Parameter wall: Seconds since 1970.
    func secondsLeft(at wall: UInt64) -> Int64 { Int64(clamping: ends) - Int64(clamping: wall) }

    /// The certificate's defects for clients, a sentence each, without an end.
    /// - Parameter wall: Seconds since 1970. Dates are ignored while the clock is before this version's release.
    package func remarks(at wall: UInt64) -> [String] {
        let subject = "the certificate of listen (\(file))"
        let left = secondsLeft(at: wall)
        var remarks: [String] = []
        if wall >= Version.made {
            if begins > wall {
                remarks.append(
                    "\(subject) is not valid yet, but in \(Overview.span(begins - wall)): until then clients over TLS and HTTPS refuse it"
                )
            }
            if left <= 0 {
                remarks.append(
                    "\(subject) ended \(Overview.span(UInt64(-left))) ago: clients over TLS and HTTPS refuse it; have it renewed"
                )
            } else if left < ServerView.certificateIsNear {
                remarks.append("\(subject) ends in \(Overview.span(UInt64(left))); have it renewed")
            }
        }
        if let lackedName {
            remarks.append("\(subject) is not for \(lackedName) (listen.name): clients that ask by this name refuse it")
        }
        if !lackedAddresses.isEmpty {
            let addresses = lackedAddresses.map(\.description).joined(separator: ", ")
            remarks.append(
                "\(subject) is not for \(addresses): clients that discover it there (listen.name) go on in the clear")
        }
        return remarks
    }
}
