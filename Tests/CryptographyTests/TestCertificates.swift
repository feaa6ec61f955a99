import Foundation

/// Certificates made by the `openssl` command, a maker independent of the code under test, once for all tests.
///
/// root → intermediate → the servers' certificates; "stranger" and the clients' come from another root.
final class TestCertificates: Sendable {
    static let shared = try! TestCertificates()

    /// 2001-02-03 04:05:06 and 2090-02-03 04:05:06, both UTC.
    static let past = "20010203040506Z"
    static let future = "20900203040506Z"

    /// An hour from now, in seconds since 1970, and as certificates have it.
    static let soon = UInt64(Date().timeIntervalSince1970) + 3600
    private static let soonText: String = {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(secondsFromGMT: 0)
        format.dateFormat = "yyyyMMddHHmmss'Z'"
        return format.string(from: Date(timeIntervalSince1970: TimeInterval(soon)))
    }()

    /// Certificates (NAME.pem) and keys (NAME.key); the files are gone once they are made.
    private let contents: [String: [UInt8]]

    subscript(file: String) -> [UInt8] { contents[file]! }

    /// The server's certificate and the intermediate one.
    func chain(_ name: String) -> [UInt8] { self["\(name).pem"] + self["intermediate.pem"] }

    /// The SHA-256 digest of a certificate's SubjectPublicKeyInfo, as RFC 7469 appendix A has it computed.
    func pin(_ name: String) throws -> [UInt8] {
        let key = try openssl(["x509", "-noout", "-pubkey"], input: self["\(name).pem"])
        let info = try openssl(["pkey", "-pubin", "-outform", "der"], input: key)
        return try openssl(["dgst", "-sha256", "-binary"], input: info)
    }

    /// A certificate with its key as a PKCS #12 file.
    func pkcs12(
        _ name: String, password: String = "secret", authorities: [String] = [], _ options: String...
    ) throws -> [UInt8] {
        let folder = try TemporaryFolder()
        try folder.write(self["\(name).key"] + self["\(name).pem"], to: "client.pem")
        try folder.write(authorities.flatMap { self["\($0).pem"] }, to: "authorities.pem")
        let authorities = authorities.isEmpty ? [] : ["-certfile", folder.path("authorities.pem")]
        return try openssl(
            ["pkcs12", "-export", "-in", folder.path("client.pem"), "-passout", "pass:\(password)"] + authorities
                + options)
    }

