// What the service says: the parameters of an HTTPDNS request, its ciphers, the text of its answers; DNS messages in their frames.
#pragma once
// DES is asked for by its own functions: the provider that still has it is not on every machine.
#define OPENSSL_API_COMPAT 10100
#include <openssl/des.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include "dns_answer.h"

void use_encryption(const char *encryption, const char *key);

// How many of the bytes are a whole request; 0: none is there yet.
size_t whole_request(const char *bytes, size_t length);

// False for a frame of HTTP/2 that asks nothing.
bool is_question(const char *request);

// What a frame of HTTP/2 adds to what may be sent on its connection; 0 for all others.
size_t added_window(const char *request);

// Octets of a response that a client of HTTP/2 counts.
size_t counted(const char *response, size_t length);

// Writes the whole response to a whole request; returns its length, 0 for what gets none.
size_t response_to(const char *request, size_t length, char *into, size_t space);
