/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DPDK ports as devices: anything DPDK has a driver for, named by a vdev string
 * ("net_tap0,iface=dtap0") or a PCI address. The string goes to the driver as it is.
 *
 * Set-up and tear-down run on threads of their own (eal_run), so that a driver's threads and
 * signals are not the application's. Offloads that the driver lists and darter can use are switched
 * on; what is not there the link layer does in software. Receive hashing is set to the stack's key
 * and table and believed only when read back (rss_dpdk.c). rte_flow is never used.
 *
 * Receive interrupts: net_tap's descriptors are readable while frames wait. A NIC's are eventfds
 * that must be armed: the first empty burst arms, then looks once more (a frame between the two
 * would have raised nothing), and the first burst with frames disarms. Other drivers have no
 * descriptor that exists before the peer comes; they are polled (DEV_CAP_POLL_ONLY).
 *
 * net_tap: its kernel side has the MAC of the port, and a host drops frames that claim to come from
 * itself, so ours differs in one bit. Its receive function is made to look by calling its signal
 * handler (dev_host.c). Its checksums of TCP are not used: it sends 0 as 0xffff, which is UDP's
 * rule (RFC 768) and a wrong TCP checksum to who compares (one segment in 65536). Nor is its TSO,
 * which rests on them; both are software there, as ours are (offload.c).
 *
 * Queue q belongs to the holder of netisr q; everything else is set-up time.
 */
#include "link/dev.h"

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "link/dev_host.h"
#include "link/rss.h"
#include "runtime/config.h"
#include "runtime/eal.h"
#include "runtime/netisr.h"
#include "runtime/pkt.h"
#include "runtime/pkt_dpdk.h"
#include "runtime/stack.h"

/* DPDK last: its container_of gives way to ours. */
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define DESC_MAX 512 /* a direction of a queue; enough for 10 Gbit/s at 30 us a round */
#define DESC_MIN 64
#define TX_CHUNK_PKTS 64
#define LINK_WAIT_MS 3000
#define STATS_EVERY_US US_PER_SEC
#define L2_BYTES_MAX (RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN + 4)

struct queue {
	int fd;        /* to sleep on, -1 none */
	bool is_armed; /* interrupt on; only with can_arm */
} CACHE_ALIGNED;

struct dpdk_dev {
	uint16_t port;
	bool is_tap; /* net_tap or net_tun */
	bool is_pci;
	bool is_plugged; /* to be unplugged at the end */
	bool is_started;
	bool can_arm;      /* descriptors are eventfds of interrupts */
	bool must_prepare; /* offloads were switched on */
	void (*kick)(int); /* net_tap's handler */
	int kick_signal;
	uint32_t reserved_pkts;
	uint16_t rx_desc;
	uint16_t tx_desc;
	struct rte_eth_dev_info info;
	struct rss_plan rss;
	struct time next_stats; /* queue 0's holder */
	uint64_t lost_pkts;
	struct queue queue[NETISR_MAX];
};

/* Ports in use by stacks of this process; an application's own EAL may have ports that nobody uses
 * yet. */
static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static bool port_taken[RTE_MAX_ETHPORTS];

/* Arguments of a control call through eal_run. */
struct control {
	struct dev *d;
	const struct config_port *cfg;
	char *err;
	size_t err_size;
};

static PRINTF_LIKE(3, 4) int
refuse(const struct control *c, int rc, const char *fmt, ...)
{
	int n = snprintf(c->err, c->err_size, "[port.%s] %s: ", c->d->name, c->cfg->device);
	va_list ap;

	if (n < 0 || (size_t)n >= c->err_size)
		return rc;
	va_start(ap, fmt);
	vsnprintf(c->err + n, c->err_size - (size_t)n, fmt, ap);
	va_end(ap);
	return rc;
}

