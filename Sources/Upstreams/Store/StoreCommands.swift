package import Forwarding
import Streams

/// The commands for a store, and the meaning of their replies.
extension StoreUpstream {
    /// - Parameter wall: The time in seconds since 1970.
    package func perform(_ action: SharedAction, wall: UInt64) {
        switch action {
        case .dial: dial(wall: wall)
        case .hangUp:
            // Writes that waited for an absent store would be outdated at its return.
            if !writes.isEmpty { handle(.dropped(exchange(&writes, with: []).count)) }
            close()
        case .read(let id, let question): read(id, question)
        case .claim(let id, let question): claim(id, question)
        case .write(let question, let content, let lifetime, let stale):
            write(question, content, lifetime: lifetime, stale: stale, wall: wall)
        case .delete(let questions): delete(questions, wall: wall)
        case .lookForGeneration:
            if let link, isReady, !link.isTrusted(at: wall) { return renewTrust(wall: wall) }
            lookForGeneration()
            outbox.add(self)
        case .beginGeneration: beginGeneration()
        }
    }

    /// Makes all earlier entries unfindable. The new number follows from the store's present one, once that is known.
    private func beginGeneration() {
        isGenerationDue = true
        for seal in seals { seal.generation &+= 1 }
        keepGenerations()
        if isReady { lookForGeneration() }
        outbox.add(self)
    }

    func open(_ command: [UInt8], _ purpose: Awaited) {
        nextID += 1
        awaited[nextID] = purpose
        link?.open(command, as: nextID)
    }

    /// The number of further commands that the connection takes now.
    private var room: Int { link?.room ?? 0 }

    func command(_ words: any Sequence<UInt8>...) -> [UInt8] { RESP.command(words.map { Array($0) }) }

    func read(_ id: SharedReadID, _ question: SharedQuestion, _ onlooker: ((SharedEvent) -> Void)? = nil) {
        let handle = onlooker ?? handle
        var lookups: [Lookup] = []
        for isStaleCopy in [false, true] {
            for seal in seals {
                let key = seal.key(isStaleCopy ? .stale : .fresh, of: question)
                guard let key, !pendingDeletes.contains(key.text) else { continue }
                lookups.append(Lookup(seal: seal, key: key, isStaleCopy: isStaleCopy))
            }
        }
        guard isReady, room >= lookups.count else { return handle(.failed(id, "it has too much to do")) }
        guard !lookups.isEmpty else { return handle(.found(id, .nothing)) }
        let read = Read(id, question, onlooker, left: lookups.count)
        for lookup in lookups { open(command("GET".utf8, lookup.key.text), .read(read, lookup)) }
        outbox.add(self)
    }

    func claim(_ id: SharedReadID, _ question: SharedQuestion) {
        guard isReady, room > 0, let key = seals[0].key(.lease, of: question) else {
            return handle(.failed(id, "it has too much to do"))
        }
        open(command("SET".utf8, key.text, "1".utf8, "NX".utf8, "PX".utf8, "\(Self.leaseTime)".utf8), .lease(id))
        outbox.add(self)
    }

    func write(_ question: SharedQuestion, _ content: SharedContent, lifetime: UInt32, stale: UInt32, wall: UInt64) {
        var copies = [(StoreSeal.Purpose.fresh, UInt64(lifetime))]
        if stale > 0 { copies.append((.stale, UInt64(lifetime) + UInt64(stale))) }
        for (purpose, time) in copies {
            guard let key = seals[0].key(purpose, of: question),
                let value = try? seals[0].value(content, stored: wall, lifetime: lifetime, as: key)
            else { continue }
            writes.append((key.text, command("SET".utf8, key.text, value, "EX".utf8, "\(time)".utf8)))
        }
        if writes.count > Self.maximumWrites {
            let excess = writes.count - Self.maximumWrites
            writes.removeFirst(excess)
            handle(.dropped(excess))
        }
        outbox.add(self)
    }

    func delete(_ questions: [SharedQuestion], wall: UInt64) {
        var keys: Set<[UInt8]> = []
        for question in questions {
            for seal in seals {
                for purpose in [StoreSeal.Purpose.fresh, .stale] {
                    if let key = seal.key(purpose, of: question) { keys.insert(key.text) }
                }
            }
        }
        writes.removeAll { keys.contains($0.key) }
        // It is better to forget all entries than to leave out an entry that is to be deleted.
        guard pendingDeletes.count + keys.count <= Self.maximumDeletions else { return beginGeneration() }
        hasFlushed = true
        for key in keys {
            forgotten.add(key, at: wall)
            delete(key)
        }
        if !isReady { keepGenerations() }
    }

