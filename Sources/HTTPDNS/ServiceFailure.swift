public import Cryptography
public import DNSWire

/// The reason for which a complete HTTP response of the service is not an answer. "No record" is an answer.
public enum ServiceFailure: Error, Equatable, Sendable {
    /// An HTTP status other than 200, without a known error code.
    case status(Int)
    /// The service reports an error.
    case refused(ServiceRefusal)
    /// The body ended with the connection, perhaps by an attacker.
    case cutOff
    /// An encrypted body is not an answer. Wrong hexadecimal, padding and text are not distinguished: an attacker who
    /// sends altered bodies could learn the plaintext from the difference.
    case undecryptable
    /// A body in clear is not an answer.
    case unparsable
    /// A body in clear mentions a name that is not in the request.
    case otherName

    /// The possible remedy.
    public var remedy: Remedy {
        switch self {
        case .status(401), .status(403): .account
        case .status(429): .leaveAlone
        case .refused(let refusal): refusal.remedy
        case .status, .cutOff, .undecryptable, .unparsable, .otherName: .none
        }
    }

    /// Remedies for failures, for all services.
    public enum Remedy: Sendable, Equatable {
        /// Another server may answer.
        case askAnother
        /// The service was asked too often.
        case leaveAlone
        /// The account's settings or the machine's clock are wrong. The account's servers are left alone for a while.
        case account
        /// The clock is wrong. If it is not, the account's settings are.
        case clock
        /// Names of the request are refused. A request without these names may be answered.
        case names
        /// The request has too many names. A request with fewer names may be answered.
        case fewerNames
        /// No remedy is known: another server may answer, or requests for single names may be answered.
        case none
    }

    /// One line for an operator, with the key that is likely wrong. The line contains no secret.
    public func words(_ keys: AccountKeys) -> String {
        switch self {
        case .status(let code) where code == 401 || code == 403:
            "the service refused the account (HTTP status \(code)): \(keys.areRight(keys.proof)) "
                + "If so, the account may have run out (see the provider's console)"
        case .status(404): "there is no HTTPDNS service at this address (HTTP status 404): \(keys.areRight([.dnsIp]))"
        case .status(429):
            "the service was asked too often (HTTP status 429): does \(keys[.queriesPerSecond]) keep to its plan?"
        case .status(let code) where code >= 500: "the service failed (HTTP status \(code))"
        case .status(let code): "the service answered HTTP status \(code)"
        case .refused(let refusal): refusal.words(keys)
        case .cutOff: "the connection ended where the answer need not have ended"
        case .undecryptable:
            "the answer cannot be decrypted and read: \(keys.areRight(keys.encryption + [.encryptType]))"
        case .unparsable: "the answer is not an HTTPDNS answer"
        case .otherName: "the answer is for a name that was not asked"
        }
    }
}

/// The reason for which a request cannot be written.
public enum RequestError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A request has no name, or more names than the service takes.
    case nameCount(Int)
    /// A name is the root, or has a label with a character other than letters, digits, `-` and `_`.
    case forbiddenName(Name)
    /// The token or account is empty, or has characters that a URL cannot have.
    case badToken
    /// A secret is empty, or not hexadecimal as required.
    case badSecret(key: String)
    /// The key has a wrong length, or encryption failed.
    case encryption(CryptographyError)

    public var description: String {
        switch self {
        case .nameCount(let count): "\(count) names do not fit into one request"
        case .forbiddenName(let name): "\(name) is not a name the service can be asked for"
        case .badToken: "the token has characters that cannot be in a URL"
        case .badSecret(let key): "\(key) is not hexadecimal; give it as the console shows it"
        case .encryption(let error): error.description
        }
    }
}
