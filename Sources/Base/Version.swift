/// The program's version, which the packages take from here as well.
package enum Version {
    package static let current = "0.1.0"
}
