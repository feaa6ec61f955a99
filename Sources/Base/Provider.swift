/// The providers of HTTPDNS; the raw value is the text of the key `provider`. Module HTTPDNS has their protocols,
/// ``facts`` all other differences.
public enum Provider: String, Sendable, Hashable, CaseIterable {
    case tencent
    /// EMAS HTTPDNS, version 2.
    case alibaba
    /// EMAS HTTPDNS, version 1, signed.
    case alibabaV1 = "alibaba-v1"
    case volcengine
    case baidu

    /// The properties of a provider other than its protocol.
    public struct Facts: Sendable {
        /// The name for people.
        public let title: String
        /// The most names in one request.
        public let namesPerRequest: Int
        /// The possible protections of requests; the first is the default.
        public var encryptions = [Encryption.https]
        /// The service's published addresses, over TLS and over HTTP; empty: there are none.
        public var addresses: [IPAddress] = []
        public var plainAddresses: [IPAddress] = []
        /// The name in the certificate; empty for the dialled address.
        public var certificateName = ""
        /// An address that may be in the certificate instead of the name.
        public var certificateAddress: IPAddress?
        /// Seconds for which a signed request is valid unless the operator sets another value, as in the provider's own
        /// SDKs; 0: requests are not signed.
        public var validity = 0
        /// The milliseconds after which the service can be asked to give up a lookup; nil: the service cannot be asked.
        public var timeouts: ClosedRange<Int>?
    }

    /// The protection of names and answers on the way.
    public enum Encryption: String, Sendable, CaseIterable {
        case https, aes, des
    }

    /// The table of providers.
    public var facts: Facts {
        switch self {
        case .tencent:
            Facts(
                title: "Tencent", namesPerRequest: 8, encryptions: [.https, .aes, .des],
                addresses: [.v4(119, 29, 29, 99)], plainAddresses: [.v4(119, 29, 29, 98)],
                timeouts: 1000...5000)
        case .alibaba:
            Facts(
                title: "Alibaba Cloud", namesPerRequest: 5, encryptions: [.https, .aes],
                addresses: [.v4(203, 107, 1, 1)], plainAddresses: [.v4(203, 107, 1, 1)],
                certificateName: "resolvers.httpdns.aliyuncs.com", certificateAddress: .v4(203, 107, 1, 1),
                validity: 600)
        case .alibabaV1:
            Facts(
                title: "Alibaba Cloud, version 1", namesPerRequest: 5, addresses: [.v4(203, 107, 1, 1)],
                certificateName: "resolvers.httpdns.aliyuncs.com", certificateAddress: .v4(203, 107, 1, 1),
                validity: 600)
        case .volcengine:
            Facts(title: "Volcengine", namesPerRequest: 1, certificateName: "httpdns.volcengineapi.com", validity: 600)
        case .baidu:
            Facts(
                title: "Baidu", namesPerRequest: 10,
                addresses: [.v4(180, 76, 76, 200), IPAddress(v6: 0x240c_4006 << 32, 0x6666)],
                certificateName: "httpdns.baidubce.com", validity: 300)
        }
    }
}