    private init() throws {
        let folder = try TemporaryFolder()
        try folder.write(
            """
            [ca]
            default_ca = here
            [here]
            database = \(folder.path("index.txt"))
            new_certs_dir = \(folder.path("."))
            rand_serial = yes
            unique_subject = no
            default_md = sha256
            policy = any
            [any]
            commonName = supplied
            [req]
            distinguished_name = name
            [name]
            """.utf8, to: "ca.cnf")
        try folder.write([], to: "index.txt")

        var contents: [String: [UInt8]] = [:]
        func issue(
            _ name: String, by issuer: String?, _ extensions: String, subject: String? = nil,
            algorithm: [String] = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], start: String = TestCertificates.past,
            end: String = TestCertificates.future
        ) throws {
            try folder.write(extensions.utf8, to: "\(name).ext")
            try openssl(
                ["req", "-new", "-config", folder.path("ca.cnf"), "-newkey"] + algorithm + [
                    "-nodes", "-keyout", folder.path("\(name).key"), "-out", folder.path("\(name).csr"),
                    "-subj", "/CN=\(subject ?? "the \(name)")",
                ])
            let signer =
                issuer.map { ["-cert", folder.path("\($0).pem"), "-keyfile", folder.path("\($0).key")] }
                ?? ["-selfsign", "-keyfile", folder.path("\(name).key")]
            try openssl(
                ["ca", "-batch", "-config", folder.path("ca.cnf"), "-notext", "-in", folder.path("\(name).csr")]
                    + signer + [
                        "-out", folder.path("\(name).pem"), "-extfile", folder.path("\(name).ext"),
                        "-startdate", start, "-enddate", end,
                    ])
            for file in ["\(name).pem", "\(name).key"] { contents[file] = try folder.read(file) }
        }
        let authority = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign"
        let server = "basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth"
        let names = "\(server)\nsubjectAltName=DNS:dns.example,DNS:*.wild.example,IP:127.0.0.1,IP:2001:db8::1"
        let many = (1...20).map { "DNS:n\($0).example" }.joined(separator: ",")
        try issue("root", by: nil, authority)
        try issue("otherroot", by: nil, authority)
        try issue("weakroot", by: nil, authority, algorithm: ["rsa:1024"])
        try issue("intermediate", by: "root", authority)
        try issue("good", by: "intermediate", names)
        try issue("rsa", by: "intermediate", names, algorithm: ["rsa:2048"])
        try issue("ending", by: "intermediate", names, end: TestCertificates.soonText)
        try issue("endingintermediate", by: "root", authority, end: TestCertificates.soonText)
        try issue("underending", by: "endingintermediate", names)
        try issue("expired", by: "intermediate", names, end: "20210203040506Z")
        try issue("notyet", by: "intermediate", names, start: "20800203040506Z")
        try issue("oldintermediate", by: "root", authority, end: "20210203040506Z")
        try issue("underold", by: "oldintermediate", names)
        try issue("stranger", by: "otherroot", names)
        try issue("underweak", by: "weakroot", names)
        try issue("many", by: "intermediate", "\(server)\nsubjectAltName=\(many)")
        try issue("clientonly", by: "intermediate", names.replacingOccurrences(of: "serverAuth", with: "clientAuth"))
        try issue("partial", by: "intermediate", "\(server)\nsubjectAltName=DNS:f*.part.example")
        try issue("nonames", by: "intermediate", server, subject: "dns.example")
        try issue("hostile", by: "intermediate", "\(server)\nsubjectAltName=@s\n[s]\nDNS.1=bad\\nname")
        try issue("selfsigned", by: nil, names)
        try issue("otherselfsigned", by: nil, names)
        // What `openssl req -x509` makes of a key: an authority's certificate, without names.
        try issue("plainselfsigned", by: nil, "basicConstraints=critical,CA:TRUE")
        let client = "basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth"
        try issue("clientauthority", by: "otherroot", authority)
        try issue("client", by: "otherroot", client)
        try issue("clientunder", by: "clientauthority", client)
        try issue("oldclient", by: "otherroot", client, end: "20210203040506Z")
        try issue("weakclient", by: "otherroot", client, algorithm: ["rsa:1024"])
        for level in 1...9 { try issue("deep\(level)", by: level == 1 ? "root" : "deep\(level - 1)", authority) }
        try issue("underdeep", by: "deep9", names)
        self.contents = contents
    }
}

/// A folder that goes with its owner.
final class TemporaryFolder: Sendable {
    private let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("httpdnsd-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func path(_ file: String) -> String { url.appendingPathComponent(file).path }

    func read(_ file: String) throws -> [UInt8] { try Array(Data(contentsOf: url.appendingPathComponent(file))) }

    func write(_ bytes: some Sequence<UInt8>, to file: String) throws {
        try Data(bytes).write(to: url.appendingPathComponent(file))
    }
}

struct CommandFailure: Error, CustomStringConvertible {
    let description: String
}

/// Runs the `openssl` command and returns what it prints.
@discardableResult
func openssl(_ arguments: [String], input: [UInt8] = []) throws -> [UInt8] {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    let (standardInput, output, errors) = (Pipe(), Pipe(), Pipe())
    process.standardInput = standardInput
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    try standardInput.fileHandleForWriting.write(contentsOf: Data(input))
    try standardInput.fileHandleForWriting.close()
    let printed = output.fileHandleForReading.readDataToEndOfFile()
    let complaint = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw CommandFailure(
            description: "openssl \(arguments.joined(separator: " ")): \(String(decoding: complaint, as: UTF8.self))")
    }
    return Array(printed)
}
