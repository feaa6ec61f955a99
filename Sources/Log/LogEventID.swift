/// The events that an operator may search or be alerted for, independent of the wording: each has a name that stands in
/// the log as `event`, and in the journal an identifier (`MESSAGE_ID`, sd-journal(3)). Neither ever changes.
package enum LogEventID: String, CaseIterable, Sendable {
    /// The sockets are bound and questions are answered.
    case started
    case stopping
    case reloaded
    case reloadFailed = "reload-failed"
    /// One server of HTTPDNS.
    case serviceFails = "service-fails"
    case serviceAnswersAgain = "service-answers-again"
    case certificateRefused = "certificate-refused"
    case accountRefused = "account-refused"
    /// Questions go to the next server of `dnsIp`.
    case serviceGivenUp = "service-given-up"
    /// Questions go to the first server of `dnsIp` again.
    case serviceReturned = "service-returned"
    /// No server of HTTPDNS can be used: the local resolver answers, if it may.
    case serviceLost = "service-lost"
    case serviceBack = "service-back"
    case resolverFails = "resolver-fails"
    case resolverAnswersAgain = "resolver-answers-again"
    /// No server of a group other than HTTPDNS can be used.
    case groupLost = "group-lost"
    case groupBack = "group-back"
    case noLocalResolver = "no-local-resolver"
    /// Addresses or routes.
    case networkChanged = "network-changed"
    case networkGone = "network-gone"
    case networkBack = "network-back"
    case planExceeded = "plan-exceeded"
    /// Names without a record below one domain are no more asked of HTTPDNS.
    case noRecordBudgetSpent = "no-record-budget-spent"
    case privateRefused = "private-refused"
    /// Clients that validate are sent to another group than HTTPDNS.
    case leftToValidators = "left-to-validators"
    /// A resolver's answer has other letters' case than the question.
    case otherCase = "other-case"
    /// A limit was reached.
    case questionsRefused = "questions-refused"
    /// A system call that should not fail.
    case systemFailed = "system-failed"
    case serviceListFails = "service-list-fails"
    case serviceListBack = "service-list-back"
    /// The name of a server that is to be dialled.
    case serverNameFails = "server-name-fails"
    case serverNameFound = "server-name-found"
    case cacheFileFails = "cache-file-fails"
    /// The store of the fleet cannot be used.
    case sharedCacheOff = "shared-cache-off"
    case sharedCacheOn = "shared-cache-on"
    /// It can be read and not written.
    case sharedCacheTakesNothing = "shared-cache-takes-nothing"
    case sharedCacheTakesAgain = "shared-cache-takes-again"
    /// An entry's time lies in the future.
    case sharedCacheClock = "shared-cache-clock"
    /// The service manager is not told that all is well.
    case watchdogWithheld = "watchdog-withheld"

    /// 128 random bits, in the journal's form.
    var messageID: String {
        switch self {
        case .started: "73024f1f10564ae29f91ac376dead138"
        case .stopping: "1941cb897bd340ac85270b73ea64f816"
        case .reloaded: "b2abfeced75a4bc993be2e4a08943eb9"
        case .reloadFailed: "bbdc6c7a3d1d44f090f42de151cd17b6"
        case .serviceFails: "1fc9829532b049748cd9641621c187ff"
        case .serviceAnswersAgain: "cef2b967d8e145409f2b601e01279a17"
        case .certificateRefused: "61b26326068546cda4a325ac64501faa"
        case .accountRefused: "ad361eeab3a741178dc67ea9fc1fab02"
        case .serviceGivenUp: "306caef07f924e60be8234a8d41092b6"
        case .serviceReturned: "2dd752d0029b4af0be2d0e14dabf17f1"
        case .serviceLost: "35b26d6b56984cdfab41c74bcae09a1a"
        case .serviceBack: "9b1042513e5a4d78b7b078b5184806b6"
        case .resolverFails: "25563955f4d6474e81dfdd054e27ab75"
        case .resolverAnswersAgain: "41cc263b474c4257bc03648121cddf9e"
        case .groupLost: "fbe200e2651c4e9b8b70c935a01daaa4"
        case .groupBack: "cf8522f5bd8d4c0abbc7d79331fd4e1a"
        case .noLocalResolver: "b2335326857042578fbd0ba30ae3d143"
        case .networkChanged: "480e1aba7f884443a0fa37931bdbf61e"
        case .networkGone: "32048db1d80b43efb6f5f0e011458f98"
        case .networkBack: "187fc30a07404ab188f24ce8c62cc155"
        case .planExceeded: "633d9ee3fbe847b98e7f717320212a63"
        case .noRecordBudgetSpent: "57d4c97e9256cd182c71cd385f924cb6"
        case .privateRefused: "ee7eddbcd3f83c9c5812e92d6be24e40"
        case .leftToValidators: "068f2a73d3277027c900209cc7027007"
        case .otherCase: "a7f0b42e4152443b32cc1ea157324347"
        case .questionsRefused: "1ed5f4b9b6694b0ab93e31389c63f983"
        case .systemFailed: "a073daaaa51349d9ba67bbb446978266"
        case .serviceListFails: "d627e2b0d3da4d6ebf23f59703e82d40"
        case .serviceListBack: "00062cb9476b434eb1f608ac056d5002"
        case .serverNameFails: "100d5ee4ce0fe910ca7a41fd6aa3a453"
        case .serverNameFound: "8c0a64097a1e1c6507757223f7f24106"
        case .cacheFileFails: "b558f3d00fad4d0f877d8aea98763aa3"
        case .sharedCacheOff: "c17bfa67d7ad45559a268f4ce1b53d6d"
        case .sharedCacheOn: "0fe70d81b6aa4988985279f7fc459894"
        case .sharedCacheTakesNothing: "c33b814e66b7415497683dbf581cb821"
        case .sharedCacheTakesAgain: "3b14a6bf1f87496f995bb06016972862"
        case .sharedCacheClock: "974e76274b594ed0a02c21431136091d"
        case .watchdogWithheld: "75dfa6d4a5c2439ba4301c5635529eeb"
        }
    }
}
