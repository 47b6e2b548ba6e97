/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive lists: the BSD LIST, SLIST, STAILQ and TAILQ macros (queue(3bsd)), from libbsd. A file
 * of ours names this header, so that the choice is made in one place.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <bsd/sys/queue.h>

#endif
