import Base
import Configuration
import DNSWire
import Forwarding

/// One abnormal lookup as a line of JSON (RFC 8259), with the keys that the service's own SDKs use.
///
/// In addition: `fellBack`, whether another group was asked, and `error`, the reason in words. A line has no secrets.
struct ReportLine {
    private let identity: String
    private let timeout: Int

    init(_ settings: Settings.Group) {
        let credential = settings.credential
        let kind =
            switch credential.encryption {
            case .https: "Https"
            case .aes: "AesHttp"
            case .des: "DesHttp"
            }
        let provider = credential.provider == .tencent ? "" : "\"provider\":\"\(credential.provider.rawValue)\","
        let dnsId = credential.id.map { "\"dnsId\":\($0)," } ?? ""
        identity = "\(provider)\(dnsId)\"appId\":\(JSON.quoted(settings.appId)),\"encryptType\":\"\(kind)\""
        timeout = settings.timeout
    }

    /// - Parameter unixMilliseconds: The time of day.
    func text(_ lookup: AbnormalLookup, at unixMilliseconds: UInt64) -> String {
        let names = lookup.names.map(\.description).joined(separator: ",")
        let type = lookup.families == .both ? "addrs" : lookup.families == .ipv6 ? "aaaa" : "a"
        let (code, reason) =
            lookup.failure.map { (Self.errorCode($0), $0.detail) } ?? (Self.unresolved, "queriesPerSecond is reached")
        return """
            {"eventName":"HDNSGetHostByName","eventTime":\(unixMilliseconds),\(identity),\
            "dnsIp":"\(lookup.server?.endpoints.first?.address.description ?? "")","req_dn":\(JSON.quoted(names)),"req_type":"\(type)",\
            "req_timeout":\(timeout),"spend":\(lookup.spend),"errorCode":\(code),\
            "statusCode":\(lookup.failure?.statusCode ?? 0),"isCache":0,"count":1,\
            "fellBack":\(lookup.fellBack),"error":\(JSON.quoted(reason))}
            """
    }

    /// The SDKs' error codes.
    private static let (unresolved, timedOut, noData) = (1, 2, 3)

    private static func errorCode(_ failure: Failure) -> Int {
        switch failure.kind {
        case .timedOut: timedOut
        case .badAnswer, .refusedTogether: noData
        default: unresolved
        }
    }
}
