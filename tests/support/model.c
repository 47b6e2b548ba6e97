/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model threads: coroutines with a stack each, the variables that are thread-local in the code
 * under test, and the steps that the hooks ask for. A thread that comes to a step asks the
 * explorer who is next and hands over to that one directly.
 */
#include "support/model_hooks.h"

#include <setjmp.h>
#include <ucontext.h>

#include "support/model_priv.h"

#undef malloc
#undef calloc
#undef free

#define STACK_BYTES	(256u * 1024u)
#define OBJECTS_MAX	1024u		/* power of two */
#define IGNORED_MAX	24
#define NOBODY		MODEL_THREADS_MAX

int model_seed;
struct thread model_threads[MODEL_THREADS_MAX];
unsigned model_n_threads;
unsigned model_current = NOBODY;
bool model_is_tso;
uint32_t model_run;
char model_why[256];

static ucontext_t first_context[MODEL_THREADS_MAX];
static bool has_begun[MODEL_THREADS_MAX + 1];
static jmp_buf contexts[MODEL_THREADS_MAX + 1];
static char stacks[MODEL_THREADS_MAX][STACK_BYTES] __attribute__((aligned(64)));
static struct object objects[OBJECTS_MAX];
static jmp_buf main_failed;
static enum run_end run_end;
static bool is_starting;
static struct {
	uintptr_t from, to;
} ignored[IGNORED_MAX];
static unsigned n_ignored;

/* ---- thread-local variables ---- */

extern char __start_model_tls[] __attribute__((weak, visibility("hidden")));
extern char __stop_model_tls[] __attribute__((weak, visibility("hidden")));

static char *tls_first;			/* as the program begins */
static char *tls_saved[MODEL_THREADS_MAX + 1];

static size_t
tls_bytes(void)
{
	return (size_t)((uintptr_t)__stop_model_tls - (uintptr_t)__start_model_tls);
}

static void
tls_begin(void)
{
	unsigned i;

	if (tls_bytes() == 0)
		return;
	if (tls_first == NULL) {
		tls_first = malloc(tls_bytes());
		if (tls_first == NULL)
			abort();
		memcpy(tls_first, __start_model_tls, tls_bytes());
	}
	for (i = 0; i <= MODEL_THREADS_MAX; i++) {
		if (tls_saved[i] == NULL)
			tls_saved[i] = malloc(tls_bytes());
		if (tls_saved[i] == NULL)
			abort();
		memcpy(tls_saved[i], tls_first, tls_bytes());
	}
	memcpy(__start_model_tls, tls_first, tls_bytes());
}

/* ---- switching ---- */

static void
switch_to(unsigned to)
{
	unsigned from = model_current;

	if (tls_bytes() != 0) {
		memcpy(tls_saved[from], __start_model_tls, tls_bytes());
		memcpy(__start_model_tls, tls_saved[to], tls_bytes());
	}
	model_current = to;
	/* a context is only made for a thread's first step: swapping them costs system calls */
	if (_setjmp(contexts[from]) != 0)
		return;
	if (has_begun[to])
		_longjmp(contexts[to], 1);
	has_begun[to] = true;
	setcontext(&first_context[to]);
}

static void
end_run(enum run_end end)
{
	run_end = end;
	switch_to(NOBODY);
}

void
model_fail(const char *file, unsigned line, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(model_why, sizeof(model_why), "%s:%u: ", file, line);

	va_start(ap, fmt);
	vsnprintf(model_why + n, sizeof(model_why) - (size_t)n, fmt, ap);
	va_end(ap);
	if (model_current == NOBODY)
		longjmp(main_failed, 1);
	end_run(RUN_FAILED);
	abort();	/* nobody goes on with a failed run */
}

/* assert() of the code under test. */
void
__assert_fail(const char *expr, const char *file, unsigned line, const char *function)
{
	model_fail(file, line, "%s: assertion %s", function, expr);
}

/* The code under test has followed a bad pointer: a failed run like any other. */
static void
on_fault(int sig)
{
	(void)sig;
	model_fail(__FILE__, __LINE__, "memory fault in thread %u", model_current);
}

void
model_catch_faults(bool catch)
{
	static char stack[64 * 1024] __attribute__((aligned(64)));
	static const stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	const struct sigaction sa = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER };
	static struct sigaction old_segv, old_bus;

	if (catch) {
		sigaltstack(&alt, NULL);
		sigaction(SIGSEGV, &sa, &old_segv);
		sigaction(SIGBUS, &sa, &old_bus);
	} else {
		sigaction(SIGSEGV, &old_segv, NULL);
		sigaction(SIGBUS, &old_bus, NULL);
	}
}

/* Takes the oldest store of a thread to memory. */
static void
flush_one(struct thread *t)
{
	struct pending_store *s = &t->stores[t->first_store];

	memcpy((void *)(uintptr_t)s->p, &s->v, s->size);
	t->first_store = (t->first_store + 1) % STORES_MAX;
	t->n_stores--;
}

