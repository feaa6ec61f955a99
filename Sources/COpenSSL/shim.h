// What Swift cannot import of OpenSSL 3: function-like macros, variadic functions and constants made by macros.
// Each function here stands for exactly one of them and carries its name.

#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

#include <errno.h>
#include <stdlib.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#if OPENSSL_VERSION_NUMBER < 0x30000000L
#error "OpenSSL 3.0 or newer is needed"
#endif

// Contexts

static inline int copenssl_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline int copenssl_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}

static inline void copenssl_SSL_CTX_set_mode_release_buffers(SSL_CTX *context) {
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

static inline void copenssl_SSL_CTX_set_read_ahead(SSL_CTX *context) {
    SSL_CTX_set_read_ahead(context, 1);
}

static inline void copenssl_SSL_CTX_set_no_renegotiation(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
}

static inline void copenssl_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}

static inline int copenssl_SSL_CTX_add1_chain_cert(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

/* The keys of tickets: 16 octets of name, then those of HMAC and AES. */
enum { copenssl_ticket_keys_length = 80 };

static inline int copenssl_SSL_CTX_set_tlsext_ticket_keys(SSL_CTX *context, const uint8_t *keys, size_t length) {
    return (int)SSL_CTX_set_tlsext_ticket_keys(context, (void *)keys, (long)length);
}

// Sessions

static inline int copenssl_SSL_set_tlsext_host_name(SSL *session, const char *name) {
    return (int)SSL_set_tlsext_host_name(session, name);
}

// Message authentication

static inline int copenssl_HMAC_init(EVP_MAC_CTX *context, const unsigned char *key, size_t length, const char *digest) {
    OSSL_PARAM parameters[2] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0), OSSL_PARAM_construct_end()};
    return EVP_MAC_init(context, key, length, parameters);
}

// Memory BIOs

static inline long copenssl_BIO_get_mem_data(BIO *bio, char **data) {
    return BIO_get_mem_data(bio, data);
}

static inline void copenssl_BIO_reset(BIO *bio) {
    (void)BIO_reset(bio);
}

// Certificates

static inline int copenssl_sk_GENERAL_NAME_num(const GENERAL_NAMES *names) {
    return sk_GENERAL_NAME_num(names);
}

static inline GENERAL_NAME *copenssl_sk_GENERAL_NAME_value(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}

static inline int copenssl_sk_X509_num(const STACK_OF(X509) *certificates) {
    return sk_X509_num(certificates);
}

static inline X509 *copenssl_sk_X509_value(const STACK_OF(X509) *certificates, int index) {
    return sk_X509_value(certificates, index);
}

static inline void copenssl_sk_X509_pop_free(STACK_OF(X509) *certificates) {
    sk_X509_pop_free(certificates, X509_free);
}

static inline int copenssl_X509_NAME_print_rfc2253(BIO *out, const X509_NAME *name) {
    return X509_NAME_print_ex(out, name, 0, XN_FLAG_RFC2253);
}

static inline EVP_PKEY *copenssl_EVP_EC_gen(const char *curve) {
    return EVP_EC_gen(curve);
}

// Errors

static inline int copenssl_ERR_R_UNSUPPORTED(void) {
    return ERR_R_UNSUPPORTED;
}

// <stdlib.h> declares it only with _GNU_SOURCE.
char *secure_getenv(const char *name);

// SSL_CTX_set_default_verify_file, whose result does not depend on whether the file could be read.
// Returns 1 once the file's certificates are in the store, -1 if there is no descriptor or memory to open it, else 0.
static inline int copenssl_SSL_CTX_load_default_verify_file(SSL_CTX *context) {
    const char *path = secure_getenv(X509_get_default_cert_file_env());
    ERR_clear_error();
    if (SSL_CTX_load_verify_file(context, path ? path : X509_get_default_cert_file())) return 1;
    unsigned long error = ERR_peek_error();
    ERR_clear_error();
    if (ERR_GET_LIB(error) != ERR_LIB_SYS) return 0;
    int code = ERR_GET_REASON(error);
    return code == EMFILE || code == ENFILE || code == ENOMEM ? -1 : 0;
}

#endif
