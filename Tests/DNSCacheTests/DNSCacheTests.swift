import Base
import DNSWire
import Testing

@testable import DNSCache

@Suite struct DNSCacheTests {
    let cache = DNSCache(bytes: 1 << 20, staleSeconds: 100, prefetchAt: 75, seed: (11, 22))
    let name = Name("www.example.com")!

    @Test func nothingIsKnownAtFirst() {
        #expect(cache.ask("www.example.com", at: 5) == nil)
        #expect(cache.find(name, type: .a, for: plain, at: 5) == nil)
        #expect(cache.statistics == DNSCache.Statistics(misses: 1))
    }

    @Test func anAnswerComesBackWithItsTTLCountedDownByWholeSeconds() {
        cache.store(address(0x0102_0304, of: name, ttl: 60), to: name, type: .a, for: everyone, at: 1000)
        for (now, ttl) in [(1000, 60), (1001, 59), (1059, 1)] as [(UInt32, UInt32)] {
            let seen = cache.ask("www.example.com", at: now)
            #expect(seen?.records == ["1.2.3.4"])
            #expect(seen?.ttls == [ttl])
        }
        #expect(cache.ask("www.example.com", at: 1060) == nil)
    }

    @Test func aListenerWhoseClockReadingIsOlderThanTheEntryIsAnswered() {
        cache.store(address(1, of: name, ttl: 60), to: name, type: .a, for: everyone, at: 1000)
        #expect(cache.ask("www.example.com", at: 999)?.ttls == [60])
        #expect(cache.find(name, type: .a, for: plain, at: 999)?.elapsed == 0)
    }

