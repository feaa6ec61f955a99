internal import Base
internal import COpenSSL

/// The name or address that the peer's certificate must have, and the words for a refusal.
///
/// OpenSSL verifies the chain and the name; this type sets the expectation, and reads the reason during the refusal,
/// because OpenSSL does not retain a refused certificate.
enum ExpectedPeer: Equatable {
    /// A name, or an address that the certificate may have instead of the name.
    case name(String, or: IPAddress? = nil)
    case address(IPAddress)

    /// The peer for a configured name: an address as text is compared with the certificate's addresses. A name with an
    /// empty label is refused, because OpenSSL takes a leading dot for "any host under it".
    /// - Parameter other: An address that the certificate may have instead of the name.
    init(serverName: String, or other: IPAddress? = nil) throws(TLSError) {
        if let address = IPAddress(serverName) {
            self = .address(address)
            return
        }
        let name = serverName.hasSuffix(".") ? String(serverName.dropLast()) : serverName
        guard isDNSName(name, wildcard: false) else { throw .serverName(serverName) }
        self = .name(name, or: other)
    }

    var text: String {
        switch self {
        case .name(let name, _): name
        case .address(let address): address.description
        }
    }

    /// Makes `session` send a name as SNI (RFC 6066 §3 allows names only) and, if `validating`, require this peer.
    func require(in session: OpaquePointer, validating: Bool) -> Bool {
        if case .name(let name, _) = self {
            guard unsafe copenssl_SSL_set_tlsext_host_name(session, name) == 1 else { return false }
        }
        guard validating else { return true }
        // Sound: the parameters belong to the session, and OpenSSL copies the name and the octets.
        let parameters = unsafe SSL_get0_param(session)
        unsafe X509_VERIFY_PARAM_set_hostflags(parameters, hostFlags)
        switch self {
        case .name(let name, _):
            return unsafe X509_VERIFY_PARAM_set1_host(parameters, name, 0) == 1
        case .address(let address):
            let octets = address.octets
            return unsafe X509_VERIFY_PARAM_set1_ip(parameters, octets, octets.count) == 1
        }
    }

    /// Whether the certificate that `verification` (an X509_STORE_CTX) is about to refuse for its names has the
    /// alternative address.
    func isAccepted(_ verification: OpaquePointer) -> Bool {
        guard case .name(_, let other?) = self,
            unsafe X509_STORE_CTX_get_error(verification) == X509_V_ERR_HOSTNAME_MISMATCH,
            let certificate = unsafe X509_STORE_CTX_get_current_cert(verification)
        else { return false }
        // Sound: the certificate outlives this call, and the octets are read during it.
        let octets = other.octets
        return unsafe X509_check_ip(certificate, octets, octets.count, 0) == 1
    }

    /// The reason for the refusal that `verification` (an X509_STORE_CTX) reports.
    func refusal(_ verification: OpaquePointer) -> TLSError {
        let code = unsafe X509_STORE_CTX_get_error(verification)
        let depth = unsafe Int(X509_STORE_CTX_get_error_depth(verification))
        guard let certificate = unsafe X509_STORE_CTX_get_current_cert(verification) else {
            return .certificateRejected(code: Int(code))
        }
        // Sound: `certificate` belongs to the chain under verification and outlives this call.
        switch code {
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            return unsafe .certificateName(wanted: text, has: names(in: certificate))
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return unsafe .certificateExpired(at: time(X509_get0_notAfter(certificate)), depth: depth)
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return unsafe .certificateNotYetValid(at: time(X509_get0_notBefore(certificate)), depth: depth)
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: return .selfSigned
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
            X509_V_ERR_CERT_UNTRUSTED:
            return unsafe .unknownAuthority(issuer: issuer(of: certificate), depth: depth)
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK:
            return .certificateTooWeak
        case X509_V_ERR_INVALID_PURPOSE: return .certificatePurpose
        case X509_V_ERR_CERT_SIGNATURE_FAILURE: return .certificateSignature
        default: return .certificateRejected(code: Int(code))
        }
    }
}

/// The comparison of a name with the names of certificates: a wildcard is a whole label, and the subject is ignored.
let hostFlags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