/* A driver call failed: its first message if it left one, and what to do. */
static int
refuse_driver(const struct control *c, int rc, const char *what)
{
	char why[160];
	const char *fix;

	eal_log_first(why, sizeof(why));
	fix = dev_host_fix(c->cfg->device, rc, why);
	return refuse(c, dev_host_errno(rc, why), "%s (%s); %s", what,
	    why[0] != '\0' ? why : rte_strerror(-rc), fix);
}

/* ---- finding the port ---- */

/* DPDK's name of the device: without arguments, a PCI address with its domain. */
static void
port_name(const char *device, char *buf, size_t size)
{
	int len = (int)strcspn(device, ",");
	const char *domain = config_device_is_pci(device) && len < 12 ? "0000:" : "";

	snprintf(buf, size, "%s%.*s", domain, len, device);
}

static int
take_port(const struct control *c, uint16_t port)
{
	bool was_taken;

	pthread_mutex_lock(&ports_lock);
	was_taken = port_taken[port];
	port_taken[port] = true;
	pthread_mutex_unlock(&ports_lock);
	if (was_taken)
		return refuse(c, -EBUSY,
		    "another stack of this process has it; give each stack a device of its own");
	return 0;
}

static void
give_port(uint16_t port)
{
	pthread_mutex_lock(&ports_lock);
	port_taken[port] = false;
	pthread_mutex_unlock(&ports_lock);
}

static int
plug(const struct control *c, struct dpdk_dev *dd)
{
	char name[RTE_ETH_NAME_MAX_LEN], why[192];
	int rc;

	port_name(c->cfg->device, name, sizeof(name));
	if (rte_eth_dev_get_port_by_name(name, &dd->port) == 0)
		return take_port(c, dd->port);
	if (dd->is_pci && !eal_has_pci())
		return refuse(c, -ENODEV,
		    "DPDK was started in this process without PCI; open the stack with the PCI "
		    "port first");
	rc = dev_host_check(c->cfg->device, why, sizeof(why));
	if (rc != 0)
		return refuse(c, rc, "%s", why);
	rc = rte_dev_probe(c->cfg->device);
	if (rc != 0)
		return refuse_driver(c, rc, "cannot be opened");
	if (rte_eth_dev_get_port_by_name(name, &dd->port) != 0)
		return refuse(
		    c, -ENODEV, "its driver made no Ethernet port; choose a network device");
	dd->is_plugged = true;
	return take_port(c, dd->port);
}

/* ---- configuring ---- */

static uint16_t
count_queues(const struct control *c, const struct dpdk_dev *dd)
{
	unsigned want = c->cfg->queues != 0 ? c->cfg->queues : c->d->stack->n_netisrs;
	unsigned have = min_u32(dd->info.max_rx_queues, dd->info.max_tx_queues);

	want = min_u32(want, c->d->stack->n_netisrs);
	return (uint16_t)max_u32(1, min_u32(want, have));
}

static uint32_t
caps_of(const struct dpdk_dev *dd, const struct rte_eth_conf *conf)
{
	static const struct {
		uint64_t offload;
		uint32_t cap;
	} rx[] = {
		{ RTE_ETH_RX_OFFLOAD_IPV4_CKSUM, DEV_CAP_RX_IP_CSUM },
		{ RTE_ETH_RX_OFFLOAD_TCP_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM, DEV_CAP_RX_L4_CSUM },
		{ RTE_ETH_RX_OFFLOAD_VLAN_STRIP, DEV_CAP_RX_VLAN_STRIP },
	}, tx[] = {
		{ RTE_ETH_TX_OFFLOAD_IPV4_CKSUM, DEV_CAP_TX_IP_CSUM },
		{ RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM, DEV_CAP_TX_L4_CSUM },
		{ RTE_ETH_TX_OFFLOAD_TCP_TSO, DEV_CAP_TSO },
		{ RTE_ETH_TX_OFFLOAD_MULTI_SEGS, DEV_CAP_MULTISEG },
	};
	uint32_t caps = dd->is_tap || dd->is_pci ? 0 : DEV_CAP_POLL_ONLY;

	for (unsigned i = 0; i < ARRAY_LEN(rx); i++) {
		if ((conf->rxmode.offloads & rx[i].offload) == rx[i].offload)
			caps |= rx[i].cap;
	}
	for (unsigned i = 0; i < ARRAY_LEN(tx); i++) {
		if ((conf->txmode.offloads & tx[i].offload) == tx[i].offload)
			caps |= tx[i].cap;
	}
	return caps;
}

