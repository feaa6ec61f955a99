internal import COpenSSL

/// The OpenSSL library of this process.
public enum OpenSSL {
    /// Keeps the library's state until the process is gone: a thread that serves TLS may still run while the process
    /// ends. Call this before any other function of the library.
    public static func keepAtExit() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
