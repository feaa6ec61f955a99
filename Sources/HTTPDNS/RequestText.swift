internal import Base
internal import Cryptography
internal import DNSWire

/// Texts of request targets.
extension [UInt8] {
    /// Appends the names, joined by commas. Each name is in lower case, without a final dot.
    ///
    /// Any octet but letters, digits, `-` and `_` in a label is refused: a `,` or `;` would ask for other names, and
    /// `&` or a space could change the request itself.
    /// - Parameter provider: The provider of the service, which limits the number of names in a request.
    mutating func appendNames(_ names: [Name], to provider: Provider) throws(RequestError) {
        guard !names.isEmpty, names.count <= provider.facts.namesPerRequest else { throw .nameCount(names.count) }
        for (index, name) in names.enumerated() {
            if index > 0 { append(UInt8(ascii: ",")) }
            guard name.appendHostname(to: &self) else { throw .forbiddenName(name) }
        }
    }

    /// Appends a parameter, unless its value is empty.
    mutating func append(_ parameter: StaticString, _ value: [UInt8]) {
        guard !value.isEmpty else { return }
        append(parameter)
        self += value
    }

    /// Appends the encrypted text in hexadecimal.
    mutating func appendEncrypted(_ text: [UInt8], with cipher: PayloadCipher) throws(RequestError) {
        do throws(CryptographyError) {
            let payload = try cipher.encrypt(text.span)
            Hexadecimal.append(payload.span, to: &self)
        } catch {
            throw .encryption(error)
        }
    }
}

extension Families {
    /// The service's value for the queried families.
    func choose(_ ipv4: StaticString, _ ipv6: StaticString, both: StaticString) -> StaticString {
        switch self {
        case .ipv4: ipv4
        case .ipv6: ipv6
        default: both
        }
    }
}
