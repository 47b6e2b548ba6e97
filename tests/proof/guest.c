/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DPDK's EAL and the process around it: what an application sees of an EAL that the library brings
 * up (nothing: affinity, signal mask and the end of main() are as before), and an application that
 * has EAL up already, whose it stays: its log stream, its lcores, its memory, also when the stack
 * is gone.
 *
 * EAL starts once a process, so each test is a child; its exit status says what it saw. Memory is
 * ordinary pages, no device is looked for: no rights are needed.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "unit/both_nets.h"

#define BYTES 100000

/* Of <rte_eal.h>, <rte_log.h>, <rte_lcore.h> and <rte_malloc.h>, which drag in half of DPDK. */
int rte_eal_init(int argc, char **argv);
FILE *rte_log_get_stream(void);
int rte_openlog_stream(FILE *f);
unsigned rte_lcore_count(void);
int rte_eal_cleanup(void);
struct rte_mempool;
struct rte_mempool *rte_mempool_create_empty(const char *name, unsigned n, unsigned elt_size,
    unsigned cache_size, unsigned private_data_size, int socket_id, unsigned flags);
void rte_mempool_free(struct rte_mempool *mp);

#define EXPECT(cond, code) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			_exit(code); \
		} \
	} while (0)

static unsigned log_lines;

static void
count_line(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
	__atomic_fetch_add(&log_lines, 1, __ATOMIC_RELAXED);
}

static struct darter_stack *
open_on_dpdk(void)
{
	const char *over[] = { "stack.netisrs=2", "stack.memory=dpdk", "stack.packets=2048",
		"eal.hugepages=no", "stack.exit_linger_ms=100", NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over, .log = count_line };
	char err[DARTER_ERR_MAX] = "";
	struct darter_stack *s = darter_open(&o, err, sizeof(err));

	if (s == NULL)
		fprintf(stderr, "%s\n", err);
	return s;
}

/* A stream through the stack's own loopback, in packets of DPDK's. */
static void
use_stack(void)
{
	static char out[BYTES], in[BYTES];
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(7000) };
	int l = darter_socket(AF_INET, SOCK_STREAM, 0);
	int c = darter_socket(AF_INET, SOCK_STREAM, 0), d;

	memset(out, 'x', sizeof(out));
	EXPECT(darter_bind(l, (struct sockaddr *)&a, sizeof(a)) == 0, 30);
	EXPECT(darter_listen(l, 1) == 0, 31);
	EXPECT(darter_connect(c, (struct sockaddr *)&a, sizeof(a)) == 0, 32);
	d = darter_accept4(l, NULL, NULL, 0);
	EXPECT(d >= 0, 33);
	EXPECT(darter_send(c, out, BYTES, 0) == BYTES, 34);
	EXPECT(darter_recv(d, in, BYTES, MSG_WAITALL) == BYTES, 35);
	EXPECT(memcmp(in, out, BYTES) == 0, 36);
	darter_close(c);
	darter_close(d);
	darter_close(l);
}

struct surroundings {
	cpu_set_t cpus;
	sigset_t mask;
	int n_threads_cpus;	/* CPUs that a thread made now may use */
};

static void *
count_cpus(void *arg)
{
	cpu_set_t set;

	(void)arg;
	EXPECT(sched_getaffinity(0, sizeof(set), &set) == 0, 40);
	return (void *)(intptr_t)CPU_COUNT(&set);
}

static struct surroundings
look_around(void)
{
	struct surroundings s;
	pthread_t t;
	void *count;

	memset(&s, 0, sizeof(s));
	EXPECT(sched_getaffinity(0, sizeof(s.cpus), &s.cpus) == 0, 41);
	EXPECT(pthread_sigmask(SIG_SETMASK, NULL, &s.mask) == 0, 42);
	EXPECT(pthread_create(&t, NULL, count_cpus, NULL) == 0, 43);
	pthread_join(t, &count);
	s.n_threads_cpus = (int)(intptr_t)count;
	return s;
}

static void
expect_same(const struct surroundings *a, int code)
{
	struct surroundings b = look_around();
	int sig;

	EXPECT(CPU_EQUAL(&a->cpus, &b.cpus), code);
	EXPECT(a->n_threads_cpus == b.n_threads_cpus, code + 1);
	for (sig = 1; sig < SIGRTMIN; sig++)
		EXPECT(sigismember(&a->mask, sig) == sigismember(&b.mask, sig), code + 2);
}

/* ---- children ---- */

static void
library_brings_eal_up(void)
{
	struct surroundings before = look_around();
	struct darter_stack *s = open_on_dpdk();
	unsigned i;

	EXPECT(s != NULL, 10);
	expect_same(&before, 50);
	use_stack();
	expect_same(&before, 53);
	darter_stack_close(s);
	expect_same(&before, 56);
	/* a second life in the same process, on the EAL that is up */
	for (i = 0; i < 2; i++) {
		s = open_on_dpdk();
		EXPECT(s != NULL, 11);
		use_stack();
		darter_stack_close(s);
	}
	expect_same(&before, 59);
	exit(0);
}

static void
application_has_eal_up(void)
{
	char *argv[] = { "guest", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"-m", "64", "-l", "0", "--log-level", "error", NULL };
	FILE *log = fopen("/dev/null", "w");
	struct surroundings before;
	struct rte_mempool *mp;
	struct darter_stack *s;
	unsigned lcores, i;

	EXPECT(log != NULL && rte_openlog_stream(log) == 0, 20);
	EXPECT(rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv) >= 0, 21);
	before = look_around();
	lcores = rte_lcore_count();
	mp = rte_mempool_create_empty("mine", 64, 64, 0, 0, -1, 0);
	EXPECT(mp != NULL, 22);
	for (i = 0; i < 2; i++) {
		s = open_on_dpdk();
		EXPECT(s != NULL, 23);
		EXPECT(rte_log_get_stream() == log, 24);
		expect_same(&before, 62);
		use_stack();
		darter_stack_close(s);
		expect_same(&before, 65);
		/* not cleaned up: it is as it was */
		EXPECT(rte_log_get_stream() == log, 25);
		EXPECT(rte_lcore_count() == lcores, 26);
	}
	rte_mempool_free(mp);
	mp = rte_mempool_create_empty("mine", 64, 64, 0, 0, -1, 0);
	EXPECT(mp != NULL, 27);
	rte_mempool_free(mp);
	EXPECT(rte_eal_cleanup() == 0, 28);
	exit(0);
}

/* ---- tests ---- */

static void
run_child(void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		fn();
		_exit(9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
eal_that_the_library_starts_changes_nothing_around_it(void **state)
{
	(void)state;
	run_child(library_brings_eal_up);
}

static void
eal_of_the_application_is_used_and_left_alone(void **state)
{
	(void)state;
	run_child(application_has_eal_up);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eal_that_the_library_starts_changes_nothing_around_it),
		cmocka_unit_test(eal_of_the_application_is_used_and_left_alone),
	};

	return cmocka_run_group_tests_name("proof guest", tests, NULL, NULL);
}
