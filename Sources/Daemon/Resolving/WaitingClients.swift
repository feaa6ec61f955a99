import Forwarding

/// The waiting clients, by their numbers in the forwarder; a number is reused after its client was answered.
struct WaitingClients {
    private var clients: [Client?] = []
    private var free: [ClientNumber] = []

    mutating func insert(_ client: Client) -> ClientNumber {
        guard let number = free.popLast() else {
            clients.append(client)
            return clients.count - 1
        }
        clients[number] = client
        return number
    }

    /// - Precondition: The number is in use.
    mutating func remove(_ number: ClientNumber) -> Client {
        guard let client = clients[number].take() else { preconditionFailure("a client is answered once") }
        free.append(number)
        return client
    }
}
