package import Base
package import Cryptography
package import Forwarding
package import Streams
package import Transport

/// Carries out the orders about a fleet's store, over one connection. Confined to the forwarder's loop.
///
/// Only GET, SET and DEL are sent, after AUTH and CLIENT SETNAME. Reads leave together at the end of a turn, writes
/// wait behind them; entries that the fleet did not seal are deleted.
package final class StoreUpstream: Sender {
    /// Called with the result of each action, perhaps during the action.
    package var handle: (SharedEvent) -> Void = { _ in }

    let access: Access
    /// The first seal seals new entries; each can open entries.
    let seals: [StoreSeal]
    let loop: EventLoop
    let outbox: Outbox
    private let generations: Generations?
    let scratch = Scratch(64 * 1024)
    /// The connection; nil if the store is not connected.
    var link: StreamLink?
    var nextID: RequestID = 0
    var awaited: [RequestID: Awaited] = [:]
    /// Whether the store has accepted the initial commands, such as the password.
    var isReady = false
    /// The number of dialled connections, each of which goes to the next address.
    var dialled = 0
    var writes: [(key: [UInt8], command: [UInt8])] = []
    var writesUnderWay = (count: 0, octets: 0)
    /// Keys whose values are ignored until the store has confirmed their DEL: a lost reply, or an error, may have left
    /// the values there; and the keys of these whose DEL is to be sent.
    var pendingDeletes: Set<[UInt8]> = []
    var deletions: [[UInt8]] = []
    var deletionsUnderWay = 0
    var forgotten = ForgottenKeys()
    /// Whether names were flushed since the generation was last read.
    var hasFlushed = false
    /// Whether to begin a generation when the present one is known.
    var isGenerationDue = false

    /// The address of the store, and the credentials for it.
    package struct Access {
        let address: Address
        let user: String
        let password: [UInt8]?

        package init(_ address: Address, user: String, password: [UInt8]?) {
            (self.address, self.user, self.password) = (address, user, password)
        }
    }

    package enum Address: CustomStringConvertible {
        case plain(Endpoint)
        case tls(Server, TLSClientContext)
        case path(String)

        package var description: String {
            switch self {
            case .plain(let endpoint): "\(endpoint)"
            case .tls(let server, _): "\(server)"
            case .path(let path): path
            }
        }
    }

    /// The purpose of a command.
    enum Awaited {
        case authentication
        /// Nothing follows from its reply.
        case anyReply
        case generation(seal: Int)
        case newGeneration
        case read(Read, Lookup)
        case lease(SharedReadID)
        case write(octets: Int)
        case deletion([UInt8])
    }

    /// One of the keys of a question.
    struct Lookup {
        let seal: StoreSeal
        let key: StoreSeal.Key
        let isStaleCopy: Bool
    }

    /// The keys of one question that are read together.
    final class Read {
        let id: SharedReadID
        let question: SharedQuestion
        /// Takes the finding of an operator's read, which has no other receiver and deletes nothing; nil for a
        /// question's read.
        let onlooker: ((SharedEvent) -> Void)?
        /// The number of outstanding replies.
        var left: Int
        var stale: SharedEntry?
        var failure: String?
        var isDone = false

        init(_ id: SharedReadID, _ question: SharedQuestion, _ onlooker: ((SharedEvent) -> Void)?, left: Int) {
            (self.id, self.question, self.onlooker, self.left) = (id, question, onlooker, left)
        }
    }

    /// The most writes that wait; the oldest writes beyond this number are dropped.
    static let maximumWrites = 256
    /// The most writes under way, and their octets.
    static let mostWritesUnderWay = (count: 64, octets: 256 * 1024)
    /// The most keys to delete, and the most deletions under way.
    static let maximumDeletions = 8192
    static let mostDeletionsUnderWay = 256
    /// The most octets that wait for the store to read.
    static let maximumQueued = 1 << 20
    /// The duration of a lease, in milliseconds.
    static let leaseTime = 300
    /// Seconds for which a generation is stored: longer than any entry lives.
    static let generationTime = 30 * 86_400
    /// The name only helps an operator who reads the store's list of clients.
    static let clientName = "httpdnsd"

    /// - Parameters:
    ///   - seals: The present seal first, then the seals of keys that are still accepted.
    ///   - generations: The generations that were seen before; nil if there are none.
    package init(_ access: Access, seals: [StoreSeal], generations: Generations?, loop: EventLoop, outbox: Outbox) {
        (self.access, self.seals, self.loop, self.outbox) = (access, seals, loop, outbox)
        self.generations = generations
        for seal in seals { seal.generation = generations?.highest(of: seal.generationKey) ?? 0 }
    }

    func keepGenerations() { generations?.keep(seals, deletes: !pendingDeletes.isEmpty) }

    /// The settings of groups have changed; the connection stays.
    package func apply(_ identities: [GroupID: [UInt8]]) { for seal in seals { seal.identities = identities } }

    /// Takes over from a former upstream what is still to be deleted: the store may be the same.
    package func takeOver(_ former: StoreUpstream) {
        (pendingDeletes, forgotten) = (former.pendingDeletes, former.forgotten)
        (isGenerationDue, hasFlushed) = (former.isGenerationDue, former.hasFlushed)
    }

    package func close() {
        link?.close()
        if !pendingDeletes.isEmpty { keepGenerations() }
        (link, isReady, awaited) = (nil, false, [:])
        (writesUnderWay, deletionsUnderWay) = ((0, 0), 0)
    }

    /// Sends the gathered commands, as far as the connection has room; the rest follows when replies have come.
    func flush() {
        guard let link else { return }
        if isReady {
            while deletionsUnderWay < Self.mostDeletionsUnderWay, link.room > 0, let key = deletions.popLast() {
                deletionsUnderWay += 1
                open(command("DEL".utf8, key), .deletion(key))
            }
            var sent = 0
            while sent < writes.count, writesUnderWay.count < Self.mostWritesUnderWay.count,
                writesUnderWay.octets < Self.mostWritesUnderWay.octets, link.room > 0
            {
                let octets = writes[sent].command.count
                open(writes[sent].command, .write(octets: octets))
                writesUnderWay.count += 1
                writesUnderWay.octets += octets
                sent += 1
            }
            writes.removeFirst(sent)
        }
        link.flush()
    }
}

