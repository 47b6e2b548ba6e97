/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Law 1 for any number of netisrs, any table size and any key: two stacks on the memory cable,
 * connections in both directions, begun on every netisr in turn and served from another one.
 *
 * In each setup every byte arrives, every connection is accepted once, and lives on the netisr
 * that its tuple hashes to and on no other. What is steered is not taken from the stack's word:
 * each frame on the cable is looked at, and must have been sent by the netisr that owns the
 * sender's end (so it leaves through that one's queue); where the cable then delivers it and who
 * owns the receiver's end says whether it has to be steered. The counter must agree to the packet.
 *
 * Arguments: how many random keys, the first seed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <darter/socket.h>

#include "base/toeplitz.h"
#include "link/dev.h"
#include "sim/sim.h"
#include "support/cmocka_all.h"
#include "transport/tcp/tcp_priv.h"
#include "wire/ether.h"
#include "wire/ip4.h"

#define CONNS		48	/* half of them from each side */
#define LISTEN_PORT	7000
#define KEY_TEXT_BYTES	160
#define ROUNDS_MAX	1000
#define FIRST_FEW	16	/* at one half each, as good as never more */

static const unsigned counts[] = { 1, 2, 3, 4, 7, 8 };
static const unsigned tables[] = { 64, 128, 256, 512 };

static unsigned n_keys = 2;
static unsigned first_seed = 1;

struct setup {
	const char *key;	/* as stack.rss_key takes it */
	unsigned netisrs;
	unsigned entries;
	unsigned queues;	/* 0: one a netisr */
	bool cable_hashes;
	bool spreads;		/* the key leads home from every netisr */
	const char *fault;
};

/* ends: 0 has connected, 1 was accepted */
struct conn {
	unsigned from;		/* the side of end 0 */
	unsigned home;		/* netisr held in connect */
	int fd[2];
	uint16_t port;		/* of end 0 */
	uint32_t sent[2];
	uint32_t received[2];
};

struct world {
	struct setup how;
	struct sim m;
	unsigned queues;
	int lfd[2];
	struct conn conn[CONNS];
	unsigned n_accepted;
	uint64_t must_steer[2];	/* packets that a side receives elsewhere than at their owner */
	char log_line[LOG_LINE_MAX_BYTES];
	unsigned n_log_lines;
};

static const uint32_t side_ip[2] = { SIM_A_IP, SIM_B_IP };
static const uint32_t to_send[2] = { 3000, 5000 };

static unsigned
side_of(const struct conn *c, unsigned end)
{
	return end == 0 ? c->from : !c->from;
}

static struct tuple
tuple_of(const struct conn *c, unsigned end)
{
	return (struct tuple){
		.local = ipaddr_v4_cpu(side_ip[side_of(c, end)]),
		.foreign = ipaddr_v4_cpu(side_ip[!side_of(c, end)]),
		.lport = end == 0 ? c->port : LISTEN_PORT,
		.fport = end == 0 ? LISTEN_PORT : c->port,
	};
}

/* ---- what the cable shows ---- */

static void
look_at_frame(void *arg, const struct pkt *frame)
{
	struct world *w = arg;
	struct tuple here, there;
	struct ether_view e;
	struct ip4_view v;
	unsigned side, sender, owner, arrives;

	assert_int_equal(ether_parse(frame->data, frame->len, &e), WIRE_OK);
	if (e.type != ETHER_TYPE_IP4)
		return;
	assert_int_equal(ip4_parse_quote(frame->data + e.hdr_bytes,
	    frame->len - (size_t)e.hdr_bytes, &v), WIRE_OK);
	assert_int_equal(v.proto, IP_PROTO_TCP);
	side = be32_to_cpu(v.src) == SIM_A_IP ? 0 : 1;
	here = (struct tuple){ .local = ipaddr_v4(v.src), .foreign = ipaddr_v4(v.dst),
	    .lport = load_be16(v.payload), .fport = load_be16(v.payload + 2) };
	there = (struct tuple){ .local = here.foreign, .foreign = here.local,
	    .lport = here.fport, .fport = here.lport };
	sender = stack_owner(w->m.s[side], &here)->id;
	owner = stack_owner(w->m.s[!side], &there)->id;
	arrives = (w->how.cable_hashes ? owner : sender) % w->queues;
	w->must_steer[!side] += arrives != owner;
}