    @Test func lettersCaseDoesNotMatterAndComesBackAsSent() {
        cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 0)
        let seen = cache.ask("wWw.ExAmPlE.CoM", at: 1)
        #expect(seen?.question == [3] + "wWw".utf8 + [7] + "ExAmPlE".utf8 + [3] + "CoM".utf8 + [0])
        #expect(seen?.records == ["0.0.0.1"])
    }

    @Test func typesAreKeptApart() {
        let six = Answer.addresses(name, type: .aaaa, [IPAddress("2001:db8::1")!], ttl: 60)
        cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 0)
        #expect(cache.ask("www.example.com", .aaaa, at: 0) == nil)
        cache.store(six, to: name, type: .aaaa, for: everyone, at: 0)
        #expect(cache.ask("www.example.com", .aaaa, at: 0)?.records == ["2001:db8::1"])
        #expect(cache.ask("www.example.com", .a, at: 0)?.records == ["0.0.0.1"])
        #expect(cache.ask("www.example.com", .mx, at: 0) == nil)
    }

    @Test func namesThatDifferInOneOctetAreKeptApart() {
        // Every length up to the longest, so that each step and each rest of the comparison is met.
        for length in 1...253 {
            let label = String(repeating: "a", count: 63) + "."
            let text = String(String(repeating: label, count: 4).prefix(length))
            guard let name = Name(text) else { continue }
            cache.removeAll()
            cache.store(address(7, of: name), to: name, type: .a, for: everyone, at: 0)
            #expect(
                cache.ask(text.hasSuffix(".") ? String(text.dropLast()) : text.uppercased(), at: 0) != nil, "\(length)")
            for at in text.indices where text[at] != "." {
                var other = text
                other.replaceSubrange(at...at, with: "b")
                if cache.ask(other.hasSuffix(".") ? String(other.dropLast()) : other, at: 0) != nil {
                    Issue.record("\(other) was taken for \(text)")
                }
            }
        }
    }

    @Test(arguments: [("@", "`"), ("[", "{"), ("\\\\", "|"), ("-", "\\013")])
    func octetsThatDifferByTheCaseBitAloneAreNoLetters(_ pair: (String, String)) throws {
        let stored = try #require(Name("a\(pair.0)b.example.com"))
        let other = try #require(Name("a\(pair.1)b.example.com"))
        cache.store(address(1, of: stored), to: stored, type: .a, for: everyone, at: 0)
        #expect(cache.find(stored, type: .a, for: plain, at: 0) != nil)
        #expect(cache.find(other, type: .a, for: plain, at: 0) == nil)
    }

    @Test func theRootIsAName() {
        cache.store(filler(.root, bodyLength: 30), to: .root, type: .txt, for: everyone, at: 0)
        #expect(cache.find(.root, type: .txt, for: plain, at: 0) != nil)
        #expect(cache.remove(.only(.root)) == 1)
    }

    // MARK: Audience

    @Test func anAnswerForEveryoneIsGivenToEveryClient() {
        cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 0)
        for audience in allClients { #expect(cache.find(name, type: .a, for: audience, at: 0) != nil) }
        for (dnssecOK, checkingDisabled) in [(false, false), (true, false), (false, true), (true, true)] {
            #expect(
                cache.ask("www.example.com", dnssecOK: dnssecOK, checkingDisabled: checkingDisabled, at: 0) != nil)
        }
    }

    @Test func aResolversAnswersForAllClientsStandBesideEachOther() {
        // In the order in which none takes another's place.
        for (number, audience) in [plain, unchecked, signed, signedUnchecked].enumerated() {
            let now: UInt32 = audience == unchecked || audience == signedUnchecked ? 100 : 0
            cache.store(address(UInt32(number), of: name), to: name, type: .a, for: audience, at: now)
        }
        #expect(cache.statistics.entries == 4)
        for (number, audience) in [plain, unchecked, signed, signedUnchecked].enumerated() {
            let now: UInt32 = audience == unchecked || audience == signedUnchecked ? 100 : 0
            #expect(cache.find(name, type: .a, for: audience, at: now)?.answer == address(UInt32(number), of: name))
        }
        #expect(cache.ask("www.example.com", dnssecOK: true, at: 0)?.records == ["0.0.0.2"])
        #expect(cache.ask("www.example.com", dnssecOK: true, checkingDisabled: true, at: 100)?.records == ["0.0.0.3"])
    }

    /// What was got without CD was checked.
    @Test func anAnswerWithoutCDServesClientsWithCDAndNotTheOtherWayRound() {
        for (got, served) in [(plain, unchecked), (signed, signedUnchecked)] {
            cache.removeAll()
            cache.store(address(1, of: name), to: name, type: .a, for: got, at: 0)
            #expect(cache.find(name, type: .a, for: served, at: 59)?.isFresh == true)
            #expect(cache.ask("www.example.com", dnssecOK: served != unchecked, checkingDisabled: true, at: 1) != nil)
            // A fresh one that was checked is not replaced by one that was not.
            cache.store(address(2, of: name), to: name, type: .a, for: served, at: 1)
            #expect(cache.find(name, type: .a, for: served, at: 1)?.answer == address(1, of: name))
            #expect(cache.statistics.entries == 1)

            cache.removeAll()
            cache.store(address(1, of: name), to: name, type: .a, for: served, at: 0)
            #expect(cache.find(name, type: .a, for: got, at: 1) == nil)
            #expect(cache.ask("www.example.com", dnssecOK: served != unchecked, at: 1) == nil)
            cache.store(address(2, of: name), to: name, type: .a, for: got, at: 1)
            #expect(cache.find(name, type: .a, for: served, at: 1)?.answer == address(2, of: name))
            #expect(cache.statistics.entries == 1)
        }
    }

    /// RFC 4035 §3.2.1.
    @Test func anAnswerWithDOServesClientsWithoutLessItsSignatures() throws {
        var withSignature = address(1, of: name)
        withSignature.body += [0xC0, 0x0C, 0, 46, 0, 1, 0, 0, 0, 60, 0, 20, 0, 1] + [UInt8](repeating: 0, count: 18)
        withSignature.head.answerCount = 2
        for (got, others) in [(signed, [plain, unchecked]), (signedUnchecked, [unchecked])] {
            cache.removeAll()
            cache.store(withSignature, to: name, type: .a, for: got, at: 0, origin: 5)
            for other in allClients where other != got && !others.contains(other) {
                // But for CD.
                #expect((cache.find(name, type: .a, for: other, at: 1) != nil) == (other == signedUnchecked))
            }
            for other in others {
                #expect(cache.ask("www.example.com", checkingDisabled: other == unchecked, at: 1) == nil)
                let found = try #require(cache.find(name, type: .a, for: other, at: 10))
                #expect(found.answer == address(1, of: name) && found.isLent && found.elapsed == 10)
            }
            #expect(cache.statistics.entries == 1)
            // From then on a hit finds it, as old as it is.
            #expect(cache.take(name, type: .a, for: others[0], at: 10)?.answer == address(1, of: name))
            let seen = cache.ask("www.example.com", checkingDisabled: others[0] == unchecked, at: 11)
            #expect(seen?.records == ["0.0.0.1"] && seen?.ttls == [49])
            #expect(cache.find(name, type: .a, for: others[0], at: 11)?.origin == 5)
            #expect(cache.find(name, type: .a, for: got, at: 11)?.answer == withSignature)
            #expect(cache.statistics.entries == 2)
            // Past its own time, and while nothing else answers, too.
            #expect(cache.find(name, type: .a, for: others[0], at: 70)?.isFresh == false)
        }
    }

    @Test func theDenialOfANameServesNoClientWithoutDO() {
        let denial = Answer.nxDomain(name, type: .a, negativeTTL: 60)
        cache.store(denial, to: name, type: .a, for: signed, at: 0)
        #expect(cache.find(name, type: .a, for: signed, at: 1)?.answer == denial)
        for now in [UInt32(1), 70] { #expect(cache.find(name, type: .a, for: plain, at: now) == nil) }
    }

    @Test func signaturesThatWereAskedForStay() {
        var answer = address(1, of: name)
        answer.body[name.wire.count + 1] = 46
        answer.body[answer.body.count - 13] = 46
        cache.store(answer, to: name, type: .rrsig, for: signed, at: 0)
        #expect(cache.find(name, type: .rrsig, for: plain, at: 0)?.answer.head.answerCount == 1)
    }

    /// A name of HTTPDNS whose signed answers come from somebody else.
    @Test func clientsThatValidateHaveAnswersOfTheirOwn() {
        cache.store(address(1, of: name), to: name, type: .a, for: .exceptValidators, at: 0)
        cache.store(address(2, of: name), to: name, type: .a, for: .validators, at: 0)
        #expect(cache.statistics.entries == 2)
        for audience in allClients {
            let expected = address(audience == signed ? 2 : 1, of: name)
            #expect(cache.find(name, type: .a, for: audience, at: 0)?.answer == expected)
        }
        // Never lent.
        cache.removeAll()
        cache.store(address(2, of: name), to: name, type: .a, for: .validators, at: 0)
        for audience in allClients where audience != signed {
            #expect(cache.find(name, type: .a, for: audience, at: 0) == nil)
        }
        cache.store(address(3, of: name), to: name, type: .a, for: everyone, at: 0)
        #expect(cache.statistics.entries == 1)
    }

    @Test func aClientWithCDCausesNoRefreshOfWhatIsNotItsOwn() {
        cache.store(address(1, of: name), to: name, type: .a, for: plain, at: 0)
        #expect(cache.ask("www.example.com", checkingDisabled: true, at: 50)?.isDueForRefresh == false)
        #expect(cache.ask("www.example.com", at: 50)?.isDueForRefresh == true)
    }

    @Test func anAnswerForEveryoneTakesThePlaceOfAllOthers() {
        for audience in allClients {
            cache.store(address(1, of: name), to: name, type: .a, for: audience, at: 0)
        }
        cache.store(address(2, of: name), to: name, type: .a, for: everyone, at: 0)
        #expect(cache.statistics.entries == 1)
        for audience in allClients {
            #expect(cache.find(name, type: .a, for: audience, at: 0)?.answer == address(2, of: name))
        }
    }

    @Test func anAnswerForSomeTakesThePlaceOfOneForEveryone() {
        cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 0)
        cache.store(address(2, of: name), to: name, type: .a, for: signed, at: 0)
        #expect(cache.find(name, type: .a, for: signed, at: 0)?.answer == address(2, of: name))
        #expect(cache.find(name, type: .a, for: plain, at: 0)?.answer == address(2, of: name))
        #expect(cache.statistics.entries == 1)
    }

    @Test func theSameQuestionHasOneEntry() {
        for number: UInt32 in 0..<50 {
            cache.store(address(number, of: name), to: name, type: .a, for: everyone, at: number)
            #expect(cache.ask("www.example.com", at: number)?.records == ["0.0.0.\(number)"])
        }
        #expect(cache.statistics.entries == 1)
    }

    // MARK: Time

    @Test func pastItsTTLAnAnswerIsFoundForTheStaleWindowOnly() {
        cache.store(address(1, of: name, ttl: 60), to: name, type: .a, for: everyone, at: 0)
        #expect(cache.find(name, type: .a, for: plain, at: 59)?.isFresh == true)
        let stale = cache.find(name, type: .a, for: plain, at: 60)
        #expect(
            stale == DNSCache.Held(answer: address(1, of: name, ttl: 60), elapsed: 60, audience: .everyone)
                && stale?.isFresh == false)
        #expect(cache.find(name, type: .a, for: plain, at: 159) != nil)
        #expect(cache.find(name, type: .a, for: plain, at: 160) == nil)
    }

    @Test func withoutAStaleWindowNothingIsFoundPastItsTTL() {
        let cache = DNSCache(bytes: 1 << 20, seed: (1, 2))
        cache.store(address(1, of: name, ttl: 60), to: name, type: .a, for: everyone, at: 0)
        #expect(cache.find(name, type: .a, for: plain, at: 59) != nil)
        #expect(cache.find(name, type: .a, for: plain, at: 60) == nil)
    }

    @Test func aRefreshIsDueOnceFromThePerCentGiven() {
        cache.store(address(1, of: name, ttl: 60), to: name, type: .a, for: everyone, at: 0)
        #expect(cache.ask("www.example.com", at: 44)?.isDueForRefresh == false)
        #expect(cache.ask("www.example.com", at: 45)?.isDueForRefresh == true)
        #expect(cache.ask("www.example.com", at: 46)?.isDueForRefresh == false)
        cache.store(address(1, of: name, ttl: 60), to: name, type: .a, for: everyone, at: 50)
        #expect(cache.ask("www.example.com", at: 94)?.isDueForRefresh == false)
        #expect(cache.ask("www.example.com", at: 95)?.isDueForRefresh == true)
    }

    @Test func withPrefetchOffNoRefreshIsDue() {
        let cache = DNSCache(bytes: 1 << 20, seed: (1, 2))
        cache.store(address(1, of: name, ttl: 60), to: name, type: .a, for: everyone, at: 0)
        #expect(cache.ask("www.example.com", at: 59)?.isDueForRefresh == false)
    }

    @Test func whatMayNotBeKeptIsNotKept() {
        cache.store(address(1, of: name, ttl: 0), to: name, type: .a, for: everyone, at: 0)
        let failure = Answer.failure(name, type: .a, .servFail, extendedError: nil)
        cache.store(failure, to: name, type: .a, for: everyone, at: 0)
        #expect(cache.statistics.entries == 0)
    }

    @Test func theWholeAnswerIsKept() {
        var answer = Answer.noData(name, type: .a, negativeTTL: 30, extendedError: .filtered)
        answer.head.authenticData = true
        cache.store(answer, to: name, type: .a, for: plain, at: 0)
        #expect(cache.find(name, type: .a, for: plain, at: 0)?.answer == answer)
        let denial = Answer.nxDomain(name, type: .mx, negativeTTL: 30)
        cache.store(denial, to: name, type: .mx, for: plain, at: 0)
        #expect(cache.find(name, type: .mx, for: plain, at: 0)?.answer == denial)
        #expect(cache.ask("www.example.com", .mx, at: 0)?.answer.head.responseCode == .nxDomain)
    }

    // MARK: Removing, counting

    @Test func removingANameForgetsAllItsTypesAndAudiencesAndNoOther() {
        let other = Name("www.example.org")!
        for audience in allClients {
            cache.store(address(1, of: name), to: name, type: .a, for: audience, at: 0)
        }
        cache.store(filler(name, bodyLength: 60), to: name, type: .txt, for: everyone, at: 0)
        cache.store(address(1, of: other), to: other, type: .a, for: everyone, at: 0)
        // Two for all four, and one of the other type.
        #expect(cache.remove(.only(Name("WWW.EXAMPLE.COM")!)) == 3)
        #expect(cache.remove(.only(name)) == 0)
        #expect(cache.find(name, type: .txt, for: plain, at: 0) == nil)
        #expect(cache.find(other, type: .a, for: plain, at: 0) != nil)
        #expect(cache.statistics.entries == 1)
        cache.removeAll()
        #expect(cache.find(other, type: .a, for: plain, at: 0) == nil)
        #expect(cache.statistics.entries == 0)
        #expect(cache.statistics.bytes == 0)
        cache.store(address(3, of: name), to: name, type: .a, for: everyone, at: 0)
        #expect(cache.ask("www.example.com", at: 0)?.records == ["0.0.0.3"])
    }

    @Test func hitsAndMissesAreCounted() {
        cache.store(address(1, of: name, ttl: 10), to: name, type: .a, for: everyone, at: 0)
        for now: UInt32 in 0..<15 { _ = cache.ask("www.example.com", at: now) }
        let statistics = cache.statistics
        #expect(statistics.hits == 10)
        #expect(statistics.misses == 5)
        // 32 octets, and the question's 17 + 4, and a record's 16.
        #expect(statistics.bytes == (40 + 17 + 4 + 16 + 7) / 8 * 8)
    }

    @Test func aReplyTooLargeForTheClientIsTruncated() {
        cache.store(filler(name, bodyLength: 2000), to: name, type: .txt, for: everyone, at: 0)
        let small = cache.ask("www.example.com", .txt, limit: 512, at: 0)
        #expect(small?.records == [])
        #expect(small.map { $0.octets[2] & 2 } == 2)
        #expect(cache.ask("www.example.com", .txt, limit: 4096, at: 0)?.octets.count == 12 + 2000 + 11)
    }
}
