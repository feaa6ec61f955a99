/// The events for which an operator may search the log, or be alerted, even if the wording of a message changes. The
/// value of a case is the name of the event in the log (`event`), and its identifier in the journal, 128 random bits
/// (`MESSAGE_ID`, sd-journal(3)). Names and identifiers never change.
package enum LogEventID: String, CaseIterable, Sendable {
    /// The sockets are bound and questions are answered.
    case started = "started 73024f1f10564ae29f91ac376dead138"
    case stopping = "stopping 1941cb897bd340ac85270b73ea64f816"
    case reloaded = "reloaded b2abfeced75a4bc993be2e4a08943eb9"
    case reloadFailed = "reload-failed bbdc6c7a3d1d44f090f42de151cd17b6"
    /// One server of HTTPDNS fails.
    case serviceFails = "service-fails 1fc9829532b049748cd9641621c187ff"
    case serviceAnswersAgain = "service-answers-again cef2b967d8e145409f2b601e01279a17"
    case certificateRefused = "certificate-refused 61b26326068546cda4a325ac64501faa"
    case accountRefused = "account-refused ad361eeab3a741178dc67ea9fc1fab02"
    /// Names are asked one by one.
    case namesRefused = "names-refused e0b52eecbab0432aad9e9b9e6c58231e"
    /// Questions go to the next server of `dnsIp`.
    case serviceGivenUp = "service-given-up 306caef07f924e60be8234a8d41092b6"
    /// Questions go to the first server of `dnsIp` again.
    case serviceReturned = "service-returned 2dd752d0029b4af0be2d0e14dabf17f1"
    /// No server of HTTPDNS can be used. The fallback answers if it may.
    case serviceLost = "service-lost 35b26d6b56984cdfab41c74bcae09a1a"
    case serviceBack = "service-back 9b1042513e5a4d78b7b078b5184806b6"
    case resolverFails = "resolver-fails 25563955f4d6474e81dfdd054e27ab75"
    case resolverAnswersAgain = "resolver-answers-again 41cc263b474c4257bc03648121cddf9e"
    /// No server of a group other than HTTPDNS can be used.
    case groupLost = "group-lost fbe200e2651c4e9b8b70c935a01daaa4"
    case groupBack = "group-back cf8522f5bd8d4c0abbc7d79331fd4e1a"
    case noLocalResolver = "no-local-resolver b2335326857042578fbd0ba30ae3d143"
    /// Addresses or routes of this machine have changed.
    case networkChanged = "network-changed 480e1aba7f884443a0fa37931bdbf61e"
    case networkGone = "network-gone 32048db1d80b43efb6f5f0e011458f98"
    case networkBack = "network-back 187fc30a07404ab188f24ce8c62cc155"
    case planExceeded = "plan-exceeded 633d9ee3fbe847b98e7f717320212a63"
    /// Names without a record below one domain are no longer sent to HTTPDNS.
    case noRecordBudgetSpent = "no-record-budget-spent 57d4c97e9256cd182c71cd385f924cb6"
    case privateRefused = "private-refused ee7eddbcd3f83c9c5812e92d6be24e40"
    /// Validating clients are sent to a group other than HTTPDNS.
    case leftToValidators = "left-to-validators 068f2a73d3277027c900209cc7027007"
    /// A resolver's answer has the letters of the name in another case than the question.
    case otherCase = "other-case a7f0b42e4152443b32cc1ea157324347"
    /// This machine lacks descriptors, memory or ports.
    case short = "short c1f0a86b54d34e0f9a3f7d2be8617f43"
    /// A limit was reached.
    case questionsRefused = "questions-refused 1ed5f4b9b6694b0ab93e31389c63f983"
    /// A system call that should not fail has failed.
    case systemFailed = "system-failed a073daaaa51349d9ba67bbb446978266"
    case serviceListFails = "service-list-fails d627e2b0d3da4d6ebf23f59703e82d40"
    case serviceListBack = "service-list-back 00062cb9476b434eb1f608ac056d5002"
    /// The name of a server to dial could not be resolved.
    case serverNameFails = "server-name-fails 100d5ee4ce0fe910ca7a41fd6aa3a453"
    case serverNameFound = "server-name-found 8c0a64097a1e1c6507757223f7f24106"
    case cacheFileFails = "cache-file-fails b558f3d00fad4d0f877d8aea98763aa3"
    /// The store of the fleet cannot be used.
    case sharedCacheOff = "shared-cache-off c17bfa67d7ad45559a268f4ce1b53d6d"
    case sharedCacheOn = "shared-cache-on 0fe70d81b6aa4988985279f7fc459894"
    /// The store can be read but not written.
    case sharedCacheTakesNothing = "shared-cache-takes-nothing c33b814e66b7415497683dbf581cb821"
    case sharedCacheTakesAgain = "shared-cache-takes-again 3b14a6bf1f87496f995bb06016972862"
    /// An entry's time is in the future.
    case sharedCacheClock = "shared-cache-clock 974e76274b594ed0a02c21431136091d"
    /// The watchdog's notification of the service manager is withheld.
    case watchdogWithheld = "watchdog-withheld 75dfa6d4a5c2439ba4301c5635529eeb"

    /// The value of `event` in the log.
    package var name: String { String(rawValue.dropLast(33)) }
    /// The identifier in the journal's form.
    var messageID: Substring { rawValue.suffix(32) }
}