static void
keep_line(void *arg, int level, const char *line)
{
	struct world *w = arg;

	(void)level;
	snprintf(w->log_line, sizeof(w->log_line), "%s", line);
	w->n_log_lines++;
}

/* ---- the applications ---- */

static struct sockaddr_in
listen_addr(unsigned side)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(LISTEN_PORT),
		.sin_addr.s_addr = htonl(side_ip[side]),
	};
}

static int
new_socket(void)
{
	int fd = darter_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	return fd;
}

static void
listen_on(struct world *w, unsigned side)
{
	struct sockaddr_in a = listen_addr(side);

	sim_enter(&w->m, side);
	w->lfd[side] = new_socket();
	assert_int_equal(darter_bind(w->lfd[side], (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(darter_listen(w->lfd[side], CONNS), 0);
	sim_leave(&w->m, side);
}

static void
begin(struct world *w, unsigned i)
{
	struct conn *c = &w->conn[i];
	struct sockaddr_in a;

	*c = (struct conn){ .from = i % 2, .home = i / 2 % w->how.netisrs, .fd = { -1, -1 } };
	a = listen_addr(!c->from);
	sim_enter_at(&w->m, c->from, c->home);
	c->fd[0] = new_socket();
	if (darter_connect(c->fd[0], (struct sockaddr *)&a, sizeof(a)) != 0 && errno != EINPROGRESS)
		fail_msg("connect from netisr %u: %s", c->home, strerror(errno));
	sim_leave_at(&w->m, c->from, c->home);
}

/* The port that end 0 was given. */
static void
learn_port(struct world *w, struct conn *c)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	int error = 0;

	sim_enter_at(&w->m, c->from, c->home);
	len = sizeof(error);
	assert_int_equal(darter_getsockopt(c->fd[0], SOL_SOCKET, SO_ERROR, &error, &len), 0);
	if (error != 0)
		fail_msg("connect from netisr %u: %s", c->home, strerror(error));
	len = sizeof(a);
	assert_int_equal(darter_getsockname(c->fd[0], (struct sockaddr *)&a, &len), 0);
	c->port = ntohs(a.sin_port);
	sim_leave_at(&w->m, c->from, c->home);
}

static struct conn *
find_conn(struct world *w, unsigned accepting_side, uint16_t port)
{
	for (unsigned i = 0; i < CONNS; i++) {
		if (w->conn[i].from != accepting_side && w->conn[i].port == port)
			return &w->conn[i];
	}
	fail_msg("accepted a connection from port %u that nobody has made", port);
	return NULL;
}

/* All that wait, by a thread that holds this netisr. */
static void
accept_at(struct world *w, unsigned side, unsigned netisr)
{
	struct sockaddr_in a;
	struct conn *c;
	socklen_t len = sizeof(a);
	int l = w->lfd[side], fd;

	sim_enter_at(&w->m, side, netisr);
	while ((fd = darter_accept4(l, (struct sockaddr *)&a, &len, SOCK_NONBLOCK)) >= 0) {
		c = find_conn(w, side, ntohs(a.sin_port));
		if (c->fd[1] >= 0)
			fail_msg("the connection from port %u is accepted twice", c->port);
		c->fd[1] = fd;
		w->n_accepted++;
	}
	assert_int_equal(errno, EAGAIN);
	sim_leave_at(&w->m, side, netisr);
}

static void
connect_all(struct world *w)
{
	unsigned i, side;

	for (i = 0; i < CONNS; i++)
		begin(w, i);
	sim_run(&w->m);
	for (i = 0; i < CONNS; i++)
		learn_port(w, &w->conn[i]);
	for (i = 0; i < w->how.netisrs; i++) {
		for (side = 0; side < 2; side++)
			accept_at(w, side, i);
		sim_run(&w->m);
	}
	assert_int_equal(w->n_accepted, CONNS);
}

/* ---- where connections live ---- */

static void
check_place(struct world *w, const struct conn *c, unsigned end)
{
	struct darter_stack *s = w->m.s[side_of(c, end)];
	struct tuple t = tuple_of(c, end);
	unsigned owner = stack_owner(s, &t)->id, i;

	if (end == 0 && w->how.spreads && owner != c->home)
		fail_msg("a connect on netisr %u has drawn a port of netisr %u", c->home, owner);
	for (i = 0; i < s->n_netisrs; i++) {
		struct netisr *n = s->netisr[i];
		bool is_here;

		assert_true(netisr_take(n));
		is_here = tcp_table_lookup(&n->tcp->table, &t, tcp_hash(n, &t)) != NULL;
		netisr_give(n);
		if (is_here != (i == owner))
			fail_msg("port %u, end %u: owner is netisr %u, %s on %u", c->port, end,
			    owner, is_here ? "but it lives" : "and it is not", i);
	}
}

/* ---- data ---- */

static uint8_t
byte_at(const struct conn *c, unsigned end, uint32_t pos)
{
	return (uint8_t)((pos + 1) * 2654435761u >> 13 ^ c->port >> end ^ end * 91);
}

static bool
act(struct world *w, struct conn *c, unsigned end)
{
	/* served by a thread that need not hold the connection's own netisr */
	unsigned side = side_of(c, end), at = (c->home + end) % w->how.netisrs;
	uint8_t buf[8192];
	bool did = false;
	uint32_t i;
	ssize_t rc;

	sim_enter_at(&w->m, side, at);
	for (i = c->sent[end]; i < to_send[end]; i++)
		buf[i - c->sent[end]] = byte_at(c, end, i);
	if (c->sent[end] < to_send[end]) {
		rc = darter_send(c->fd[end], buf, to_send[end] - c->sent[end], MSG_NOSIGNAL);
		assert_true(rc > 0 || errno == EAGAIN);
		c->sent[end] += rc > 0 ? (uint32_t)rc : 0;
		did = rc > 0;
	}
	while ((rc = darter_recv(c->fd[end], buf, sizeof(buf), 0)) > 0) {
		for (i = 0; i < (uint32_t)rc; i++)
			assert_int_equal(buf[i], byte_at(c, !end, c->received[end] + i));
		c->received[end] += (uint32_t)rc;
		did = true;
	}
	assert_true(rc < 0 && errno == EAGAIN);
	sim_leave_at(&w->m, side, at);
	return did;
}

static void
transfer_all(struct world *w)
{
	unsigned rounds = 0, i;
	bool did = true;

	while (did) {
		did = false;
		for (i = 0; i < 2 * CONNS; i++)
			did |= act(w, &w->conn[i / 2], i % 2);
		sim_run(&w->m);
		assert_true(++rounds < ROUNDS_MAX);
	}
	for (i = 0; i < 2 * CONNS; i++)
		assert_int_equal(w->conn[i / 2].received[i % 2], to_send[!(i % 2)]);
}

static void
close_all(struct world *w)
{
	unsigned end, i, at;
	uint8_t byte;

	for (end = 0; end < 2; end++) {
		for (i = 0; i < CONNS; i++) {
			struct conn *c = &w->conn[i];

			at = (c->home + i) % w->how.netisrs;
			sim_enter_at(&w->m, side_of(c, end), at);
			if (end == 1)
				assert_int_equal(darter_recv(c->fd[1], &byte, 1, 0), 0);
			assert_int_equal(darter_close(c->fd[end]), 0);
			sim_leave_at(&w->m, side_of(c, end), at);
		}
		sim_run(&w->m);
	}
	for (i = 0; i < 2; i++) {
		sim_enter(&w->m, i);
		assert_int_equal(darter_close(w->lfd[i]), 0);
		sim_leave(&w->m, i);
	}
}

/* ---- a setup ---- */

static void
world_init(struct world *w, const struct setup *how)
{
	char key[KEY_TEXT_BYTES], entries[40];
	unsigned side;

	memset(w, 0, sizeof(*w));
	w->how = *how;
	w->queues = how->queues != 0 ? how->queues : how->netisrs;
	snprintf(key, sizeof(key), "stack.rss_key=%s", how->key);
	snprintf(entries, sizeof(entries), "stack.rss_entries=%u", how->entries);
	sim_init(&w->m, &(struct sim_opts){
		.seed = first_seed + how->netisrs,
		.netisrs = how->netisrs,
		.queues = w->queues,
		.packets = 4096,
		.cable = how->cable_hashes ? "rss=on" : NULL,
		.fault = how->fault,
		/* all SYNs may wait for the first ARP answer */
		.sysctls = { "net.inet.tcp.msl_ms=1000", "net.link.neigh.queue_pkts=64" },
		.overrides = { key, entries },
	});
	w->m.on_frame = look_at_frame;
	w->m.on_frame_arg = w;
	for (side = 0; side < 2; side++)
		w->m.s[side]->log = (struct log_sink){ .write = keep_line, .arg = w,
		    .max_level = LOG_LVL_WARN };
}

static void
check_counters(struct world *w)
{
	unsigned side;

	for (side = 0; side < 2; side++) {
		assert_int_equal(sim_counter(&w->m, side, CTR_steered_pkts), w->must_steer[side]);
		assert_int_equal(sim_counter(&w->m, side, CTR_drop_steer_full), 0);
		assert_int_equal(sim_counter(&w->m, side, CTR_tcp_accepts), CONNS / 2);
		assert_int_equal(sim_counter(&w->m, side, CTR_tcp_resets_sent), 0);
		assert_int_equal(sim_counter(&w->m, side, CTR_tcp_retransmits), 0);
	}
}

/* All that a setup must do; the world is still there afterwards. */
static void
run_world(struct world *w, const struct setup *how)
{
	unsigned i;

	world_init(w, how);
	listen_on(w, 0);
	listen_on(w, 1);
	connect_all(w);
	for (i = 0; i < 2 * CONNS; i++)
		check_place(w, &w->conn[i / 2], i % 2);
	transfer_all(w);
	close_all(w);
	sim_advance(&w->m, 10 * US_PER_SEC);
	sim_expect_empty(&w->m);
	check_counters(w);
}

static void
run_setup(const struct setup *how)
{
	static struct world w;

	fprintf(stderr, "%u netisrs, %u entries, %u queues, %s, key %.20s\n", how->netisrs,
	    how->entries, how->queues, how->cable_hashes ? "hashed" : "not hashed", how->key);
	run_world(&w, how);
	assert_int_equal(w.n_log_lines, 0);
	sim_fini(&w.m);
}

/* Every number of netisrs and table size, the cable hashing and not. */
static void
run_key(const char *key, bool spreads)
{
	for (unsigned i = 0; i < ARRAY_LEN(counts); i++) {
		for (unsigned k = 0; k < 2 * ARRAY_LEN(tables); k++)
			run_setup(&(struct setup){ .key = key, .netisrs = counts[i],
			    .entries = tables[k / 2], .cable_hashes = k % 2, .spreads = spreads });
	}
}

static void
hex_of(const uint8_t *key, unsigned bytes, char text[KEY_TEXT_BYTES])
{
	for (unsigned i = 0; i < bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", key[i]);
}

static void
symmetric_key_serves_any_number_of_netisrs(void **state)
{
	(void)state;
	run_key("symmetric", true);
}

static void
asymmetric_key_serves_any_number_of_netisrs(void **state)
{
	(void)state;
	run_key("microsoft", true);
}

static void
random_keys_serve_any_number_of_netisrs(void **state)
{
	char text[KEY_TEXT_BYTES];
	uint8_t key[TOEPLITZ_KEY_MAX_BYTES];
	struct rng r;

	(void)state;
	for (unsigned seed = first_seed; seed < first_seed + n_keys; seed++) {
		unsigned bytes = seed % 2 ? TOEPLITZ_KEY_MIN_BYTES : TOEPLITZ_KEY_MAX_BYTES;

		rng_init(&r, seed);
		for (unsigned i = 0; i < bytes; i++)
			key[i] = (uint8_t)rng_u64(&r);
		hex_of(key, bytes, text);
		run_key(text, true);
	}
}

/*
 * With such keys some netisrs own nothing, or nothing towards a given host: no port leads home from
 * there, the connection is carried by another netisr.
 */
static void
keys_of_deficient_rank_still_connect_and_carry(void **state)
{
	char text[KEY_TEXT_BYTES];
	uint8_t key[TOEPLITZ_KEY_MIN_BYTES];

	(void)state;
	/* everything hashes to 0 */
	memset(key, 0, sizeof(key));
	hex_of(key, sizeof(key), text);
	run_key(text, false);
	/* four hashes in all */
	memset(key, 0x55, sizeof(key));
	hex_of(key, sizeof(key), text);
	run_key(text, false);
	/* the destination port, our own when the answer comes, does not count */
	memcpy(key, toeplitz_key_microsoft, sizeof(key));
	memset(key + 10, 0, 6);
	hex_of(key, sizeof(key), text);
	run_key(text, false);
}

/* Netisrs beyond the queues get all their frames by steering, hashed or not. */
static void
device_with_few_queues_serves_all_netisrs(void **state)
{
	static const struct { unsigned netisrs, queues; } cases[] = {
		{ 2, 1 }, { 3, 2 }, { 4, 1 }, { 7, 3 }, { 8, 2 }, { 8, 7 },
	};

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_LEN(cases); i++)
		run_setup(&(struct setup){ .key = "microsoft", .netisrs = cases[i / 2].netisrs,
		    .queues = cases[i / 2].queues, .entries = 128, .cable_hashes = i % 2,
		    .spreads = true });
}

/*
 * The device claims the stack's key; its hashes are others. The first wrong one gives it away, and
 * software takes over with that very packet: nothing goes astray.
 */
static void
device_whose_hashes_are_wrong_is_found_reported_and_steered(void **state)
{
	static const char *const faults[] = { "badhash=1", "badhash=0.5" };
	static struct world w;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(counts) * ARRAY_LEN(faults); i++) {
		unsigned netisrs = counts[i / 2], side;
		uint64_t by_device;

		run_world(&w, &(struct setup){ .key = "microsoft", .netisrs = netisrs,
		    .entries = 128, .spreads = true, .fault = faults[i % 2] });
		for (side = 0; side < 2; side++) {
			struct dev *d = dev_find(w.m.s[side], "cable");

			/* one netisr asks for no owner: nothing to find out */
			assert_int_equal(dev_hashes(d), netisrs == 1);
			assert_int_equal(sim_counter(&w.m, side, CTR_rss_hash_wrong), netisrs > 1);
			/* the few before the first wrong one were steered by the device's hash */
			by_device = sim_counter(&w.m, side, CTR_steered_reta);
			assert_true(by_device <= i % 2 * FIRST_FEW);
			assert_int_equal(sim_counter(&w.m, side, CTR_steered_no_rss) + by_device,
			    w.must_steer[side]);
		}
		assert_int_equal(w.n_log_lines, netisrs > 1 ? 2 : 0);
		if (netisrs > 1)
			assert_non_null(strstr(w.log_line, "port cable: the device's hash"));
		sim_fini(&w.m);
	}
}

/* The same device without the fault is believed to the end: its hashes do the steering. */
static void
device_whose_hashes_are_right_is_believed(void **state)
{
	static struct world w;

	(void)state;
	run_world(&w, &(struct setup){ .key = "microsoft", .netisrs = 4, .entries = 128,
	    .spreads = true, .fault = "badhash=0" });
	for (unsigned side = 0; side < 2; side++) {
		assert_true(dev_hashes(dev_find(w.m.s[side], "cable")));
		assert_int_equal(sim_counter(&w.m, side, CTR_rss_hash_wrong), 0);
		assert_true(w.must_steer[side] > 0);
		assert_int_equal(sim_counter(&w.m, side, CTR_steered_reta), w.must_steer[side]);
	}
	assert_int_equal(w.n_log_lines, 0);
	sim_fini(&w.m);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symmetric_key_serves_any_number_of_netisrs),
		cmocka_unit_test(asymmetric_key_serves_any_number_of_netisrs),
		cmocka_unit_test(random_keys_serve_any_number_of_netisrs),
		cmocka_unit_test(keys_of_deficient_rank_still_connect_and_carry),
		cmocka_unit_test(device_with_few_queues_serves_all_netisrs),
		cmocka_unit_test(device_whose_hashes_are_wrong_is_found_reported_and_steered),
		cmocka_unit_test(device_whose_hashes_are_right_is_believed),
	};

	if (argc > 1)
		n_keys = (unsigned)atoi(argv[1]);
	if (argc > 2)
		first_seed = (unsigned)atoi(argv[2]);
	return cmocka_run_group_tests_name("sim netisrs", tests, NULL, NULL);
}
