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

// Writes the whole response to a whole request; returns its length.
size_t response_to(const char *request, size_t length, char *into, size_t space);
