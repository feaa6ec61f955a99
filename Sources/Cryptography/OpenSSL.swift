internal import COpenSSL

/// The OpenSSL library of this process.
public enum OpenSSL {
    /// Keeps the library's state until the process is gone: a thread that serves TLS may still run while it ends. To be
    /// called before anything else of the library is used.
    public static func keepAtExit() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
