package import Base
import Cryptography
import DNSWire
import Forwarding
import HTTP
package import HTTPDNS
package import Streams
import Transport

/// The access to the servers of an HTTPDNS account: the account, and the verification of its servers.
package struct ServiceAccess {
    package let account: any ServiceAccount
    /// The names of the account's keys in messages.
    package let keys: AccountKeys
    /// The service's time.
    package let clock = ServiceClock()
    package let security: Security
    /// The certificate's name and the Host to send; nil for the dialled address.
    package let serverName: String?
    /// The way out of this machine for sockets to the servers.
    let egress: Egress

    package init(
        account: any ServiceAccount, _ keys: AccountKeys, _ security: Security, serverName: String?,
        egress: Egress = Egress()
    ) {
        (self.account, self.keys, self.security) = (account, keys, security)
        (self.serverName, self.egress) = (serverName, egress)
    }

    func writer(to server: Endpoint, keepsConnection: Bool) -> HTTPRequestWriter {
        HTTPRequestWriter(
            host: server.hostField(serverName: serverName, isSecure: security.isSecure),
            keepsConnection: keepsConnection)
    }

    /// Corrects the clock if the service may have refused a request because of it.
    /// - Returns: Whether to repeat the request with the time of the corrected clock.
    @discardableResult
    func correctClock(after failure: ServiceFailure, _ response: HTTPResponse, at now: Tick) -> Bool {
        guard account.validity > 0 else { return false }
        /// The service's time in seconds since 1970, if the answer has it.
        var time = response.date
        switch failure.remedy {
        case .account where response.status == 401 || response.status == 403: break
        case .clock:
            if case .refused(let refusal) = failure { time = refusal.serviceTime ?? time }
        default: return false
        }
        return clock.learn(
            time, at: now, wall: WallClock.unixSeconds(), validity: account.validity, isProven: security.isSecure)
    }
}

/// One server of an account: names are sent in HTTP/1.1 requests, and their addresses come back.
final class ServiceDialect: Dialect {
    private let access: ServiceAccess
    private let writer: HTTPRequestWriter

    init(_ server: Server, _ access: ServiceAccess) {
        self.access = access
        writer = access.writer(to: server.endpoints[0], keepsConnection: true)
    }

    func conversation() -> any ClientConversation { HTTP1() }

    func request(_ ask: Ask, isRewritten: Bool, at now: Tick, wall: UInt64) throws(Failure) -> [UInt8] {
        guard case .addresses(let names, let families) = ask else {
            throw Failure(.badAnswer, "HTTPDNS knows addresses alone")
        }
        do throws(RequestError) {
            return try writer.get { request throws(RequestError) in
                try access.account.appendTarget(
                    names, family: families, at: access.clock.time(at: now, wall: wall), to: &request)
            }
        } catch {
            throw Failure(.badAnswer, error.description)
        }
    }

    /// A response that does not fit the request, such as an error that names none of its names, may belong to another
    /// request; the right response may still come.
    func read(_ answer: ConversationAnswer, to ask: Ask, isRewritten: Bool, at now: Tick) -> Reading {
        guard case .http(let response) = answer, case .addresses(let names, let families) = ask else {
            return .outOfSync("no HTTP")
        }
        do throws(ServiceFailure) {
            var reasons: [AbsenceReason] = []
            let results = try access.account.parse(response, names: names, family: families, reasons: &reasons)
            return .outcome(.addresses(results, reasons), code: .noError, provesConnectionInSync: true)
        } catch {
            if !isRewritten, access.correctClock(after: error, response, at: now) { return .retryRewritten }
            var failure = Failure(error, response, access.keys)
            let isOfNames = failure.kind == .badAnswer && (error.remedy == .names || error.remedy == .fewerNames)
            if names.count > 1, isOfNames { failure.kind = .refusedTogether }
            // The refusal of a single name is the service's word about this name, and not a failure of the server.
            if names.count == 1, isOfNames, case .refused(let refusal) = error, refusal.remedy == .names {
                let reason = AbsenceReason(names[0], families, code: refusal.code.utf8)
                return .outcome(
                    .addresses([NameAddresses(noRecordOf: names[0], families)], reason.map { [$0] } ?? []),
                    code: .noError, provesConnectionInSync: false)
            }
            return .outcome(.failed(failure), code: .servFail, provesConnectionInSync: false)
        }
    }
}

extension NameAddresses {
    fileprivate init(noRecordOf name: Name, _ families: Families) {
        self.init(
            name: name, ipv4: families.contains(.ipv4) ? .noRecord : .notAsked,
            ipv6: families.contains(.ipv6) ? .noRecord : .notAsked)
    }
}

extension Failure {
    fileprivate init(_ error: ServiceFailure, _ response: HTTPResponse, _ keys: AccountKeys) {
        let words = error.words(keys)
        // 503 with `Retry-After` means that the service wants a pause; without it the meaning is unknown.
        let wantsPause = response.status == 503 && response.retryAfter != nil
        switch error.remedy {
        case .account, .clock:
            // A refusal without a text may be due to this one server; a text is valid for all servers.
            let pause: Int? = if case .refused = error { Self.pauseAfterRefusal } else { nil }
            self.init(.unauthorized, words, statusCode: response.status, retryAfter: response.retryAfter ?? pause)
        case .leaveAlone,
            _ where wantsPause:
            self.init(.tooOften, words, statusCode: response.status, retryAfter: response.retryAfter)
        case .askAnother: self.init(.denied, words, statusCode: response.status)
        case .names, .fewerNames, .none: self.init(.badAnswer, words, statusCode: response.status)
        }
    }

    /// Seconds without queries to a server that has reported an error of the account.
    private static var pauseAfterRefusal: Int { 60 }
}
