extension Settings {
    /// The origin of each setting, for errors, including those found only when the setting is used, such as a `caFile`
    /// without a certificate.
    public struct Origins: Sendable {
        enum Origin {
            case file(Lines)
            case environment
            /// An option of the command line.
            case option(String)
        }

        struct Lines: Sendable {
            let key: Int
            /// The line of each item of a list.
            let items: [Int]

            /// - Parameter item: The number of the item, from 1; nil for the value as a whole.
            func line(of item: Int?) -> Int {
                guard let item, items.indices.contains(item - 1) else { return key }
                return items[item - 1]
            }
        }

        /// The file's name in errors.
        let fileName: String
        /// The option with which commands read this file, after a space; empty for the standard file.
        public var fileOption: String { fileName == Settings.standardFile ? "" : " -c \(fileName)" }
        /// Origins by the key's path; a missing key has its default.
        var keys: [String: Origin] = [:]
        /// The lines of the sections in the file; groups as `upstreams.NAME`.
        var sections: [String: Int] = [:]
        /// The files that hold secrets in use: keys, tokens, certificates with their keys, passwords; and the
        /// configuration file if it holds a secret.
        public internal(set) var secretFiles: [String] = []
        /// The secrets' files that were found beside the configuration, each with the path in the folder `credentials`
        /// where it would be found as well.
        public internal(set) var credentialPaths: [String: String] = [:]
        /// All files read besides the configuration file.
        public internal(set) var filesRead: [String] = []

        /// An error at the origin of a key. A key that was not given counts as being at its section. Without the
        /// section, the origin is the variable that could set the key.
        ///
        /// - Parameters:
        ///   - key: As in messages, `section.key` or `upstreams.NAME.key`.
        ///   - item: The item of a list, counted from 1; nil: the list as a whole.
        ///   - message: What is wrong and what would be right, on one line without secrets.
        public func error(_ key: String, item: Int? = nil, _ message: String) -> ConfigurationError {
            let problem = Problem(message)
            switch keys[key] {
            case .file(let lines): return error(lines.line(of: item), key, problem)
            case .environment: break
            case .option(let option):
                return ConfigurationError(file: "command line", line: 0, key: option, message: message)
            case nil:
                // The key may be a section itself, such as that of a group.
                switch find(section: key) {
                case .file(_, let start): return error(start, key, problem)
                case .variable(let variable): return error(variable: variable, problem)
                case .standard:
                    let line = key.lastIndex(of: ".").flatMap { sections[String(key[..<$0])] }
                    if let line { return error(line, key, problem) }
                }
            }
            let variable = KeyID(path: key)?.variable
            // Else the file has other sections, but not the key's section.
            return variable == nil && !sections.isEmpty
                ? error(1, key, problem) : error(variable: variable ?? key, problem)
        }

        /// The location of a setting.
        public enum Location: Sendable, Equatable {
            case file(String, line: Int)
            /// The environment variable, or the option of the command line.
            case variable(String)
            /// The default.
            case standard
        }

        /// The location of a setting.
        /// - Parameters:
        ///   - key: As in messages, `section.key` or `upstreams.NAME.key`.
        ///   - item: The item of a list, counted from 1; nil: the list as a whole.
        public func find(_ key: String, item: Int? = nil) -> Location {
            switch keys[key] {
            case .file(let lines): return .file(fileName, line: lines.line(of: item))
            case .environment: return .variable(KeyID(path: key)?.variable ?? key)
            case .option(let option): return .variable(option)
            case nil: return .standard
            }
        }

        /// The line at which a section begins. For a section that only variables set, the first of these variables.
        public func find(section: String) -> Location {
            if let line = sections[section] { return .file(fileName, line: line) }
            let key = keys.keys.filter { $0.hasPrefix(section + ".") }.min()
            return key.map { find($0) } ?? .standard
        }

        /// Whether the file has any section.
        public var hasSections: Bool { !sections.isEmpty }

        /// Whether any key of a section was given.
        public func has(section: String) -> Bool { keys.keys.contains { $0.hasPrefix(section + ".") } }

        /// The location of a key, as text for a message about another key.
        /// - Parameter item: The item of a list, counted from 1; nil: the list as a whole.
        public func location(of key: String, item: Int? = nil) -> String {
            switch find(key, item: item) {
            case .file(_, let line): "line \(line)"
            case .variable(let variable): variable
            case .standard: KeyID(path: key)?.variable ?? key
            }
        }

        func error(_ line: Int, _ path: String, _ problem: Problem) -> ConfigurationError {
            ConfigurationError(file: fileName, line: line, key: path, message: problem.message)
        }

        func error(variable: String, _ problem: Problem) -> ConfigurationError {
            ConfigurationError(file: "environment", line: 0, key: variable, message: problem.message)
        }
    }
}
