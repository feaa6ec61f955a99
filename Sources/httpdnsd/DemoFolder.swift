import Base
import Configuration
import DemoService
import Transport

/// The folder in which `demo` puts the files that other commands need, and from which it removes them.
struct DemoFolder {
    let path: String

    /// The folder in which commands search for the control socket.
    static var usual: DemoFolder { DemoFolder(path: OwnFolder.path("httpdnsd-demo", Environment.variables)) }

    var configuration: String { path + "/httpdnsd.toml" }
    var socket: String { path + "/control.sock" }
    private var authorities: String { path + "/ca.pem" }
    private var key: String { path + "/key.pem" }

    /// The sockets of running or killed demos.
    static var sockets: [String] {
        (0...last).map(numbered).filter { OwnFolder.isOwn($0.path) && SystemFile.isThere($0.socket) }.map(\.socket)
    }

    private static let last: Int32 = 9

    private static func numbered(_ number: Int32) -> DemoFolder {
        DemoFolder(path: usual.path + (number == 0 ? "" : "-\(number + 1)"))
    }

    /// The usual folder, or the next folder if another demo uses the usual folder.
    static func begin(_ number: Int32 = 0) throws(SystemError) -> DemoFolder {
        let folder = numbered(number)
        try OwnFolder.make(folder.path)
        guard number < last, SystemFile.isThere(folder.socket), UnixListener.isAnswered(folder.socket) else {
            return folder
        }
        return try begin(number + 1)
    }

    /// Writes the configuration of an operator with an account at the service, and reads it as every command does, but
    /// without the environment.
    func settings(
        _ service: DemoService, _ endpoints: Endpoints
    ) throws -> (settings: Settings, origins: Settings.Origins) {
        let text = text(service, endpoints)
        try FileState.file(service.certificatePEM, mode: 0o600).put(at: authorities)
        try FileState.file(service.keyPEM, mode: 0o600).put(at: key)
        try FileState.text(text, mode: 0o600).put(at: configuration)
        return try Settings.load(
            file: configuration, contents: text, environment: [:],
            readFile: { FileReading(path: $0, limit: 1 << 20) })
    }

    /// The addresses of the daemon's DNS service and status page.
    typealias Endpoints = (listen: [Endpoint], tls: Endpoint, https: Endpoint, page: Endpoint)

    private func text(_ service: DemoService, _ endpoints: Endpoints) -> String {
        let (tls, https) = (service.dnsOverTLS, service.dnsOverHTTPS)
        return """
            # Of httpdnsd demo, while it runs.

            [listen]
            addresses = [\(endpoints.listen.map { "\"\($0)\"" }.joined(separator: ", "))]
            tls = ["\(endpoints.tls)"]
            https = ["\(endpoints.https)"]
            certificateFile = "ca.pem"
            keyFile = "key.pem"

            [httpdns]
            token = "\(String(decoding: service.account.token, as: UTF8.self))"
            dnsIp = ["\(service.https)"]
            # A proxy could not reach this machine's loopback, which needs no route either, by which "auto" would choose.
            proxy = "ignore"
            addressType = "dual"

            [tls]
            caFile = "ca.pem"
            serverName = "\(service.https.address)"

            [upstreams.encrypted]
            domains = ["example.net"]
            servers = ["tls://\(tls)", "https://\(https)\(DemoService.dnsOverHTTPSPath)"]
            caFile = "ca.pem"

            [control]
            socket = "control.sock"
            metrics = "\(endpoints.page)"

            """
    }

    /// Removes the files; the daemon itself removes the socket.
    func remove() {
        for file in [configuration, authorities, key] { try? FileState.absent.put(at: file) }
        try? FileState.absent.put(at: path)
    }
}
