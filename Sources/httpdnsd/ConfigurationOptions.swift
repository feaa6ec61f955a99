import ArgumentParser
import Base
import Configuration
import DNSWire
import Daemon
import Transport

/// The options that locate and read the configuration, the same for every command.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help: ArgumentHelp("The configuration file.", valueName: "file"), completion: .file())
    var file: String?

    private static let fileLimit = 1 << 20
    private static let secretLimit = 64 * 1024

    /// Reads the file, if there is one, and the environment. The default file may be missing, since containers are
    /// configured without one; a file named on the command line must exist.
    /// - Parameter waits: Whether to wait for a file that is a pipe, as at a start. In a running daemon, signals would
    ///   have to wait, too.
    /// - Parameter listen: Addresses that replace `listen.addresses`, if there are any.
    func load(waits: Bool = true, listen: [Endpoint] = []) throws -> Loaded {
        try load(contents(waits: waits), waits: waits, listen: listen)
    }

    /// Loads the settings from the contents of the file, which was read before.
    func load(_ contents: String?, waits: Bool, listen: [Endpoint] = []) throws -> Loaded {
        let loaded = try Settings.load(
            file: path, contents: contents, environment: Environment.variables, listen: listen,
            readFile: { FileReading(path: $0, limit: Self.secretLimit, waits: waits) })
        return Loaded(settings: loaded.settings, origins: loaded.origins, path: path)
    }

    /// The files of secrets that have changed since systemd passed copies to the service, which reads only the copies.
    /// Empty if this user may not compare the files with the copies, and for the file of another daemon than the service.
    var secretsNotInUse: [String] {
        guard path == Settings.standardFile else { return [] }
        let usual = "/run/credentials/httpdnsd.service"
        // systemd hides that folder from an ExecReload; the daemon itself sees the folder.
        let folders = [usual] + (Environment.variables["MAINPID"].map { ["/proc/\($0)/root\(usual)"] } ?? [])
        func files(_ folder: String?) -> [String]? {
            var variables = Environment.variables
            variables["CREDENTIALS_DIRECTORY"] = folder
            return try? Settings.load(
                file: path, contents: contents(waits: false), environment: variables,
                readFile: { FileReading(path: $0, limit: Self.secretLimit) }
            ).origins.secretFiles
        }
        func octets(_ path: String) -> [UInt8]? { try? SystemFile.read(path, limit: Self.secretLimit) }
        guard let copies = folders.first(where: SystemFile.isThere), let inUse = files(copies), let now = files(nil),
            inUse.count == now.count
        else { return [] }
        return zip(inUse, now).filter { $0 != $1 && octets($0) != octets($1) }.map(\.1)
    }

    /// The path of the daemon's control socket, whatever other settings are wrong, and the first mistake on one line;
    /// and the contents of the file, which may be a pipe, and so can be read only once.
    func controlSocket() -> (path: String, mistake: String?, contents: Result<String?, any Error>) {
        var (octets, unread): ([UInt8]?, String?)
        let contents = Result {
            octets = try self.octets(waits: true)
            return try octets.map(text)
        }
        if case .failure(let error) = contents { unread = Ending(error)?.line ?? "\(error)" }
        let (socket, mistakes) = Settings.controlSocket(
            file: path, contents: octets.map { String(decoding: $0, as: UTF8.self) }, environment: Environment.variables
        )
        let check = "httpdnsd check" + (file.map { " -c \($0)" } ?? "")
        let more = mistakes.count > 1 ? "; \(mistakes.count) mistakes in all: \(check) says them" : ""
        return (socket, unread ?? mistakes.first.map { "\($0)\(more)" }, contents)
    }

    var path: String { file ?? Settings.standardFile }

    /// The text of the file; nil: there is no file.
    func contents(waits: Bool) throws -> String? { try octets(waits: waits).map(text) }

    private func octets(waits: Bool) throws -> [UInt8]? {
        ProgramMemory.holdsSecrets()
        do throws(SystemError) {
            return try SystemFile.read(path, limit: Self.fileLimit, waits: waits)
        } catch {
            guard file == nil, error.isNotFound else {
                throw Ending.configuration("\(error)" + (error.mend(path).map { "; \($0)" } ?? ""))
            }
            return nil
        }
    }

    private func text(_ octets: [UInt8]) throws -> String { try Settings.text(octets, file: path) }
}

extension FileReading {
    /// Reads a file of this machine. The parameters are those of ``SystemFile/read(_:limit:waits:)``.
    init(path: String, limit: Int, waits: Bool = false) {
        do throws(SystemError) {
            self = .bytes(try SystemFile.read(path, limit: limit, waits: waits))
        } catch {
            self = .failed(error.reason, mend: error.mend(path))
        }
    }
}

/// The user and the group of the packaged service.
private let service = (user: "_httpdnsd", group: "httpdnsd")

extension SystemError {
    /// The remedy for a file that this user may not read; nil if the file cannot be read for another reason.
    fileprivate func mend(_ path: String) -> String? {
        guard isDenied else { return nil }
        return SystemFile.isReadable(path, by: service.user, in: service.group) == true
            ? "the service can read it, this user cannot: give the command as root"
            : "let the daemon's group read it: chgrp \(service.group) \(path) && chmod 640 \(path)"
    }
}