/*
 * Runs what is chosen until thread `self` is; with self NOBODY (ended, or main) never returns to
 * it while others run.
 */
static void
run_until_chosen(unsigned self)
{
	for (;;) {
		int p = model_choose();

		if (p < 0) {
			run_end = p == CHOICE_CUT ? RUN_CUT : RUN_GOOD;
			if (model_current != NOBODY)
				switch_to(NOBODY);
			return;
		}
		if (p >= MODEL_THREADS_MAX) {
			flush_one(&model_threads[p - MODEL_THREADS_MAX]);
			continue;
		}
		if ((unsigned)p != self)
			switch_to((unsigned)p);
		return;
	}
}

static void
thread_main(void)
{
	struct thread *t = &model_threads[model_current];

	if (t->fn != NULL)
		t->fn();
	else
		t->fn_arg(t->arg);
	t->state = THREAD_ENDED;
	if (is_starting)
		switch_to(NOBODY);
	run_until_chosen(NOBODY);
}

/* ---- news ---- */

static void
note_seen(struct thread *t, struct object *o)
{
	unsigned i;

	for (i = 0; i < t->n_seen; i++) {
		if (t->seen[i].o == o)
			return;		/* the first look counts: what came after it is news */
	}
	if (t->n_seen == SEEN_MAX) {
		memmove(&t->seen[0], &t->seen[1], sizeof(t->seen[0]) * (SEEN_MAX - 1));
		t->n_seen--;
	}
	t->seen[t->n_seen++] = (struct seen){ .o = o, .version = o->version };
}

bool
model_has_news(uint32_t thread)
{
	const struct thread *t = &model_threads[thread];
	unsigned i;

	for (i = 0; i < t->n_seen; i++) {
		if (t->seen[i].o->version != t->seen[i].version)
			return true;
	}
	return false;
}

void
model_polled(void)
{
	if (model_current != NOBODY)
		model_threads[model_current].n_seen = 0;
}

/* ---- steps ---- */

struct object *
model_object(uintptr_t key)
{
	uint64_t hash = (key >> 2) * UINT64_C(0x9e3779b97f4a7c15);
	unsigned i = (unsigned)(hash >> 32) & (OBJECTS_MAX - 1), tries;

	for (tries = 0; tries < OBJECTS_MAX; tries++, i = (i + 1) & (OBJECTS_MAX - 1)) {
		struct object *o = &objects[i];

		if (o->run == model_run && o->key == key)
			return o;
		if (o->run != model_run) {
			memset(o, 0, sizeof(*o));
			o->run = model_run;
			o->key = key;
			return o;
		}
	}
	model_fail(__FILE__, __LINE__, "the model has too many variables");
}

void
model_step(struct op *op)
{
	struct thread *t = &model_threads[model_current];
	unsigned self = model_current, i;

	op->thread = self;
	t->op = op;
	if (is_starting)
		switch_to(NOBODY);
	else
		run_until_chosen(self);
	t->op = NULL;
	for (i = 0; i < op->n && !op->is_blind; i++)
		note_seen(t, op->access[i].o);
}

static bool
is_ignored(const volatile void *p)
{
	unsigned i;

	for (i = 0; i < n_ignored; i++) {
		if ((uintptr_t)p >= ignored[i].from && (uintptr_t)p < ignored[i].to)
			return true;
	}
	return model_current == NOBODY;
}

void
model_ignore(const volatile void *p, size_t len)
{
	if (n_ignored == IGNORED_MAX)
		model_fail(__FILE__, __LINE__, "too many ignored ranges");
	ignored[n_ignored].from = (uintptr_t)p;
	ignored[n_ignored].to = (uintptr_t)p + len;
	n_ignored++;
}

/* The thread's own youngest store to p that is still in its buffer. */
static const struct pending_store *
own_store(const struct thread *t, const volatile void *p)
{
	unsigned i;

	for (i = t->n_stores; i-- > 0;) {
		const struct pending_store *s = &t->stores[(t->first_store + i) % STORES_MAX];

		if (s->p == p)
			return s;
	}
	return NULL;
}

void
model_load(const struct model_site *at, const volatile void *p, void *ret, size_t size)
{
	struct op op = { .at = at };
	const struct pending_store *own;

	if (is_ignored(p)) {
		memcpy(ret, (const void *)(uintptr_t)p, size);
		return;
	}
	op_touch(&op, model_object((uintptr_t)p), false);
	model_step(&op);
	own = own_store(&model_threads[model_current], p);
	memcpy(ret, own != NULL ? (const void *)&own->v : (const void *)(uintptr_t)p, size);
}

extern void model_note_store(struct pending_store *s);

