import Base
import Cryptography
import DemoService

/// The troubles of a server, or of the path to it, for a while.
enum Trouble: String, CaseIterable {
    case silent = "is silent"
    case slow = "is slow"
    case loses = "loses half of all packets"
    case doubles = "doubles packets"
    case refuses = "refuses connections"
    case dribbles = "sends a few octets at a time"
    case mute = "takes requests and says nothing"
    case fails = "says SERVFAIL"
    case lies = "answers wrongly"
    case cuts = "cuts its answers short"
    case forged = "is imitated by a forger"
    /// A certificate with the server's names that no authority has signed, or one that is right for another server.
    case otherCertificate = "shows another certificate"
    case tooOften = "says 429"
    case broken = "says 5xx"
    case twice = "says each answer twice"
    case closes = "closes after each answer"
    case hangsUp = "closes when it is asked"
    case goesAway = "sends GOAWAY before it answers"
    case resetsStreams = "resets streams"
    case truncates = "truncates"
}

/// A machine somewhere, with one server on it.
final class Host {
    enum Kind {
        case plain, tcp, tls, https
        case account(isSecure: Bool)
        case store(isSecure: Bool)
    }

    let name: String
    let group: String
    private(set) var address: IPAddress
    /// The address that the host may move to.
    private var otherAddress: IPAddress?
    let kind: Kind
    /// The name of the server in `servers`; nil: it is given by its address.
    let serverName: String?
    private var troubles: [Trouble: UInt64] = [:]
    /// Whether the next request must use another connection.
    var isGoingAway = false
    /// The number of connections that it has accepted.
    private(set) var accepted = 0
    /// Whether the next answer over HTTP/1.1 comes twice at once.
    var isStuttering = false

    init(_ name: String, group: String, _ address: IPAddress, _ kind: Kind) {
        (self.name, self.group, self.address, self.kind, serverName) = (name, group, address, kind, nil)
    }

    /// - Parameter addresses: The first address, and the one that the host may move to.
    init(_ name: String, group: String, _ addresses: [IPAddress], _ kind: Kind, called serverName: String) {
        (self.name, self.group, self.kind, self.serverName) = (name, group, kind, serverName)
        (address, otherAddress) = (addresses[0], addresses[1])
    }

    /// Uses the other address from now on.
    func move() {
        guard let other = otherAddress else { return }
        (address, otherAddress) = (other, address)
    }

    /// All addresses that it may have.
    var addresses: [IPAddress] { [address] + (otherAddress.map { [$0] } ?? []) }

    var isEncrypted: Bool {
        switch kind {
        case .tls, .https: true
        case .account(let isSecure), .store(let isSecure): isSecure
        case .plain, .tcp: false
        }
    }

    /// The text for `servers` or `dnsIp`.
    var text: String {
        let address = serverName ?? (address.isIPv4 ? "\(address)" : "[\(address)]")
        return switch kind {
        case .plain, .account: address
        case .tcp: "tcp://\(address)"
        case .tls, .store(isSecure: true): "tls://\(address)"
        case .store(isSecure: false): "redis://\(address)"
        case .https: "https://\(address)/dns-query"
        }
    }

    var port: UInt16 {
        switch kind {
        case .plain, .tcp: 53
        case .tls: 853
        case .https: 443
        case .account(let isSecure): isSecure ? 443 : 80
        case .store: 6379
        }
    }

    // MARK: Trouble

    /// When the last trouble ended, or ends.
    private(set) var lastTrouble: UInt64 = 0

    func begin(_ trouble: Trouble, until end: UInt64) {
        troubles[trouble] = max(end, troubles[trouble] ?? 0)
        lastTrouble = max(lastTrouble, end)
    }

    func heal() {
        (troubles, isGoingAway, isStuttering) = ([:], false, false)
        lastTrouble = min(lastTrouble, kernel.now)
    }

    /// Whether the host has no trouble, and had none a while ago.
    var isWell: Bool { troubles.values.allSatisfy { $0 + 10_000_000_000 < kernel.now } }
    func has(_ trouble: Trouble) -> Bool { troubles[trouble].map { $0 > kernel.now } ?? false }
    /// Whether a trouble has an effect: in half of the cases.
    func mayDo(_ trouble: Trouble) -> Bool { has(trouble) && kernel.network.chance.below(2) == 0 }