/* TSO without all checksums, or checksums of TCP but not UDP, is more trouble than it is worth. */
static uint64_t
tx_offloads(const struct dev *d, uint64_t capa)
{
	const struct dpdk_dev *dd = d->priv;
	const uint64_t sums = RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	uint64_t use = capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;

	/* net_tun's arithmetic assumes an Ethernet header. */
	if (!d->has_ether)
		return use;
	use |= capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	if (dd->is_tap)
		return use;
	if ((capa & sums) == sums)
		use |= sums;
	/* A driver that counts virtio's single "checksum" flag as both has no IPv4 header checksum;
	 * TSO there still needs it. */
	if ((capa & sums) == sums && (use & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0)
		use |= capa & RTE_ETH_TX_OFFLOAD_TCP_TSO;
	return use;
}

static uint64_t
rx_offloads(const struct dev *d, uint64_t capa)
{
	uint64_t use = RTE_ETH_RX_OFFLOAD_RSS_HASH;

	if (d->has_ether)
		use |= RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM |
		       RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	if (d->vlan != 0)
		use |= RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	if ((uint32_t)d->mtu + L2_BYTES_MAX > PKT_ROOM_BYTES)
		use |= RTE_ETH_RX_OFFLOAD_SCATTER;
	return use & capa;
}

static int
check_mtu(const struct control *c, const struct dpdk_dev *dd, uint64_t use)
{
	uint32_t max = dd->info.max_mtu;

	if (c->d->mtu > max || c->d->mtu < dd->info.min_mtu)
		return refuse(c, -EINVAL, "mtu %u is not possible; set port.%s.mtu from %u to %u",
		    c->d->mtu, c->d->name, dd->info.min_mtu, max);
	if ((uint32_t)c->d->mtu + L2_BYTES_MAX > PKT_ROOM_BYTES &&
	    (use & RTE_ETH_RX_OFFLOAD_SCATTER) == 0)
		return refuse(c, -EINVAL,
		    "mtu %u needs frames of several buffers, which the driver cannot do; set "
		    "port.%s.mtu=%u or less",
		    c->d->mtu, c->d->name, PKT_ROOM_BYTES - L2_BYTES_MAX);
	return 0;
}

static int
configure(const struct control *c, struct dpdk_dev *dd)
{
	struct dev *d = c->d;
	struct rte_eth_conf conf = { .rxmode = { .mtu = d->mtu } };
	int rc;

	d->n_queues = count_queues(c, dd);
	conf.rxmode.offloads = rx_offloads(d, dd->info.rx_offload_capa);
	conf.txmode.offloads = tx_offloads(d, dd->info.tx_offload_capa);
	rc = check_mtu(c, dd, conf.rxmode.offloads);
	if (rc != 0)
		return rc;
	rss_make_plan(&dd->rss, d->stack, &dd->info, d->n_queues);
	rss_fill_conf(&dd->rss, &conf);
	conf.intr_conf.rxq = dd->is_tap || dd->is_pci;
	rc = rte_eth_dev_configure(dd->port, d->n_queues, d->n_queues, &conf);
	if (rc != 0 && dd->is_pci) {
		/* uio has no interrupt per queue: poll. */
		conf.intr_conf.rxq = 0;
		rc = rte_eth_dev_configure(dd->port, d->n_queues, d->n_queues, &conf);
	}
	if (rc != 0)
		return refuse_driver(c, rc, "cannot be configured");
	d->caps = caps_of(dd, &conf);
	if (conf.intr_conf.rxq == 0)
		d->caps |= DEV_CAP_POLL_ONLY;
	dd->must_prepare = (conf.txmode.offloads & ~RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
	rc = rte_eth_dev_set_mtu(dd->port, d->mtu);
	if (rc != 0 && rc != -ENOTSUP)
		return refuse_driver(c, rc, "the MTU cannot be set");
	return 0;
}

/* Descriptors from what the pool can spare, shared by the DPDK ports still to come. */
static int
choose_descriptors(const struct control *c, struct dpdk_dev *dd)
{
	struct darter_stack *s = c->d->stack;
	uint32_t spare = pkt_dpdk_unreserved(s), n_queues = c->d->n_queues, desc = DESC_MAX, need;

	while (desc > DESC_MIN && desc * 2 * n_queues > spare / 2)
		desc /= 2;
	dd->rx_desc = (uint16_t)desc;
	dd->tx_desc = (uint16_t)desc;
	if (dd->is_tap)
		/* One frame's buffers are all it holds. */
		dd->rx_desc = (uint16_t)((c->d->mtu + L2_BYTES_MAX) / PKT_ROOM_BYTES + 2);
	else if (rte_eth_dev_adjust_nb_rx_tx_desc(dd->port, &dd->rx_desc, &dd->tx_desc) != 0)
		return refuse_driver(c, -EINVAL, "queue sizes are refused");
	need = n_queues * (dd->rx_desc + (dd->is_tap ? 0u : dd->tx_desc));
	if (pkt_dpdk_reserve(s, need) != 0)
		return refuse(c, -ENOBUFS,
		    "%u packets are too few: %u queues need %u, %u are left; set stack.packets=%u "
		    "or more, or fewer queues",
		    s->config.packets, n_queues, need, spare, s->config.packets + need - spare);
	dd->reserved_pkts = need;
	return 0;
}

static int
set_up_queues(const struct control *c, struct dpdk_dev *dd)
{
	unsigned socket = (unsigned)SOCKET_ID_ANY;
	int rc = choose_descriptors(c, dd);

	for (uint16_t q = 0; rc == 0 && q < c->d->n_queues; q++) {
		rc = rte_eth_rx_queue_setup(
		    dd->port, q, dd->rx_desc, socket, NULL, pkt_dpdk_pool(c->d->stack));
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(dd->port, q, dd->tx_desc, socket, NULL);
		if (rc != 0)
			return refuse_driver(c, rc, "a queue cannot be set up");
		dd->queue[q].fd = -1;
	}
	return rc;
}

static int
choose_mac(const struct control *c, struct dpdk_dev *dd)
{
	struct rte_ether_addr mac;
	int rc;

	if (!c->d->has_ether)
		return 0;
	rc = rte_eth_macaddr_get(dd->port, &mac);
	if (rc != 0)
		return refuse_driver(c, rc, "its MAC address cannot be read");
	/* Rings have none. */
	if (rte_is_zero_ether_addr(&mac)) {
		c->d->stack->random(c->d->stack, mac.addr_bytes, sizeof(mac.addr_bytes));
		mac.addr_bytes[0] = (uint8_t)((mac.addr_bytes[0] & ~RTE_ETHER_GROUP_ADDR) |
					      RTE_ETHER_LOCAL_ADMIN_ADDR);
	}
	if (dd->is_tap && !c->cfg->has_mac)
		mac.addr_bytes[RTE_ETHER_ADDR_LEN - 1] ^= 1;
	else if (dd->is_tap && memcmp(c->cfg->mac, mac.addr_bytes, sizeof(c->cfg->mac)) == 0)
		return refuse(c, -EINVAL,
		    "mac: the kernel's side of the tap has this address; choose another");
	if (c->cfg->has_mac)
		memcpy(mac.addr_bytes, c->cfg->mac, sizeof(mac.addr_bytes));
	memcpy(c->d->mac, mac.addr_bytes, sizeof(c->d->mac));
	/* A driver that cannot change its address is put into promiscuous mode; ether_in drops what
	 * is not for us. */
	if (c->cfg->has_mac && !dd->is_tap &&
	    rte_eth_dev_default_mac_addr_set(dd->port, &mac) != 0 &&
	    rte_eth_promiscuous_enable(dd->port) != 0)
		return refuse(c, -ENOTSUP,
		    "mac: the driver cannot use another address; remove port.%s.mac", c->d->name);
	return 0;
}

/* ---- open and close ---- */

static int
close_port(void *arg)
{
	const struct control *c = arg;
	struct dpdk_dev *dd = c->d->priv;

	if (dd->port == RTE_MAX_ETHPORTS)
		return 0;
	rte_eth_dev_close(dd->port);
	if (dd->is_plugged && dd->info.device != NULL)
		rte_dev_remove(dd->info.device);
	give_port(dd->port);
	return 0;
}

static int
open_port(void *arg)
{
	const struct control *c = arg;
	struct dpdk_dev *dd = c->d->priv;
	int rc;

	rc = plug(c, dd);
	if (rc != 0) {
		dd->port = RTE_MAX_ETHPORTS; /* somebody else's or nobody's */
		return rc;
	}
	rc = rte_eth_dev_info_get(dd->port, &dd->info);
	if (rc != 0)
		return refuse_driver(c, rc, "cannot be asked");
	c->d->has_ether = strcmp(dd->info.driver_name, "net_tun") != 0;
	rc = configure(c, dd);
	if (rc == 0)
		rc = set_up_queues(c, dd);
	if (rc == 0)
		rc = choose_mac(c, dd);
	return rc;
}

static void
free_dev(struct control *c)
{
	struct dpdk_dev *dd = c->d->priv;

	eal_run(close_port, c);
	pkt_dpdk_unreserve(c->d->stack, dd->reserved_pkts);
	free(dd);
	c->d->priv = NULL;
}

static int
dpdk_open(struct dev *d, const struct config_port *cfg, char *err, size_t err_size)
{
	struct control c = { .d = d, .cfg = cfg, .err = err, .err_size = err_size };
	struct dpdk_dev *dd;
	int rc;

	if (pkt_dpdk_pool(d->stack) == NULL)
		return refuse(&c, -EINVAL,
		    "is no device of darter's own, and DPDK is not in use; check the spelling or "
		    "set stack.memory=dpdk");
	dd = aligned_alloc(
	    CACHELINE_BYTES, (sizeof(*dd) + CACHELINE_BYTES - 1) & ~(size_t)(CACHELINE_BYTES - 1));
	if (dd == NULL)
		return refuse(&c, -ENOMEM, "out of memory");
	memset(dd, 0, sizeof(*dd));
	dd->port = RTE_MAX_ETHPORTS;
	dd->is_pci = config_device_is_pci(cfg->device);
	dd->is_tap =
	    strncmp(cfg->device, "net_tap", 7) == 0 || strncmp(cfg->device, "net_tun", 7) == 0;
	d->priv = dd;
	eal_log_mark();
	rc = eal_run(open_port, &c);
	eal_log_release();
	if (rc != 0)
		free_dev(&c);
	return rc;
}

static void
dpdk_close(struct dev *d)
{
	struct control c = { .d = d };

	free_dev(&c);
}

/* ---- start and stop ---- */

static bool
is_up(const struct dpdk_dev *dd)
{
	struct rte_eth_link link;

	memset(&link, 0, sizeof(link));
	return rte_eth_link_get_nowait(dd->port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

/* A cable takes seconds; a peer process may come at any time, so only hardware is waited for. */
static void
wait_for_link(const struct dev *d, const struct dpdk_dev *dd)
{
	const struct timespec step = { .tv_nsec = 10 * 1000 * 1000 };

	for (int ms = 0; dd->is_pci && ms < LINK_WAIT_MS && !is_up(dd); ms += 10)
		nanosleep(&step, NULL);
	if (!is_up(dd))
		log_write(&d->stack->log, LOG_LVL_WARN, "port %s: no link yet; starting without",
		    d->name);
}

static int
quiet_tap(const struct control *c, struct dpdk_dev *dd)
{
	char iface[IF_NAMESIZE];
	int rc = -ENOENT;

	if (if_indextoname(dd->info.if_index, iface) != NULL)
		rc = dev_host_quiet_tap(iface, &dd->kick_signal, &dd->kick);
	if (rc == 0)
		return 0;
	snprintf(c->err, c->err_size,
	    "[port.%s]: the tap's signals cannot be switched off (%s); is /proc mounted?",
	    c->d->name, strerror(-rc));
	return rc;
}

/* Descriptors to sleep on. If a queue has none the whole device is polled. */
static void
find_fds(struct dev *d, struct dpdk_dev *dd)
{
	if ((d->caps & DEV_CAP_POLL_ONLY) != 0)
		return;
	for (uint16_t q = 0; q < d->n_queues; q++) {
		dd->queue[q].fd = rte_eth_dev_rx_intr_ctl_q_get_fd(dd->port, q);
		if (dd->queue[q].fd < 0 || (dd->is_pci && !dev_host_is_eventfd(dd->queue[q].fd)))
			d->caps |= DEV_CAP_POLL_ONLY;
	}
	dd->can_arm = dd->is_pci && (d->caps & DEV_CAP_POLL_ONLY) == 0;
}

static int
start_port(void *arg)
{
	const struct control *c = arg;
	struct dpdk_dev *dd = c->d->priv;
	int rc = dd->is_tap ? quiet_tap(c, dd) : 0;

	if (rc != 0)
		return rc;
	rc = rte_eth_dev_start(dd->port);
	if (rc != 0) {
		char why[160];

		eal_log_first(why, sizeof(why));
		snprintf(c->err, c->err_size, "[port.%s]: cannot be started (%s); %s", c->d->name,
		    why[0] != '\0' ? why : rte_strerror(-rc), dev_host_fix("", rc, why));
		return dev_host_errno(rc, why);
	}
	dd->is_started = true;
	if (rss_program(&dd->rss, c->d->stack, dd->port, c->d->n_queues))
		c->d->caps |= DEV_CAP_RSS;
	/* Groups are ether_in's to filter; a driver without the call delivers them anyway. */
	(void)rte_eth_allmulticast_enable(dd->port);
	find_fds(c->d, dd);
	wait_for_link(c->d, dd);
	return 0;
}

static int
dpdk_start(struct dev *d, char *err, size_t err_size)
{
	struct control c = { .d = d, .err = err, .err_size = err_size };
	const struct dpdk_dev *dd = d->priv;
	int rc;

	eal_log_mark();
	rc = eal_run(start_port, &c);
	eal_log_release();
	if (rc == 0)
		log_write(&d->stack->log, LOG_LVL_INFO,
		    "port %s: driver %s, %u queues, %u/%u descriptors, caps 0x%x", d->name,
		    dd->info.driver_name, d->n_queues, dd->rx_desc, dd->tx_desc, d->caps);
	return rc;
}

static int
stop_port(void *arg)
{
	struct dpdk_dev *dd = ((const struct control *)arg)->d->priv;

	return rte_eth_dev_stop(dd->port);
}

static void
dpdk_stop(struct dev *d)
{
	struct control c = { .d = d };
	struct dpdk_dev *dd = d->priv;

	if (dd->is_started)
		eal_run(stop_port, &c);
	dd->is_started = false;
}

/* ---- packets ---- */

/* The first empty burst after frames: interrupt on, and a second look. */
static unsigned
arm_and_look(struct dpdk_dev *dd, uint16_t q, struct rte_mbuf **mbufs, uint16_t max)
{
	uint64_t ticks;

	if (dd->queue[q].is_armed)
		return 0;
	/* Old ticks would wake for nothing. */
	while (read(dd->queue[q].fd, &ticks, sizeof(ticks)) < 0 && errno == EINTR)
		;
	dd->queue[q].is_armed = rte_eth_dev_rx_intr_enable(dd->port, q) == 0;
	return rte_eth_rx_burst(dd->port, q, mbufs, max);
}

static void
disarm(struct dpdk_dev *dd, uint16_t q)
{
	if (!dd->queue[q].is_armed)
		return;
	dd->queue[q].is_armed = false;
	rte_eth_dev_rx_intr_disable(dd->port, q);
}

/* What the device itself lost, once a second. */
static void
count_losses(struct dpdk_dev *dd, struct netisr *n)
{
	struct rte_eth_stats st;
	uint64_t lost;

	dd->next_stats = time_add_us(n->now, STATS_EVERY_US);
	if (rte_eth_stats_get(dd->port, &st) != 0)
		return;
	lost = st.imissed + st.ierrors + st.rx_nombuf;
	if (lost > dd->lost_pkts)
		netisr_count(n, CTR_drop_rx_dev, lost - dd->lost_pkts);
	dd->lost_pkts = lost;
}

static unsigned
dpdk_rx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned max)
{
	struct dpdk_dev *dd = d->priv;
	struct rte_mbuf *mbufs[DEV_BURST_PKTS];
	uint16_t want = (uint16_t)min_u32(max, DEV_BURST_PKTS);
	unsigned count;

	if (dd->kick != NULL)
		dd->kick(dd->kick_signal);
	count = rte_eth_rx_burst(dd->port, (uint16_t)q, mbufs, want);
	if (dd->can_arm && count == 0)
		count = arm_and_look(dd, (uint16_t)q, mbufs, want);
	if (dd->can_arm && count != 0)
		disarm(dd, (uint16_t)q);
	if (q == 0 && time_reached(n->now, dd->next_stats))
		count_losses(dd, n);
	if (count == 0)
		return 0;
	return pkt_dpdk_from_mbufs(n, mbufs, pkts, count, d->index);
}

/* One chunk. Returns how many of it are gone (sent, or dropped because the driver finds them
 * malformed). */
static unsigned
send_chunk(struct dev *d, struct netisr *n, uint16_t q, struct pkt **pkts, unsigned count)
{
	struct dpdk_dev *dd = d->priv;
	struct rte_mbuf *mbufs[TX_CHUNK_PKTS];
	uint16_t ready = (uint16_t)count;

	if (pkt_dpdk_to_mbufs(pkts, mbufs, count) && dd->must_prepare)
		ready = rte_eth_tx_prepare(dd->port, q, mbufs, ready);
	if (ready == 0) {
		NETISR_COUNT(n, CTR_drop_tx_dev);
		pkt_free(n, pkts[0]);
		return 1;
	}
	return rte_eth_tx_burst(dd->port, q, mbufs, ready);
}

static unsigned
dpdk_tx(struct dev *d, struct netisr *n, unsigned q, struct pkt **pkts, unsigned count)
{
	unsigned done = 0;

	while (done < count) {
		unsigned sent = send_chunk(
		    d, n, (uint16_t)q, pkts + done, min_u32(count - done, TX_CHUNK_PKTS));

		if (sent == 0)
			break;
		done += sent;
	}
	return done;
}

static int
dpdk_rx_fd(struct dev *d, unsigned q)
{
	const struct dpdk_dev *dd = d->priv;

	return (d->caps & DEV_CAP_POLL_ONLY) != 0 ? -1 : dd->queue[q].fd;
}

static bool
dpdk_link_is_up(struct dev *d)
{
	return is_up(d->priv);
}

const struct dev_ops dev_dpdk_ops = {
	.name = "dpdk",
	.open = dpdk_open,
	.start = dpdk_start,
	.rx = dpdk_rx,
	.tx = dpdk_tx,
	.rx_fd = dpdk_rx_fd,
	.link_is_up = dpdk_link_is_up,
	.stop = dpdk_stop,
	.close = dpdk_close,
};
