import Base
import Configuration
import Cryptography
import Forwarding
import Transport
import Upstreams

/// The store of `[sharedCache]`. Confined to the forwarder's loop.
final class Store {
    /// Nil if no store is configured.
    private(set) var upstream: StoreUpstream?
    /// The last upstream, while no store is configured: what is still to be deleted there is for the next one.
    private var former: StoreUpstream?
    /// Called with the events of the store and the results of requests.
    var handle: (SharedEvent) -> Void = { _ in }
    private let generations: Generations?
    private let loop: EventLoop
    private let outbox: Outbox

    /// - Parameter generations: The generations of the store's entries; nil if no generation outlives a restart.
    init(_ generations: Generations?, loop: EventLoop, outbox: Outbox) {
        (self.generations, self.loop, self.outbox) = (generations, loop, outbox)
    }

    /// The parts of settings that can fail; made on any thread.
    struct Prepared: @unchecked Sendable {
        // Unchecked: made on one thread, used on the loop.
        fileprivate let access: StoreUpstream.Access
        fileprivate let seals: [FleetSeal]

        /// Nil if there is no `[sharedCache]`.
        init?(_ settings: Settings.SharedCache) throws(StartFailure) {
            guard let server = settings.server, let key = settings.key else { return nil }
            let address: StoreUpstream.Address =
                switch server {
                case .plain(let endpoint): .plain(endpoint)
                case .path(let path): .path(path)
                case .tls(let server): .tls(server, try Self.context(settings))
                }
            access = StoreUpstream.Access(address, user: settings.user, password: settings.password?.bytes)
            do throws(CryptographyError) {
                seals = try ([key] + (settings.keyBefore.map { [$0] } ?? [])).map { secret throws(CryptographyError) in
                    try FleetSeal(secret: secret.bytes)
                }
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
    }

    /// Changes to another store and closes the former one.
    /// - Returns: false if no store is configured, and none was.
    func apply(_ new: Prepared?) -> Bool {
        guard upstream != nil || new != nil else { return false }
        upstream?.close()
        let former = upstream ?? self.former
        upstream = new.map {
            StoreUpstream(
                $0.access, seals: $0.seals.map { StoreSeal($0, [:]) }, generations: generations, loop: loop,
                outbox: outbox)
        }
        if let former { upstream?.takeOver(former) }
        self.former = upstream == nil ? former : nil
        upstream?.handle = { [unowned self] in handle($0) }
        return true
    }
}

extension SharedSettings {
    /// Nil if no store is configured.
    init?(_ settings: Settings) {
        guard settings.sharedCache.server != nil else { return nil }
        self.init(staleSeconds: settings.cache.staleSeconds, prefetchAt: settings.cache.prefetchAt)
    }
}

extension Settings {
    /// The conditions of each group's answers beside the question; see ``GroupIdentity/octets(_:_:)``.
    /// - Parameter servers: Returns the present servers of a group.
    func sharedIdentities(
        _ numbers: GroupNumbers, servers: (Settings.Group) -> [Server]
    ) -> [GroupID: [UInt8]] {
        let groups = Dictionary(uniqueKeysWithValues: messageGroups.map { ($0.name, $0) })
        return GroupIdentity.all(self).reduce(into: [:]) { all, one in
            all[numbers[one.key]] = one.value.octets(
                ["\(cache.minTTL)", "\(cache.negativeMinTTL)", "\(cache.negativeTTL)"],
                groups[one.key].map(servers) ?? [])
        }
    }
}
