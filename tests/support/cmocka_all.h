/* SPDX-License-Identifier: BSD-2-Clause */
/* cmocka and the headers that it needs in front of it, in the order it wants. */
#ifndef TEST_SUPPORT_CMOCKA_ALL_H
#define TEST_SUPPORT_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
