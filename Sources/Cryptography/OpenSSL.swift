internal import COpenSSL

/// The OpenSSL library of this process.
public enum OpenSSL {
    /// Prepares the library; call this before any other function of it.
    ///
    /// Its state stays until the process is gone, since a thread that serves TLS may still run while the process ends.
    /// And it makes no table of its ciphers' names in OpenSSL 1, which took 2.4 of the 29.6 million instructions
    /// from the start to the first lookup over TLS: TLS and this program fetch ciphers from providers.
    public static func prepare() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_ADD_ALL_CIPHERS), nil)
    }
}
