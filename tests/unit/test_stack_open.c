/* SPDX-License-Identifier: BSD-2-Clause */
/* api/stack_open.c, api/darter.c: what can go wrong at the start, several stacks, and the end. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/time.h>

#include <darter/capture.h>

#include "unit/both_nets.h"

static struct darter_stack *
open_with(const char *a, const char *b, char *err)
{
	const char *over[] = { a, b, NULL };
	struct darter_options o = { .size = sizeof(o), .overrides = over };

	return darter_open(&o, err, DARTER_ERR_MAX);
}

static void
refuses(const char *assignment, const char *named)
{
	char err[DARTER_ERR_MAX];

	assert_null(open_with(assignment, NULL, err));
	if (strstr(err, named) == NULL)
		fprintf(stderr, "%s\n", err);
	assert_non_null(strstr(err, named));
	assert_null(strchr(err, '\n'));
	assert_null(darter_stack_current());
}

static void
mistake_is_named_and_leaves_nothing(void **state)
{
	char err[DARTER_ERR_MAX];
	struct darter_options o = { .size = 3 };

	(void)state;
	refuses("stack.netisrs=0", "netisrs");
	refuses("stack.nonsense=1", "nonsense");
	refuses("sysctl.net.no.such=1", "net.no.such");
	refuses("sysctl.net.isr.spin_us=999999", "net.isr.spin_us");
	refuses("port.x.device=pair:", "pair");
	assert_null(darter_open(&o, err, sizeof(err)));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(err, "size"));
	o.size = sizeof(o);
	o.conf_file = "/nonexistent/darter.conf";
	assert_null(darter_open(&o, err, sizeof(err)));
	assert_int_equal(errno, ENOENT);
	assert_null(darter_open(&o, NULL, 0));
	assert_int_equal(darter_socket(AF_INET, SOCK_STREAM, 0), -1);
	assert_int_equal(errno, ENETDOWN);
	assert_int_equal(darter_counter_get(NULL, "sockets", NULL), -ENETDOWN);
}

static void
environment_names_the_file(void **state)
{
	char path[] = "/tmp/darter-test-XXXXXX", err[DARTER_ERR_MAX], value[32];
	static const char text[] = "[stack]\nnetisrs=3\n[sysctl]\nkern.ipc.somaxconn=9\n";
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	setenv("DARTER_CONF", path, 1);
	assert_int_equal(darter_init(err, sizeof(err)), 0);
	assert_int_equal(darter_init(err, sizeof(err)), 0);
	assert_int_equal(darter_netisr_count(NULL), 3);
	assert_int_equal(darter_sysctl_get(NULL, "kern.ipc.somaxconn", value, sizeof(value)), 0);
	assert_string_equal(value, "9");
	darter_stack_close(darter_stack_current());
	assert_null(darter_stack_current());
	unsetenv("DARTER_CONF");
	unlink(path);
}

static void
knobs_are_set_by_name_within_their_range(void **state)
{
	char err[DARTER_ERR_MAX], value[32];
	struct darter_stack *s = open_with(NULL, NULL, err);

	(void)state;
	assert_int_equal(darter_sysctl_set(s, "kern.ipc.rand_initport", "random", err, sizeof(err)),
	    0);
	assert_int_equal(darter_sysctl_get(s, "kern.ipc.rand_initport", value, sizeof(value)), 0);
	assert_string_equal(value, "random");
	assert_int_equal(darter_sysctl_set(s, "kern.ipc.somaxconn", "0", err, sizeof(err)),
	    -ERANGE);
	assert_int_equal(darter_sysctl_set(s, "kern.ipc.somaxconn", "x", NULL, 0), -EINVAL);
	assert_int_equal(darter_sysctl_set(s, "no.such", "1", err, sizeof(err)), -ENOENT);
	assert_int_equal(darter_sysctl_get(s, "no.such", value, sizeof(value)), -ENOENT);
	darter_stack_close(s);
}

static void
descriptors_start_at_one_base_for_all_stacks(void **state)
{
	char err[DARTER_ERR_MAX];
	struct darter_stack *s = open_with(NULL, NULL, err);

	(void)state;
	assert_non_null(s);
	assert_null(open_with("stack.fd_base=5000", NULL, err));
	assert_non_null(strstr(err, "fd_base"));
	darter_stack_close(s);
}

/* Two hosts in this process, and a cable. */
static void
open_two(struct darter_stack *s[2])
{
	char err[DARTER_ERR_MAX];

	s[0] = open_with("port.c.device=pair:test_stack_open", "port.c.addr=10.9.0.1/24", err);
	s[1] = open_with("port.c.device=pair:test_stack_open", "port.c.addr=10.9.0.2/24", err);
	assert_non_null(s[0]);
	assert_non_null(s[1]);
}

