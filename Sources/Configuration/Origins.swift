extension Settings {
    /// Where each setting was given, so that an error can point there, even an error that is found only when the
    /// setting is used, such as a `caFile` without a certificate.
    public struct Origins: Sendable {
        enum Origin {
            case file(Lines)
            case environment
        }

        struct Lines: Sendable {
            let key: Int
            /// Of a list, the line of each item.
            let items: [Int]

            /// - Parameter item: Counted from 1; nil: the value as a whole.
            func line(of item: Int?) -> Int {
                guard let item, items.indices.contains(item - 1) else { return key }
                return items[item - 1]
            }
        }

        /// The file's name in errors.
        let fileName: String
        /// Origins by the key's path; a key that is not here has its default.
        var keys: [String: Origin] = [:]
        /// The lines of the sections in the file, those of groups as `upstreams.NAME`.
        var sections: [String: Int] = [:]
        /// The files that hold the secrets in use: keys, tokens, certificates with their keys, passwords; the
        /// configuration file itself if it holds a secret.
        public internal(set) var secretFiles: [String] = []
        /// All files that were read beside the configuration file.
        public internal(set) var filesRead: [String] = []

        /// An error at the place where a key was given; for a key that was not given, at its section, and without that
        /// section at the variable that could set it.
        ///
        /// - Parameters:
        ///   - key: As it stands in messages, `section.key` or `upstreams.NAME.key`.
        ///   - item: Of a list, counted from 1; nil: the list as a whole.
        ///   - message: What is wrong and what would be right, in one line that holds no secret.
        public func error(_ key: String, item: Int? = nil, _ message: String) -> ConfigurationError {
            let line: Int?
            switch keys[key] {
            case .file(let lines): line = lines.line(of: item)
            case .environment: line = nil
            case nil: line = sections[key.lastIndex(of: ".").map { String(key[..<$0]) } ?? key]
            }
            if let line { return error(line, key, Problem(message)) }
            guard let variable = KeyPlace(path: key)?.variable else {
                // A section that a file does not have, though it has others.
                return sections.isEmpty ? error(variable: key, Problem(message)) : error(1, key, Problem(message))
            }
            return error(variable: variable, Problem(message))
        }

        /// Where a setting was given.
        public enum Place: Sendable, Equatable {
            case file(String, line: Int)
            /// The environment variable.
            case variable(String)
            /// Nowhere: it is the default.
            case standard
        }

        /// Where a setting was given.
        /// - Parameters:
        ///   - key: As it stands in messages, `section.key` or `upstreams.NAME.key`.
        ///   - item: Of a list, counted from 1; nil: the list as a whole.
        public func find(_ key: String, item: Int? = nil) -> Place {
            switch keys[key] {
            case .file(let lines): return .file(fileName, line: lines.line(of: item))
            case .environment: return .variable(KeyPlace(path: key)?.variable ?? key)
            case nil: return .standard
            }
        }

        /// Where a section begins; if it is given by variables alone, the first of them.
        public func find(section: String) -> Place {
            if let line = sections[section] { return .file(fileName, line: line) }
            let key = keys.keys.filter { $0.hasPrefix(section + ".") }.min()
            return key.map { find($0) } ?? .standard
        }

        /// Where a key stands, for a message about another key.
        /// - Parameter item: Of a list, counted from 1; nil: the list as a whole.
        public func place(of key: String, item: Int? = nil) -> String {
            switch find(key, item: item) {
            case .file(_, let line): "line \(line)"
            case .variable(let variable): variable
            case .standard: KeyPlace(path: key)?.variable ?? key
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
