// What the HTTPDNS service says: its requests' parameters, its ciphers, the text of its answers.
#pragma once
// DES is asked for by its own functions: the provider that still has it is not on every machine.
#define OPENSSL_API_COMPAT 10100
#include <openssl/des.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include "common.h"

void use_encryption(const char *encryption, const char *key);

// Writes the whole HTTP response to the request between `start` and `end`; returns its length.
size_t response_to(const char *start, const char *end, char *into, size_t space);