extension StoreUpstream {
    // MARK: Connection

    func dial(wall: UInt64) {
        close()
        let link = StreamLink(client: RESP(), owner: self)
        self.link = link
        if let password = access.password {
            let user = access.user.isEmpty ? [] : [Array(access.user.utf8)]
            open(RESP.command([Array("AUTH".utf8)] + user + [password]), .authentication)
        }
        open(command("CLIENT".utf8, "SETNAME".utf8, Self.clientName.utf8), .anyReply)
        lookForGeneration()
        do throws(LinkEnd) {
            let stream = try connect(link, wall: wall)
            dialled += 1
            link.begin(stream)
        } catch {
            lost(error.description)
        }
    }

    /// Connects again, since the verification of the certificate has expired. No question fails if no reply is awaited.
    func renewTrust(wall: UInt64) {
        if awaited.isEmpty { dial(wall: wall) } else { lost("its certificate was verified too long ago") }
    }

    private func connect(_ link: StreamLink, wall: UInt64) throws(LinkEnd) -> Stream {
        switch access.address {
        case .plain(let endpoint): return try connect(link, endpoint, tls: nil)
        case .tls(let server, let context):
            let endpoint = server.endpoints[dialled % server.endpoints.count]
            let security = Security.tls(context, TLSTarget(server, protocols: []))
            return try connect(link, endpoint, tls: security.session(to: endpoint, at: wall))
        case .path(let path):
            do throws(SystemError) {
                return try Stream(
                    StreamSocket.connect(toPath: path), isConnected: true, tls: nil, limit: Self.maximumQueued,
                    scratch: scratch, loop: loop, owner: link)
            } catch {
                throw LinkEnd(error)
            }
        }
    }

    private func connect(_ link: StreamLink, _ endpoint: Endpoint, tls: TLSSession?) throws(LinkEnd) -> Stream {
        try Stream(to: endpoint, tls: tls, limit: Self.maximumQueued, scratch: scratch, loop: loop, owner: link)
    }

    func lost(_ why: String) {
        close()
        handle(.lost("\(access.address): \(why)"))
    }
}

extension StoreUpstream: LinkOwner {
    package func happened(_ event: ConversationEvent, on link: StreamLink) {
        guard case .answered(let id, .store(let reply)) = event, let purpose = awaited.removeValue(forKey: id)
        else { return }
        replied(reply, to: purpose)
    }

    package func advanced(_ link: StreamLink) { flush() }

    package func ended(_ link: StreamLink, _ end: LinkEnd) {
        // The reply to the oldest command is broken, for example by a value that this fleet has not written.
        if case .protocolBroken = end, case .read(_, let lookup) = awaited.min(by: { $0.key < $1.key })?.value {
            refuse(lookup.key)
        }
        if case .closedByPeer = end { lost("closed by the store") } else { lost(end.description) }
    }
}