    /// Whether it says REFUSED, or did so a while ago.
    var mayHaveRefused: Bool { troubles[.fails].map { $0 + 10_000_000_000 > kernel.now } ?? false }

    /// Whether it is left alone for up to a minute, since it has asked for a pause.
    var mayBePaused: Bool {
        [.tooOften, .broken].contains { troubles[$0].map { $0 + 60_000_000_000 > kernel.now } ?? false }
    }

    /// Whether messages arrive at once, and did so a while ago.
    var isPrompt: Bool {
        let late: [Trouble] = [.silent, .slow, .loses, .dribbles]
        return late.allSatisfy { troubles[$0].map { $0 + 10_000_000_000 < kernel.now } ?? true }
    }

    /// The status stays the same for as long as the trouble lasts.
    var brokenStatus: Int { 500 + Int((troubles[.broken] ?? 0) / 1_000_000_000 % 5) }

    var silentUntil: UInt64? { troubles[.silent] }
    var isSilent: Bool { has(.silent) }
    var refuses: Bool { has(.refuses) }
    /// The number of octets that leave at a time; 0: all.
    var dribbles: Int { has(.dribbles) ? 1 + kernel.network.chance.below(40) : 0 }
    func loses() -> Bool { mayDo(.loses) }
    func doubles() -> Bool { mayDo(.doubles) }

    /// The shortest one-way time of all hosts but a store, in nanoseconds.
    static let leastDelay: UInt64 = 2_000_000

    /// The one-way time; packets overtake each other. A store is near.
    func delay() -> UInt64 {
        let usual = if case .store = kind { 0...1 } else { Int(Self.leastDelay / 1_000_000)...25 }
        return kernel.network.milliseconds(has(.slow) ? 100...1500 : usual)
    }

    // MARK: What comes

    struct Datagram {
        let bytes: [UInt8]
        /// The sender; nil: the host that was asked.
        var from: IPAddress?
    }

    /// - Returns: Nil if no server listens there.
    func received(_ bytes: [UInt8], port: UInt16) -> [Datagram]? {
        if isEncrypted { judge.fault("\(name) is asked in the clear, over UDP") }
        guard case .plain = kind, port == self.port else { return nil }
        guard !refuses else { return nil }
        guard let query = DNSQuery(bytes) else {
            judge.fault("\(name) is sent what is no query")
            return []
        }
        judge.asked(self, query.name, query.type)
        var answers: [Datagram] = []
        if has(.forged) { answers += forgeries(query) }
        if !has(.mute), let answer = DNSServer.answer(query, at: self, isStream: false) {
            answers.append(Datagram(bytes: answer))
        }
        return answers
    }

    /// An attacker who sees neither ID nor spelling, and does not guess both; and one who sees both but cannot use the
    /// server's address.
    private func forgeries(_ query: DNSQuery) -> [Datagram] {
        let blind = (0..<8).map { _ in
            let id = UInt16(kernel.network.chance.below(65_536))
            return Datagram(bytes: DNSServer.forgery(query, id: id == query.id ? ~id : id, isSpelled: false))
        }
        let seeing = Datagram(
            bytes: DNSServer.forgery(query, id: query.id, isSpelled: true), from: .v4(198, 51, 100, 66))
        return blind + [seeing]
    }

    func accepted(_ link: Link, port: UInt16) -> (any FarEnd)? {
        guard port == self.port else {
            if isEncrypted { judge.fault("\(name) is connected to at port \(port)") }
            return nil
        }
        accepted += 1
        return ServerEnd(self, link)
    }
}

/// The server's side of a connection: TLS if there is any, and the protocol in it.
final class ServerEnd: FarEnd {
    let host: Host
    private weak var link: Link?
    private let tls: TLSSession?
    /// Whether its certificate must be refused.
    private let isStranger: Bool
    private var hasHeard = false
    private var speaker: (any Speaker)?
    private var isMute = false
    /// A server that ends a fresh connection without an answer would look like a server that ends all of them.
    var hasAnswered = false

    init(_ host: Host, _ link: Link) {
        (self.host, self.link) = (host, link)
        isStranger = host.has(.otherCertificate)
        var whose = ServerCertificates.Whose.own
        if isStranger { whose = kernel.network.chance.below(2) == 0 ? .nobodys : .others }
        tls = host.isEncrypted ? certificates.session(host, whose) : nil
        speaker =
            switch host.kind {
            case .plain, .tcp, .tls: FramesSpeaker(self)
            case .https: HTTP2Speaker(self)
            case .account(let isSecure): AccountSpeaker(self, isSecure: isSecure)
            case .store: StoreSpeaker(self)
            }
    }

