/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target without libFuzzer: every file of the corpus folders given, then a fixed number
 * of seeded mutations of them, so that the same bytes are tried on every machine. A crash prints
 * the input in hex first through the handler of SIGABRT and SIGSEGV.
 *
 * usage: fuzz_X CORPUS_DIR_OR_FILE...
 */
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "fuzz/fuzz.h"

#define INPUT_MAX_BYTES	4096
#define CORPUS_MAX	1024
#ifndef MUTATIONS	/* the build says less for targets that take long */
#define MUTATIONS	200000
#endif

struct input {
	size_t len;
	uint8_t bytes[INPUT_MAX_BYTES];
};

static struct input *corpus[CORPUS_MAX];
static unsigned corpus_count;
static const struct input *running;

static void
print_input(int sig)
{
	static const char digits[] = "0123456789abcdef";
	char hex[3] = { 0, 0, '\n' };
	size_t i;

	for (i = 0; running != NULL && i < running->len; i++) {
		hex[0] = digits[running->bytes[i] >> 4];
		hex[1] = digits[running->bytes[i] & 15];
		if (write(STDERR_FILENO, hex, i + 1 == running->len ? 3 : 2) < 0)
			break;
	}
	signal(sig, SIG_DFL);
	raise(sig);
}

static void
run(const struct input *in)
{
	/* An exact allocation, so that a sanitizer sees a read past the end. */
	uint8_t *copy = malloc(in->len > 0 ? in->len : 1);

	if (copy == NULL)
		abort();
	memcpy(copy, in->bytes, in->len);
	running = in;
	LLVMFuzzerTestOneInput(copy, in->len);
	running = NULL;
	free(copy);
}

static void
read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct input *in;

	if (f == NULL || corpus_count == CORPUS_MAX) {
		fprintf(stderr, "%s: cannot read, or too many files\n", path);
		exit(1);
	}
	in = calloc(1, sizeof(*in));
	if (in == NULL)
		abort();
	in->len = fread(in->bytes, 1, sizeof(in->bytes), f);
	fclose(f);
	corpus[corpus_count++] = in;
}

static void
read_path(const char *path)
{
	struct dirent *entry;
	struct stat st;
	char name[4096];
	DIR *dir;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
		read_file(path);
		return;
	}
	dir = opendir(path);
	if (dir == NULL) {
		perror(path);
		exit(1);
	}
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		read_file(name);
	}
	closedir(dir);
}

static void
mutate_once(struct input *in, struct rng *r)
{
	size_t at = rng_below(r, (uint32_t)in->len + 1);

	switch (rng_below(r, 5)) {
	case 0:
		in->len = at;
		break;
	case 1:
		if (in->len < sizeof(in->bytes))
			in->bytes[in->len++] = (uint8_t)rng_u32(r);
		break;
	case 2:
		if (at < in->len)
			in->bytes[at] ^= (uint8_t)(1u << rng_below(r, 8));
		break;
	case 3:
		/* lengths and counts like to break at the edges */
		if (at < in->len)
			in->bytes[at] = (uint8_t)(rng_below(r, 2) ? 0 - rng_below(r, 3)
			    : rng_below(r, 3));
		break;
	default:
		if (at < in->len)
			in->bytes[at] = (uint8_t)rng_u32(r);
		break;
	}
}

int
main(int argc, char **argv)
{
	static struct input in;
	struct rng r;
	unsigned i, k;

	signal(SIGABRT, print_input);
	signal(SIGSEGV, print_input);
	for (i = 1; i < (unsigned)argc; i++)
		read_path(argv[i]);
	if (corpus_count == 0) {
		fprintf(stderr, "usage: %s CORPUS...\n", argv[0]);
		return 1;
	}
	for (i = 0; i < corpus_count; i++)
		run(corpus[i]);
	rng_init(&r, 1);
	for (i = 0; i < MUTATIONS; i++) {
		in = *corpus[rng_below(&r, corpus_count)];
		for (k = rng_below(&r, 8) + 1; k > 0; k--)
			mutate_once(&in, &r);
		run(&in);
	}
	printf("%u inputs, %d mutations\n", corpus_count, MUTATIONS);
	for (i = 0; i < corpus_count; i++)
		free(corpus[i]);
	return 0;
}
