/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every parser of this layer answers. Parsers look at `len` bytes and no further, keep no
 * state and allocate nothing; a view's pointers point into the bytes given and live as long. The
 * caller turns an error into the counter of its layer.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

enum wire_err {
	WIRE_OK = 0,
	WIRE_ERR_SHORT = -1,	/* fewer bytes than the fixed header */
	WIRE_ERR_VERSION = -2,	/* not the version this parser reads */
	WIRE_ERR_HLEN = -3,	/* header length below the minimum or past the end */
	WIRE_ERR_LEN = -4,	/* length field below the header or past the end */
	WIRE_ERR_BAD = -5,	/* a field has a value that is never right */
};

#endif
