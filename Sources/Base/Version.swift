/// The program's version. The build of the packages reads it from this file.
package enum Version {
    package static let current = "0.1.0"
    /// The release time of this version, in seconds since 1970, to be set at each release: a clock with an earlier time
    /// is wrong. The build time is not used, so that builds of one version are identical.
    package static let made: UInt64 = 1_795_305_600
}
