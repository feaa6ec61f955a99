public import Base

extension Credential {
    /// The account with this credential.
    /// - Parameters:
    ///   - routeIp: The address whose network the answers are for; nil for the caller's own address.
    ///   - routeIpEncrypted: Whether that address is encrypted like the names; only for Tencent, in aes and des mode.
    ///   - authExpirySeconds: For how many seconds a request is valid; 0 for the provider's advice.
    ///   - timeout: The milliseconds after which the service gives up a lookup; only for Tencent.
    ///   - traces: Whether the account has a ``ServiceAccount/sessionID``; only for Alibaba Cloud, version 2.
    public func account(
        routeIp: IPAddress? = nil, routeIpEncrypted: Bool = false, authExpirySeconds: Int = 0, timeout: Int? = nil,
        traces: Bool = false
    ) throws(RequestError) -> any ServiceAccount {
        guard case .signed(let provider, let id, let secret, let aesKey) = self else {
            return try TencentAccount(
                self, routeIp: routeIp, routeIpEncrypted: routeIpEncrypted, authExpirySeconds: authExpirySeconds,
                timeout: timeout)
        }
        let signing = try Signing(
            id: id, secret: secret.bytes, routeIp: routeIp,
            validity: UInt64(authExpirySeconds > 0 ? authExpirySeconds : provider.facts.validity))
        switch provider {
        case .tencent: throw .badToken
        case .alibaba: return try AlibabaAccount(signing, aesKey: aesKey?.bytes, traces: traces)
        case .alibabaV1: return AlibabaV1Account(signing)
        case .volcengine: return VolcengineAccount(signing)
        case .baidu: return BaiduAccount(signing)
        }
    }
}