    func received(_ bytes: [UInt8]) {
        guard let tls else { return heard(bytes) }
        // A handshake's record (RFC 8446 §5.1).
        if !hasHeard, bytes.first != 22 { judge.fault("\(host.name) is asked in the clear, at port \(host.port)") }
        hasHeard = true
        tls.receive(bytes.span)
        var plaintext: [UInt8] = []
        tls.takePlaintext(into: &plaintext)
        if !plaintext.isEmpty {
            if isStranger { judge.fault("\(host.name) is told something although its certificate is another's") }
            heard(plaintext)
        }
        flush()
        if case .failed = tls.state { link?.endByFar() }
    }

    private func heard(_ bytes: [UInt8]) {
        // HTTP/2 announces the end by GOAWAY.
        if host.isGoingAway, hasAnswered, !(speaker is HTTP2Speaker) {
            host.isGoingAway = false
            judge.leaves(host)
            return close(isCut: kernel.network.chance.below(2) == 0)
        }
        // A later answer would be taken for one that was not given.
        isMute = isMute || host.has(.mute)
        speaker?.heard(bytes)
    }

    func ended() { speaker = nil }

    func say(_ bytes: [UInt8]) {
        guard !isMute else { return }
        if let tls { tls.send(bytes.span) } else { link?.sendToNear(bytes) }
        flush()
    }

    /// - Parameter isCut: Whether the end looks like that of an attacker on the path.
    func close(isCut: Bool = false) {
        if !isCut { tls?.close() }
        flush()
        link?.endByFar()
        speaker = nil
    }

    private func flush() {
        var ciphertext: [UInt8] = []
        tls?.takeCiphertext(into: &ciphertext)
        if !ciphertext.isEmpty { link?.sendToNear(ciphertext) }
    }
}

/// The server's side of a protocol.
protocol Speaker: AnyObject {
    func heard(_ bytes: [UInt8])
}

/// The certificates of all servers, made once for the whole process: no decision depends on their content.
nonisolated(unsafe) let certificates = ServerCertificates()

final class ServerCertificates {
    /// The certificates that the daemon trusts: each has only the names and addresses of its server.
    private(set) var trusted: [UInt8] = []
    private var contexts: [String: TLSServerContext] = [:]

    enum Whose { case own, nobodys, others }

    init() {
        let hosts = Topology.hosts(secure: true).filter(\.isEncrypted)
        for host in hosts {
            // Another group's server, which is trusted where it stands.
            let isAccount = Topology.accounts.contains(host.group)
            let other = hosts.first { $0.group != host.group && !(isAccount && Topology.accounts.contains($0.group)) }!
            let (own, nobodys, others) = (Self.certificate(host), Self.certificate(host), Self.certificate(other))
            trusted += own.certificatePEM + others.certificatePEM
            for (whose, certificate) in [(Whose.own, own), (.nobodys, nobodys), (.others, others)] {
                contexts[Self.key(host, whose)] = try? TLSServerContext(
                    certificatePEM: certificate.certificatePEM, keyPEM: certificate.keyPEM,
                    protocols: [Self.applicationProtocol(host)])
            }
        }
    }

    private static func key(_ host: Host, _ whose: Whose) -> String { "\(host.name) \(whose)" }

    /// The servers of accounts are one service.
    private static func certificate(_ host: Host) -> (certificatePEM: [UInt8], keyPEM: [UInt8]) {
        let isAccount = Topology.accounts.contains(host.group)
        let names = isAccount ? Topology.accountNames : host.serverName.map { [$0] } ?? []
        do {
            return try SelfSignedCertificate.make(names: names, addresses: host.addresses, days: 30_000)
        } catch {
            fatalError("no certificate: \(error)")
        }
    }

    private static func applicationProtocol(_ host: Host) -> String {
        switch host.kind {
        case .tls: "dot"
        case .https: "h2"
        default: "http/1.1"
        }
    }

    func session(_ host: Host, _ whose: Whose) -> TLSSession? { try? contexts[Self.key(host, whose)]?.session() }
}
