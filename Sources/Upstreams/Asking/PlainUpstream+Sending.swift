import Base
import DNSWire
import Forwarding
import Transport

/// Queries and the ports from which they leave.
extension PlainUpstream {
    func known(_ server: Server) -> PlainServer {
        if let latest, latest.server == server { return latest }
        let known = servers[server] ?? PlainServer(server, isRemembered: servers.count < Self.maximumServers)
        if known.isRemembered { servers[server] = known }
        latest = known
        return known
    }

    func send(_ query: PlainQuery, edns: EDNSUse, isRepeat: Bool, at now: Tick) {
        do throws(SystemError) {
            guard let port = try port(for: query, at: now) else {
                return failed(query, Failure(.here, "\(Self.maximumPorts) ports are open, as many as may be"))
            }
            let id = port.newID(answers.nextID)
            var bytes = Query.message(
                id: id, query.question.name, type: query.question.type, dnssecOK: query.question.dnssecOK,
                checkingDisabled: query.question.checkingDisabled, hasEDNS: edns == .used,
                subnet: answers.clientSubnet)
            let isMixed =
                query.server.spelling.repeatsCase != false && Query.mixCase(of: &bytes) { answers.random64() }
            let sent = SentQuery(
                id: id, query, from: port, bytes: bytes, edns: edns, isMixed: isMixed, isRepeat: isRepeat, at: now)
            query.sent.append(sent)
            port.add(sent)
            gather(sent)
        } catch {
            failed(query, Failure(error))
        }
    }

    /// The port of the last query to the same server, if it takes more and this query was not sent from it; otherwise a
    /// new port. Nil if too many are open.
    private func port(for query: PlainQuery, at now: Tick) throws(SystemError) -> QueryPort? {
        let server = query.server
        if let port = server.port, port.takesQueries(at: now), query.sent.allSatisfy({ $0.port !== port }) {
            return port
        }
        retirePort(of: server)
        guard openPorts < Self.maximumPorts else { return nil }
        let port = try QueryPort(
            to: server.server.endpoints[0], by: egress, loop: loop, at: now, received: portIsReadable)
        openPorts += 1
        if server.isRemembered { server.port = port } else { port.retire() }
        return port
    }

    private func gather(_ sent: SentQuery) {
        let datagrams = self.datagrams ?? QueryDatagrams()
        self.datagrams = datagrams
        if !datagrams.takes(sent) { flush() }
        // The earlier queries may have failed to be sent, and this query with them.
        guard sent.port.isOpen else { return }
        datagrams.add(sent)
        if let outbox { outbox.add(self) } else { flush() }
    }

    func retirePort(of server: PlainServer) {
        guard let port = server.port else { return }
        server.port = nil
        port.retire()
        if port.isIdle { close(port) }
    }

    func close(_ port: QueryPort) {
        if datagrams?.port === port { flush() }
        guard port.isOpen else { return }
        port.close()
        openPorts -= 1
    }
}