void
model_store(
    const struct model_site *at, volatile void *p, const void *v, size_t size, bool is_drained)
{
	struct op op = { .at = at, .needs_drain = true, .is_blind = true };
	struct pending_store *s;
	struct thread *t;

	if (is_ignored(p)) {
		memcpy((void *)(uintptr_t)p, v, size);
		return;
	}
	if (!model_is_tso || is_drained) {
		op_touch(&op, model_object((uintptr_t)p), true);
		model_step(&op);
		memcpy((void *)(uintptr_t)p, v, size);
		return;
	}
	t = &model_threads[model_current];
	if (t->n_stores == STORES_MAX)
		model_fail(at->file, at->line, "the store buffer is full");
	s = &t->stores[(t->first_store + t->n_stores) % STORES_MAX];
	*s = (struct pending_store){
		.o = model_object((uintptr_t)p), .p = p, .at = at, .size = (uint8_t)size
	};
	memcpy(&s->v, v, size);
	model_note_store(s);
	t->n_stores++;
}

void
model_rmw(const struct model_site *at, const volatile void *p, size_t size,
    enum model_rmw_kind kind, const void *operand)
{
	struct op op = { .at = at,
		.needs_drain = true,
		.p = p,
		.size = (uint8_t)size,
		.kind = (uint8_t)kind,
		.operand = operand };

	if (is_ignored(p))
		return;
	op_touch(&op, model_object((uintptr_t)p), true);
	model_step(&op);
}

void
model_fence(const struct model_site *at)
{
	struct op op = { .at = at, .needs_drain = true };

	if (model_current != NOBODY)
		model_step(&op);
}

static bool
relax_is_ready(struct op *op)
{
	return model_has_news(op->thread);
}

void
model_relax(const struct model_site *at)
{
	struct op op = { .at = at, .is_ready = relax_is_ready, .is_blind = true };
	struct thread *t;
	unsigned i;

	if (model_current == NOBODY)
		return;
	t = &model_threads[model_current];
	for (i = 0; i < t->n_seen; i++)
		op_touch(&op, t->seen[i].o, false);
	model_step(&op);
	model_polled();
}

unsigned
model_self(void)
{
	return model_current;
}

/* ---- a run ---- */

static void
start_thread(unsigned i)
{
	static ucontext_t here;

	if (here.uc_stack.ss_size == 0) {
		getcontext(&here);
		here.uc_stack.ss_size = STACK_BYTES;
	}
	first_context[i] = here;
	first_context[i].uc_stack.ss_sp = stacks[i];
	makecontext(&first_context[i], thread_main, 0);
	has_begun[i] = false;
	model_threads[i].state = THREAD_RUNS;
	switch_to(i);
}

static unsigned
add_thread(void (*fn)(void), void *(*fn_arg)(void *arg), void *arg)
{
	struct thread *t = &model_threads[model_n_threads];

	if (model_n_threads == MODEL_THREADS_MAX || model_current != NOBODY)
		model_fail(__FILE__, __LINE__, "a thread too many, or one made by a thread");
	memset(t, 0, sizeof(*t));
	t->fn = fn;
	t->fn_arg = fn_arg;
	t->arg = arg;
	t->is_daemon = fn_arg != NULL;
	return model_n_threads++;
}

unsigned
model_spawn(void *(*fn)(void *arg), void *arg)
{
	return add_thread(NULL, fn, arg);
}

static void
begin_run(const struct model *m)
{
	unsigned i;

	model_run++;
	model_is_tso = m->tso;
	n_ignored = 0;
	model_n_threads = 0;
	model_why[0] = '\0';
	run_end = RUN_GOOD;
	tls_begin();
	model_sys_begin();
	model_choices_begin(m);
	for (i = 0; i < MODEL_THREADS_MAX && m->thread[i] != NULL; i++)
		add_thread(m->thread[i], NULL, NULL);
	if (m->setup != NULL)
		m->setup();
}

static void
fail_if_stuck(void)
{
	unsigned i;

	for (i = 0; i < model_n_threads; i++) {
		const struct thread *t = &model_threads[i];

		if (t->state != THREAD_RUNS || t->is_daemon)
			continue;
		model_fail(t->op->at->file, t->op->at->line, "thread %u never goes on from %s", i,
		    t->op->at->what);
	}
}

enum run_end
model_run_once(const struct model *m)
{
	volatile unsigned i;

	if (setjmp(main_failed) != 0)
		return RUN_FAILED;
	begin_run(m);
	is_starting = true;
	has_begun[NOBODY] = true;
	for (i = 0; i < model_n_threads && run_end == RUN_GOOD; i++)
		start_thread(i);
	is_starting = false;
	if (run_end == RUN_GOOD)
		run_until_chosen(NOBODY);
	if (run_end != RUN_GOOD)
		return run_end;
	fail_if_stuck();
	if (m->check != NULL)
		m->check();
	return RUN_GOOD;
}