/// Letters, digits, `-` and `_` in labels of 1 to 63, at most 253 in all (RFC 1035 §2.3.4); a leading `*` label if
/// allowed.
func isDNSName(_ text: String, wildcard: Bool) -> Bool {
    guard text.utf8.count <= 253 else { return false }
    var labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)[...]
    if wildcard, labels.count > 1, labels.first?.elementsEqual("*".utf8) == true { labels = labels.dropFirst() }
    return labels.allSatisfy { label in
        1...63 ~= label.count && label.allSatisfy { isUnreserved($0) && $0 != UInt8(ascii: "~") }
    }
}

/// The earliest end of validity in the chain that `verification` (an X509_STORE_CTX) has accepted, in seconds since
/// 1970; 0 if the end cannot be read.
func chainEnd(_ verification: OpaquePointer) -> UInt64 {
    // Sound: the chain and its certificates belong to the verification, which outlives this call.
    let chain = unsafe X509_STORE_CTX_get0_chain(verification)
    var end = UInt64.max
    for index in 0..<(unsafe max(0, copenssl_sk_X509_num(chain))) {
        end = unsafe min(end, unixSeconds(X509_get0_notAfter(copenssl_sk_X509_value(chain, index))) ?? 0)
    }
    return end
}

/// A time of a certificate in seconds since 1970, 0 for an earlier time; nil if the time cannot be read.
func unixSeconds(_ time: UnsafePointer<ASN1_TIME>?) -> UInt64? {
    guard let epoch = unsafe ASN1_TIME_set(nil, 0) else { return nil }
    defer { unsafe ASN1_STRING_free(epoch) }
    var (days, seconds): (Int32, Int32) = (0, 0)
    guard let time = unsafe time, unsafe ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
    return UInt64(max(0, Int64(days) * 86_400 + Int64(seconds)))
}

/// The most names of a certificate that a refusal lists; a certificate may have thousands.
private let namesShown = 8

/// The DNS names and addresses that a certificate is for (RFC 5280 §4.2.1.6).
private func names(in certificate: OpaquePointer) -> [String] {
    guard let pointer = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return [] }
    let stack = OpaquePointer(pointer)
    // Sound: for this extension the library returns a stack of GENERAL_NAME that the caller owns.
    defer { unsafe GENERAL_NAMES_free(stack) }
    var names: [String] = []
    let count = unsafe copenssl_sk_GENERAL_NAME_num(stack)
    for index in 0..<count {
        guard names.count < namesShown else { return names + ["…"] }
        guard let name = unsafe copenssl_sk_GENERAL_NAME_value(stack, index)?.pointee else { continue }
        // Sound: the type defines which member of the union is set; both are ASN1_STRING.
        switch unsafe name.type {
        case GEN_DNS: unsafe names.append(printable(octets(name.d.dNSName)))
        case GEN_IPADD:
            if let address = unsafe IPAddress(bytes: octets(name.d.iPAddress).span) { names.append("\(address)") }
        default: continue
        }
    }
    return names
}

/// The distinguished name of the certificate's issuer, as RFC 2253 text.
private func issuer(of certificate: OpaquePointer) -> String {
    guard let bio = Owned.memoryBIO() else { return "" }
    unsafe _ = copenssl_X509_NAME_print_rfc2253(bio.pointer, X509_get_issuer_name(certificate))
    var text: [UInt8] = []
    unsafe drain(bio.pointer, into: &text)
    return printable(text, limit: 128)
}

/// An ASN.1 time as `2026-05-01 12:00:00 UTC`.
private func time(_ time: UnsafePointer<ASN1_TIME>?) -> String {
    // Both of X.509's forms become YYYYMMDDHHMMSSZ (RFC 5280 §4.1.2.5.2).
    guard let generalized = unsafe ASN1_TIME_to_generalizedtime(time, nil) else { return "an unreadable time" }
    defer { unsafe ASN1_STRING_free(generalized) }
    let digits = unsafe printable(octets(generalized))
    guard digits.utf8.count == 15 else { return digits }
    func part(_ start: Int, _ length: Int) -> Substring { digits.dropFirst(start).prefix(length) }
    return "\(part(0, 4))-\(part(4, 2))-\(part(6, 2)) \(part(8, 2)):\(part(10, 2)):\(part(12, 2)) UTC"
}

/// The bytes of an ASN.1 string.
private func octets(_ string: UnsafePointer<ASN1_STRING>?) -> [UInt8] {
    guard let string = unsafe string, let data = unsafe ASN1_STRING_get0_data(string) else { return [] }
    // Sound: data and length are the string's own.
    return unsafe [UInt8](UnsafeBufferPointer(start: data, count: Int(ASN1_STRING_length(string))))
}
