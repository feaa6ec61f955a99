/// The program's version, which the packages take from here as well.
package enum Version {
    package static let current = "0.1.0"
    /// When this version was made, in seconds since 1970, to be set with each: a clock that stands before it is wrong. No time
    /// of a build, which would make each build another.
    package static let made: UInt64 = 1_795_305_600
}
