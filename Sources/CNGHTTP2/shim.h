// nghttp2, as far as version 1.52 has it: Swift imports all of it that is used.

#ifndef CNGHTTP2_SHIM_H
#define CNGHTTP2_SHIM_H

#include <nghttp2/nghttp2.h>

#if NGHTTP2_VERSION_NUM < 0x013400
#error "nghttp2 1.52 or newer is needed"
#endif

#endif