static void
thread_uses_the_stack_it_chose(void **state)
{
	struct darter_stack *s[2];
	struct sockaddr_in a = loopback(0);
	int fd;

	(void)state;
	open_two(s);
	a.sin_addr.s_addr = htonl(0x0a090002);
	assert_ptr_equal(darter_stack_current(), s[0]);
	fd = darter_socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(darter_bind(fd, (struct sockaddr *)&a, sizeof(a)), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
	darter_close(fd);
	darter_stack_use(s[1]);
	fd = darter_socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(darter_bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	darter_close(fd);
	assert_int_equal(darter_addr_add(s[1], "c", "10.9.0.3/24"), 0);
	assert_int_equal(darter_addr_add(s[1], "nowhere", "10.9.0.3/24"), -ENODEV);
	assert_int_equal(darter_addr_add(s[1], "c", "10.9.0"), -EINVAL);
	a.sin_addr.s_addr = htonl(0x0a090003);
	fd = darter_socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(darter_bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	darter_close(fd);
	darter_stack_close(s[1]);
	assert_ptr_equal(darter_stack_current(), s[0]);	/* the choice is gone */
	darter_stack_close(s[0]);
}

struct reader {
	int fd;
	size_t got;
	ssize_t end;
};

static void *
read_slowly(void *arg)
{
	struct reader *r = arg;
	static char buf[65536];

	usleep(50000);
	while ((r->end = darter_recv(r->fd, buf, sizeof(buf), 0)) > 0)
		r->got += (size_t)r->end;
	return NULL;
}

/* send, close, and the stack's end at once: every byte and the FIN arrive all the same. */
static void
closing_a_stack_delivers_what_was_written(void **state)
{
	enum { BYTES = 200000 };
	struct sockaddr_in a = loopback(7000);
	struct darter_stack *s[2];
	struct reader r = { .fd = -1 };
	static char data[BYTES];
	pthread_t t;
	int l, c;

	(void)state;
	open_two(s);
	a.sin_addr.s_addr = htonl(0x0a090002);
	darter_stack_use(s[1]);
	l = darter_socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(darter_bind(l, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(l, 1), 0);
	darter_stack_use(s[0]);
	c = darter_socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(darter_connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
	r.fd = darter_accept(l, NULL, NULL);
	assert_true(r.fd >= 0);
	assert_int_equal(pthread_create(&t, NULL, read_slowly, &r), 0);
	assert_int_equal(darter_send(c, data, BYTES, 0), BYTES);
	darter_close(c);
	darter_stack_close(s[0]);
	pthread_join(t, NULL);
	assert_int_equal(r.got, BYTES);
	assert_int_equal(r.end, 0);
	darter_close(r.fd);
	darter_close(l);
	darter_stack_close(s[1]);
	assert_int_equal(darter_fd_count(), 0);
}

static void
closing_a_stack_does_not_wait_for_ever(void **state)
{
	struct sockaddr_in a = loopback(7000);
	struct darter_stack *s[2];
	struct timeval t0, t1;
	static char data[65536];
	int l, c, d;

	(void)state;
	open_two(s);
	a.sin_addr.s_addr = htonl(0x0a090002);
	darter_stack_use(s[1]);
	l = darter_socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(darter_bind(l, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(l, 1), 0);
	darter_stack_use(s[0]);
	c = darter_socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(darter_connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
	d = darter_accept(l, NULL, NULL);
	set_nonblock(&darter_net, c);
	while (darter_send(c, data, sizeof(data), 0) > 0)
		;
	gettimeofday(&t0, NULL);
	darter_stack_close(s[0]);	/* nobody reads: exit_linger_ms, then reset */
	gettimeofday(&t1, NULL);
	assert_in_range((t1.tv_sec - t0.tv_sec) * 1000 + (t1.tv_usec - t0.tv_usec) / 1000, 900,
	    3000);
	darter_close(d);
	darter_close(l);
	darter_stack_close(s[1]);
}

static void
capture_is_started_and_stopped_by_name(void **state)
{
	char path[] = "/tmp/darter-test-XXXXXX", err[DARTER_ERR_MAX];
	struct darter_stack *s = open_with(NULL, NULL, err);
	int file = mkstemp(path), u = bound(&darter_net, SOCK_DGRAM);

	(void)state;
	assert_int_equal(darter_capture_stop(s, "lo"), -ENOENT);
	assert_int_equal(darter_capture_start(s, "nowhere", path, err, sizeof(err)), -ENODEV);
	assert_non_null(strstr(err, "nowhere"));
	assert_int_equal(darter_capture_start(s, "lo", path, NULL, 0), 0);
	assert_int_equal(darter_capture_start(s, "lo", path, NULL, 0), -EBUSY);
	assert_int_equal(connect_to(&darter_net, u, port_of(&darter_net, u)), 0);
	assert_int_equal(darter_send(u, "0123456789", 10, 0), 10);
	await(&darter_net, u, POLLIN);
	assert_int_equal(darter_capture_stop(s, "lo"), 0);
	/* file header, packet header, IP, UDP, data */
	assert_true(lseek(file, 0, SEEK_END) >= 24 + 16 + 20 + 8 + 10);
	close(file);
	unlink(path);
	darter_close(u);
	darter_stack_close(s);
}

/* Without background threads the attached one sleeps on timers and doorbells of its own. */
static void
attached_thread_of_a_stack_without_others_wakes_in_time(void **state)
{
	struct timeval tv = { .tv_usec = 20000 };
	char err[DARTER_ERR_MAX], byte;
	struct darter_stack *s = open_with("stack.threads=manual", NULL, err);
	int fd;

	(void)state;
	assert_non_null(s);
	assert_int_equal(darter_attach(s, 0), 0);
	fd = darter_socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(darter_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(darter_recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(darter_close(fd), 0);
	assert_int_equal(darter_detach(), 0);
	darter_stack_close(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistake_is_named_and_leaves_nothing),
		cmocka_unit_test(environment_names_the_file),
		cmocka_unit_test(knobs_are_set_by_name_within_their_range),
		cmocka_unit_test(descriptors_start_at_one_base_for_all_stacks),
		cmocka_unit_test(thread_uses_the_stack_it_chose),
		cmocka_unit_test(closing_a_stack_delivers_what_was_written),
		cmocka_unit_test(closing_a_stack_does_not_wait_for_ever),
		cmocka_unit_test(capture_is_started_and_stopped_by_name),
		cmocka_unit_test(attached_thread_of_a_stack_without_others_wakes_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
