import Base
import Configuration
import Cryptography
import Forwarding
import Log
import Transport
import Upstreams

/// The parts of the store's upstream that are made from settings and can fail; made on any thread.
struct SharedStore: @unchecked Sendable {
    // Unchecked: made on one thread, used on the loop.
    private let access: StoreUpstream.Access
    private let seals: [FleetSeal]

    /// Nil without `[sharedCache]`.
    init?(_ settings: Settings.SharedCache) throws(StartFailure) {
        guard let server = settings.server, let key = settings.key else { return nil }
        let place: StoreUpstream.Place =
            switch server {
            case .plain(let endpoint): .plain(endpoint)
            case .path(let path): .path(path)
            case .tls(let server): .tls(server, try Self.context(settings))
            }
        access = StoreUpstream.Access(place, user: settings.user, password: settings.password?.bytes)
        do throws(CryptographyError) {
            var seals = [try FleetSeal(secret: key.bytes)]
            if let before = settings.keyBefore { seals.append(try FleetSeal(secret: before.bytes)) }
            self.seals = seals
        } catch {
            throw .setting(key: "sharedCache.keyFile", error.description)
        }
    }

    private static func context(_ settings: Settings.SharedCache) throws(StartFailure) -> TLSClientContext {
        do throws(TLSError) {
            return try TLSClientContext(TLSPolicy(anchors: settings.anchors))
        } catch {
            throw .setting(key: "sharedCache.caFile", error.description)
        }
    }

    func upstream(_ generations: Generations?, loop: EventLoop, outbox: Outbox) -> StoreUpstream {
        StoreUpstream(
            access, seals: seals.map { StoreSeal($0, [:]) }, generations: generations, loop: loop, outbox: outbox)
    }
}

extension SharedSettings {
    /// Nil: nothing is shared.
    init?(_ settings: Settings) {
        guard settings.sharedCache.server != nil else { return nil }
        self.init(staleSeconds: settings.cache.staleSeconds, prefetchAt: settings.cache.prefetchAt)
    }
}

extension Settings {
    /// Whether the store is another one, or is asked in another way.
    func hasOtherStore(than old: Settings) -> Bool {
        sharedCache != old.sharedCache || SharedSettings(self) != SharedSettings(old)
    }

    /// What decides the answers of each group beside the question: by it a daemon with other servers, another account or
    /// another route finds other entries.
    /// - Parameter servers: gives the present servers of a group.
    func sharedIdentities(
        _ numbers: GroupNumbers, servers: (Settings.Group) -> [Server]
    ) -> [GroupID: [UInt8]] {
        var identities: [GroupID: [UInt8]] = [:]
        let times = ["\(cache.minTTL)", "\(cache.negativeTTL)"]
        for account in accounts {
            let (account, number) = (account.settings, numbers[account.name])
            let (credential, route) = (account.credential, account.routeIp?.description ?? "")
            identities[number] = octets(
                [
                    "account", credential.provider.rawValue, credential.encryption.rawValue, route,
                    "\(account.routeIpEncrypted)",
                ] + times, credential.account)
        }
        for group in messageGroups {
            identities[numbers[group.name]] = octets(
                ["dns", group.name, group.routeIp?.description ?? "", "\(group.trustAD)"] + times
                    + servers(group).map(\.description), [])
        }
        return identities
    }

    /// Texts and octets as one list of octets, different for different texts and octets.
    private func octets(_ texts: [String], _ last: [UInt8]) -> [UInt8] {
        (texts.map { Array($0.utf8) } + [last]).flatMap { part in
            (0..<4).map { UInt8(truncatingIfNeeded: part.count >> (8 * (3 - $0))) } + part
        }
    }
}

extension Settings.HTTPDNS.Credential {
    /// What distinguishes the account from others of its provider. It only goes into a keyed hash.
    fileprivate var account: [UInt8] {
        switch self {
        case .https(let token): token.bytes
        case .aes(let id, _), .des(let id, _), .signed(_, let id, _, _): Array("\(id)".utf8)
        }
    }
}

extension ForwarderLoop {
    /// Replaces the store; the one of before is given up.
    func replaceStore(_ new: SharedStore?, at now: Tick) {
        guard store != nil || new != nil else { return }
        store?.close()
        store = new?.upstream(generations, loop: loop, outbox: carriers.outbox)
        store?.told = { [unowned self] event in
            forwarder.told(event, wall: WallClock.unixSeconds(), at: Tick(nanoseconds: Clock.now()))
        }
        forwarder.change(.sharedCache(new == nil ? nil : SharedSettings(settings)), at: now)
    }

    /// What the settings, or the resolvers that were found, say of the groups may have changed.
    func identifyShared() {
        store?.apply(settings.sharedIdentities(numbers) { local.servers(of: $0) })
    }
}
