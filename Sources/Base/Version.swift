/// The program's version. The build of the packages reads it from this file.
package enum Version {
    package static let current = "0.1.0"
    /// When this version was released, in seconds since 1970, to be set with each release: a clock that shows an
    /// earlier time is wrong. The time of the build is not used, so that builds of one version are identical.
    package static let made: UInt64 = 1_795_305_600
}