/// The value of a command's argument.
/// - Parameters:
///   - value: The argument's value; nil: it has none, which is an error.
///   - what: What the argument should have been.
func parsed<Value>(_ value: Value?, _ argument: String, as what: String) throws -> Value {
    guard let value else { throw ValidationError("\(argument) is not \(what)") }
    return value
}

/// The option of commands that look up a name.
struct NameOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("The name to look up, instead of the first of domains.intercept.", valueName: "name"),
        transform: Name.init(explained:))
    var name: Name?
}

/// The settings and their origins.
struct Loaded {
    var settings: Settings
    let origins: Settings.Origins
    /// The path of the configuration file.
    let path: String

    /// A warning for each file with a secret that every user of this machine can read, and for a section without
    /// effect.
    var remarks: [String] {
        origins.secretFiles.compactMap { path in
            SystemFile.modeOpenToAll(path).map { mode in
                "\(path) holds a secret and every user can read it (mode 0\(String(mode, radix: 8))): "
                    + "let root and the daemon's group alone read it, with chmod 640 and chgrp"
            }
        } + (settings.httpdns == nil && origins.has(section: "tls") ? [Self.tlsWithoutAccount] : [])
    }

    private static let tlsWithoutAccount =
        "[tls] has no effect without [httpdns], whose servers it is about: the servers of [fallback], [private] and "
        + "[upstreams.NAME] have caFile, pins and the like in their own sections, and the certificate's name behind \"#\", as in "
        + "\"tls://192.0.2.1#dns.example\""

    /// A warning for each file that root can read but the service cannot. systemd passes the files of the folder
    /// `credentials` on to the service.
    var unreadable: [String] {
        let folder = path.prefix(through: path.lastIndex(of: "/") ?? path.startIndex) + "credentials/"
        let (needed, others) = settings.namesAndHosts
        return ([path] + origins.filesRead + needed + others).filter { file in
            !file.hasPrefix(folder) && SystemFile.isReadable(file, by: service.user, in: service.group) == false
        }.map { file -> String in
            let effect = others.contains(file) ? "takes no name from it" : "does not start then"
            let other = origins.credentialPaths[file].map { ", or move it to \($0)" } ?? ""
            return "\(file) cannot be read by the service (user \(service.user), group \(service.group)), which "
                + "\(effect): chgrp \(service.group) \(file) && chmod 640 \(file)\(other)"
        }
    }

    /// Ends the command if there is no group of this name. `httpdns` is always accepted, since commands that need an
    /// account report its absence themselves.
    func checkGroup(_ name: String) throws {
        let names = settings.groups.map(\.name)
        guard name == Settings.Group.httpdnsName || names.contains(name) else {
            throw Ending.usage("--group \(name) is not known here; give one of \(names.joined(separator: ", "))")
        }
    }

    /// Does work whose failure reveals an invalid setting, and adds the setting's origin to the error.
    func naming<T>(_ work: () throws(StartFailure) -> T) throws -> T {
        do throws(StartFailure) {
            return try work()
        } catch {
            switch error {
            case .setting(let key, let item, let message, let other):
                let location = other.map { " (\(origins.location(of: $0.key, item: $0.number)))" } ?? ""
                throw Ending.configuration("\(origins.error(key, item: item, message + location))")
            case .system(let message): throw Ending.system(message)
            }
        }
    }
}

/// The failure of a command, as one line on standard error and an exit code (sysexits.h).
enum Ending: Error {
    /// Exit code 64: the command was used incorrectly.
    case usage(String)
    /// Exit code 78: the configuration is wrong.
    case configuration(String)
    /// Exit code 71: a socket or file is not available.
    case system(String)
    /// Exit code 69: a service or the daemon cannot be reached.
    case unreachable(String)

    /// Throws unless an account can be asked for each of these names.
    static func checkAccountNames(_ names: [Name]) throws(Ending) {
        guard let name = names.first(where: { !$0.isHostname }) else { return }
        throw .usage("\(name) is not a name that HTTPDNS can be asked for")
    }

    var code: Int32 {
        switch self {
        case .usage: 64
        case .configuration: 78
        case .system: 71
        case .unreachable: 69
        }
    }

    var line: String {
        switch self {
        case .usage(let line), .configuration(let line), .system(let line), .unreachable(let line): line
        }
    }

    /// The ending for an error of the program's modules; nil for an error of the parser.
    init?(_ error: any Error) {
        switch error {
        case let ending as Ending: self = ending
        case let error as ConfigurationError: self = .configuration("\(error)")
        case StartFailure.setting(_, _, let message, _): self = .configuration(message)
        case StartFailure.system(let message), Host.Failed.system(let message): self = .system(message)
        case let error as SystemError: self = .system("\(error)")
        case Host.Failed.unreachable(let message): self = .unreachable(message)
        default: return nil
        }
    }
}

extension ParsableCommand {
    /// Runs a command's work. An error becomes a line on standard error and an exit code.
    func ending(_ work: () throws -> Void) throws {
        do {
            try work()
            try StandardOutput.checkLoss()
        } catch {
            guard let ending = Ending(error) else { throw error }
            StandardError.write(ending.line)
            throw ExitCode(ending.code)
        }
    }
}
