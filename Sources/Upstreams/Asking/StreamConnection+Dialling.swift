import Base
import Cryptography
import Forwarding
import Streams
import Transport

/// Dialling of a connection.
///
/// The endpoints of a server are dialled one after the other, with alternating address families, and the first
/// established connection is used (RFC 8305 §4, §5). With TLS a connection counts as established when the certificate
/// is accepted: otherwise an endpoint with a wrong certificate could win.
extension StreamConnection {
    struct Dialling {
        var attempts: [Attempt] = []
        var untried: ArraySlice<Endpoint> = []
        /// When the next endpoint is tried beside the present one.
        var next: Tick?
        var failure: Failure?
        /// All endpoints given for the server.
        var given: [Endpoint] = []
        /// Whether the server's name was looked up again because none of the endpoints could be reached, or answers.
        var hasLookedAgain = false
        /// Whether no optional protocol is offered any more, since an endpoint had none of them. A later connection
        /// offers them again: the alert that says so is not encrypted, so any machine on the path can send it.
        var hasWithdrawnProtocols = false
        /// Whether an endpoint was tried again because a connection had ended in its handshake.
        var hasTriedAgain = false

        /// Milliseconds after which the next endpoint is tried as well (RFC 8305 §5: connection attempt delay).
        static let attemptDelay = 250
    }

    struct Attempt {
        let stream: Stream
        let endpoint: Endpoint
        /// Whether another handshake may do better if the server has none of the protocols that this one offers.
        let offersOptionalProtocols: Bool
    }

    /// Gets the server's endpoints, and begins to connect.
    func begin(at now: Tick) {
        guard let lookup = upstream.lookup else { return dial(pool.server.endpoints, at: now) }
        lookup.find(pool.server, now) { [weak self] found in
            guard let self, !isClosed else { return }
            switch found {
            case .known(let endpoints):
                let now = upstream.now()
                if pool.mayHaveMoved, !dialling.hasLookedAgain, endpoints.allSatisfy(pool.avoided.contains) {
                    lookup.allFailed(pool.server, now)
                    dialling.hasLookedAgain = true
                    return begin(at: now)
                }
                dial(endpoints.filter { !dialling.given.contains($0) }, at: now)
            case .unknown(let failure): fail(dialling.failure ?? failure)
            }
        }
    }

    private func dial(_ endpoints: [Endpoint], at now: Tick) {
        dialling.given += endpoints
        let others = endpoints.filter { !pool.avoided.contains($0) }
        dialling.untried = (inTurn(others, first: pool.preferred) + pool.avoided.filter(endpoints.contains))[...]
        tryNext(at: now)
    }

    /// Begins to connect to the next endpoint; continues with the one after if dialling fails at once.
    func tryNext(at now: Tick) {
        dialling.next = nil
        while let endpoint = dialling.untried.popFirst() {
            do throws(LinkEnd) {
                let full = pool.kind.security
                let security = dialling.hasWithdrawnProtocols ? full.withoutOptionalProtocols : full
                let tls = try security.session(to: endpoint, at: upstream.wall())
                let stream = try Stream(
                    to: endpoint, by: upstream.egress, tls: tls, limit: StreamLimits.maximumQueued,
                    scratch: upstream.scratch, loop: upstream.loop, owner: self)
                dialling.attempts.append(
                    Attempt(
                        stream: stream, endpoint: endpoint, offersOptionalProtocols: security.offersOptionalProtocols))
                if !dialling.untried.isEmpty {
                    dialling.next = now.advanced(milliseconds: Dialling.attemptDelay)
                    upstream.wake(at: dialling.next)
                }
                return
            } catch {
                note(Failure(error), of: endpoint)
            }
        }
        if dialling.attempts.isEmpty { allFailed(at: now) }
    }

    /// A server that is looked up may have moved: its name is looked up again, once, if that is due.
    private func allFailed(at now: Tick) {
        if pool.isLookedUp, dialling.failure?.kind != .here, let lookup = upstream.lookup {
            lookup.allFailed(pool.server, now)
            if !dialling.hasLookedAgain, !dialling.given.isEmpty {
                dialling.hasLookedAgain = true
                return begin(at: now)
            }
        }
        fail(dialling.failure ?? Failure(.unreachable, "no address of the server is known"))
    }

    /// Retains the most useful of several failures: the failure of an endpoint which was reached, then a shortage of
    /// this machine, since the server may have answered otherwise. It names the endpoint, unless it is the only one.
    private func note(_ failure: Failure, of endpoint: Endpoint) {
        func use(_ kind: Failure.Kind?) -> Int {
            switch kind {
            case .untrusted, .insecure: 2
            case .here: 1
            default: 0
            }
        }
        guard dialling.failure == nil || use(failure.kind) >= use(dialling.failure?.kind) else { return }
        dialling.failure = failure
        if pool.server.endpoints != [endpoint] { dialling.failure?.detail += " (\(endpoint))" }
    }

    func attemptFailed(_ stream: Stream, _ failure: LinkEnd) {
        let endsInHandshake = stream.isConnected && failure.isConnectionEnd
        guard let attempt = removeAttempt(stream) else { return }
        if failure == .tls(.noApplicationProtocol), attempt.offersOptionalProtocols {
            dialling.hasWithdrawnProtocols = true
            dialling.untried.insert(attempt.endpoint, at: dialling.untried.startIndex)
        } else {
            note(pool.kind.describe(failure), of: attempt.endpoint)
            if endsInHandshake, !dialling.hasTriedAgain {
                dialling.hasTriedAgain = true
                dialling.untried.append(attempt.endpoint)
            }
        }
        tryNext(at: upstream.now())
    }

    private func removeAttempt(_ stream: Stream) -> Attempt? {
        stream.close()
        let index = dialling.attempts.firstIndex { $0.stream === stream }
        return index.map { dialling.attempts.remove(at: $0) }
    }
}
