import Base

/// A keyed hash of a question, the same for each spelling of its name's letters (RFC 4343).
///
/// The keys are secret and random for each process, so that clients cannot choose names that all fall into one bucket.
/// The hash is a folded 64×64→128-bit multiplication, eight octets a step; the last step takes the last eight octets,
/// which may overlap the step before (a loop over the rest took as long as all other steps together).
package struct NameHash: Sendable {
    let keys: (UInt64, UInt64)

    /// - Parameter keys: Two random and secret numbers.
    package init(keys: (UInt64, UInt64)) { self.keys = keys }

    /// The hash of a question.
    /// - Parameter name: The range of the name in `bytes`, in wire form and any case of letters.
    package func callAsFunction(_ bytes: Span<UInt8>, name: Range<Int>, type: UInt16) -> UInt64 {
        var hash = keys.0 ^ (UInt64(type) << 8 | UInt64(name.count))
        guard name.count >= 8 else {
            return fold(fold(fewOctets(bytes, name).asciiLowercased, hash), keys.0)
        }
        var at = name.lowerBound
        while at &+ 8 < name.upperBound {
            hash = fold(eightOctets(bytes, at: at).asciiLowercased, hash)
            at &+= 8
        }
        hash = fold(eightOctets(bytes, at: name.upperBound &- 8).asciiLowercased, hash)
        return fold(hash, keys.0)
    }

    /// Folds in octets. Both factors contain a key: `keys.1` here, `keys.0` in the hash so far.
    private func fold(_ octets: UInt64, _ hash: UInt64) -> UInt64 {
        folded(octets ^ keys.1, hash ^ 0x9E37_79B9_7F4A_7C15)
    }
}

/// Folds the two halves of a product into one number.
@inline(__always)
func folded(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = a.multipliedFullWidth(by: b)
    return product.high ^ product.low
}

/// Whether a stored (lower-case) name equals another name, in any case of letters.
func sameName(_ stored: Span<UInt8>, at start: Int, as bytes: Span<UInt8>, name: Range<Int>) -> Bool {
    let length = name.count
    guard length >= 8 else {
        return fewOctets(bytes, name).asciiLowercased == fewOctets(stored, start..<(start &+ length))
    }
    var at = 0
    while at &+ 8 < length {
        guard isLowercase(eightOctets(stored, at: start &+ at), of: eightOctets(bytes, at: name.lowerBound &+ at))
        else {
            return false
        }
        at &+= 8
    }
    return isLowercase(eightOctets(stored, at: start &+ length &- 8), of: eightOctets(bytes, at: name.upperBound &- 8))
}

/// The conversion is rarely needed: nearly all names are in lower case.
@inline(__always)
private func isLowercase(_ stored: UInt64, of octets: UInt64) -> Bool {
    octets == stored || octets.asciiLowercased == stored
}

/// Up to seven octets in one number.
func fewOctets(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt64 {
    var word: UInt64 = 0
    for at in range { word = word << 8 | UInt64(bytes[at]) }
    return word
}