    func delete(_ key: [UInt8]) {
        guard pendingDeletes.count < Self.maximumDeletions else { return }
        if pendingDeletes.insert(key).inserted { deletions.append(key) }
        outbox.add(self)
    }

    func lookForGeneration() {
        if deletionsUnderWay == 0 { deletions = Array(pendingDeletes) }
        for index in seals.indices where room > 0 {
            open(command("GET".utf8, seals[index].generationKey.text), .generation(seal: index))
        }
    }

    // MARK: Replies

    func replied(_ reply: StoreReply, to purpose: Awaited) {
        // The store replies so to any command, before it closes the connection.
        if case .error(.denied) = reply { return lost(StoreError.denied.text) }
        switch purpose {
        case .authentication:
            if case .error(let error) = reply { lost(error.text) }
        case .anyReply: break
        // It is written again after the next look. Until then, other daemons believe what was to be forgotten.
        case .newGeneration: if case .error(let error) = reply { handle(.writeFailed(error.text)) }
        case .generation(let index): generation(reply, of: seals[index], isLast: index == seals.count - 1)
        case .read(let read, let lookup): replied(reply, to: read, lookup)
        case .lease(let id):
            switch reply {
            case .done, .value: handle(.claimed(id, true))
            case .nothing: handle(.claimed(id, false))
            case .error(let error): handle(.failed(id, error.text))
            }
        case .write(let octets):
            writesUnderWay.count -= 1
            writesUnderWay.octets -= octets
            if case .error(let error) = reply { handle(.writeFailed(error.text)) } else { handle(.written) }
        case .deletion(let key):
            deletionsUnderWay -= 1
            // After an error the deletion is repeated with the next read of the generation.
            if case .error = reply { break }
            if pendingDeletes.remove(key) != nil, pendingDeletes.isEmpty { keepGenerations() }
        }
    }

    func replied(_ reply: StoreReply, to read: Read, _ lookup: Lookup) {
        let handle = read.onlooker ?? handle
        func refuse() {
            if read.onlooker == nil { self.refuse(lookup.key) } else { read.failure = "what it has is not the fleet's" }
        }
        read.left -= 1
        switch reply {
        case .value(let value):
            guard let entry = lookup.seal.entry(value, as: lookup.key, to: read.question) else {
                refuse()
                break
            }
            if forgotten.holds(lookup.key.text, stored: entry.stored) {
                if read.onlooker == nil { delete(lookup.key.text) }
                break
            }
            if lookup.isStaleCopy {
                read.stale = read.stale ?? entry
            } else if !read.isDone {
                read.isDone = true
                handle(.found(read.id, .entry(entry, isStaleCopy: false)))
            }
        case .error(.wrongType): refuse()
        case .error(let error): read.failure = error.text
        case .done, .nothing: break
        }
        guard read.left == 0, !read.isDone else { return }
        read.isDone = true
        if let failure = read.failure {
            handle(.failed(read.id, failure))
        } else {
            handle(.found(read.id, read.stale.map { .entry($0, isStaleCopy: true) } ?? .nothing))
        }
    }

    /// Deletes a key of this fleet whose value the fleet did not write.
    func refuse(_ key: StoreSeal.Key) {
        delete(key.text)
        handle(.refused)
    }

    /// The highest generation counts: the last daemon that was to forget all entries has begun it.
    func generation(_ reply: StoreReply, of seal: StoreSeal, isLast: Bool) {
        let key = seal.generationKey
        var known: UInt64 = 0
        switch reply {
        case .value(let value):
            if let generation = seal.generation(value, as: key) { known = generation } else { refuse(key) }
        case .error(.wrongType): refuse(key)
        case .error(let error):
            if isReady { handle(.failed(nil, error.text)) } else { lost(error.text) }
            return
        case .done, .nothing: break
        }
        // Keys that were deleted since the last look, or wait to be, are of the generation that was known then.
        let areKeysOutdated = (hasFlushed || !pendingDeletes.isEmpty) && known > seal.generation
        seal.generation = max(isGenerationDue || areKeysOutdated ? known &+ 1 : known, seal.generation)
        if seal.generation > known, room > 0,
            let value = try? seal.value(generation: seal.generation, as: key)
        {
            open(command("SET".utf8, key.text, value, "EX".utf8, "\(Self.generationTime)".utf8), .newGeneration)
            outbox.add(self)
        }
        guard isLast else { return }
        keepGenerations()
        (isGenerationDue, hasFlushed) = (false, false)
        guard !isReady else { return }
        isReady = true
        handle(.connected)
    }
}
