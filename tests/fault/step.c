/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Usage: step [STRIDE]
 * Rows 2 to 4 and 31 of the fault matrix, on x86-64 and AArch64. Steps through each operation as a debugger does,
 * and at every STRIDEth (16) instruction, from each one on in turn, lets something happen to it: a signal whose handler
 * charges, uncharges and drains; a move to another CPU; a drain by another thread. A step restarts the section it is
 * in, so this walks every instruction of the slow paths; then a breakpoint on each instruction inside each section
 * in turn gets there undisturbed. Each run is audited to the page, byte and unit.
 * Exit status: 0 exact; 1 not; 2 misuse; 77 it can't trace here, or there is one CPU only.
 */
#include "step.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* An operation that is stepped through to its end takes this many instructions at most, restarts included. */
#define STEPS_MAX 20000
#define SECTION_MAX 64

#if defined(__x86_64__)
#define REGISTERS struct user_regs_struct
#define PC rip
#define SP rsp
#define TRAP_BYTES 1 /* the program counter is behind a breakpoint that was hit */
#elif defined(__aarch64__)
#define REGISTERS struct user_regs_struct
#define PC pc
#define SP sp
#define TRAP_BYTES 0
#endif

struct step_shared *step_shared;
static pid_t child;
static uint64_t points[STEP_EVENTS], section_points, sections_hit, runs, longest;

/* What the sections' assembly leaves in its table. */
struct descriptor {
	uint32_t version, flags;
	uint64_t start, length, abort;
} __attribute__((aligned(32)));

extern const struct descriptor table_begin[] __asm__("__start___rseq_cs") __attribute__((weak));
extern const struct descriptor table_end[] __asm__("__stop___rseq_cs") __attribute__((weak));

#if defined(PC)

static void die(const char *what)
{
	printf("FAILED %s in %s: %s\n", what, step_op_name[step_shared->op % STEP_OPS], strerror(errno));
	(void)kill(child, SIGKILL);
	exit(1);
}

/* Lets it go on and waits for its next stop; the signal of that. */
static int resume(enum __ptrace_request how, int sig)
{
	int status;

	if (ptrace(how, child, NULL, (void *)(uintptr_t)sig) != 0)
		die("ptrace");
	if (waitpid(child, &status, __WALL) != child)
		die("waitpid");
	if (!WIFSTOPPED(status)) {
		printf("FAILED the child ended in %s, status %#x\n", step_op_name[step_shared->op % STEP_OPS], (unsigned int)status);
		exit(1);
	}
	return WSTOPSIG(status);
}

static REGISTERS registers(void)
{
	REGISTERS r;
	struct iovec io = { &r, sizeof(r) };

	if (ptrace(PTRACE_GETREGSET, child, (void *)(uintptr_t)NT_PRSTATUS, &io) != 0)
		die("registers");
	return r;
}

static void set_pc(uint64_t pc)
{
	REGISTERS r = registers();
	struct iovec io = { &r, sizeof(r) };

	r.PC = pc;
	if (ptrace(PTRACE_SETREGSET, child, (void *)(uintptr_t)NT_PRSTATUS, &io) != 0)
		die("registers");
}

/* A handler's trap: behind it. */
static void pass_trap(void)
{
#if defined(__aarch64__)
	if (step_shared->handling != 0)
		set_pc(registers().PC + 4);
#endif
}

/* On to one of its own stops, past anything else. */
static void to_stop(int sig)
{
	while ((sig = resume(PTRACE_CONT, sig)) != SIGSTOP)
		if (sig == SIGTRAP) {
			pass_trap();
			sig = 0;
		}
}

static uint64_t peek(uint64_t address)
{
	errno = 0;
	return (uint64_t)ptrace(PTRACE_PEEKTEXT, child, (void *)(uintptr_t)address, NULL);
}

static void poke(uint64_t address, uint64_t word)
{
	if (ptrace(PTRACE_POKETEXT, child, (void *)(uintptr_t)address, (void *)(uintptr_t)word) != 0)
		die("poke");
}

/* Sets a breakpoint and returns what was there. */
static uint64_t set_trap(uint64_t address)
{
	uint64_t word = peek(address);

#if defined(__x86_64__)
	poke(address, (word & ~UINT64_C(0xff)) | 0xcc);
#else
	poke(address, (word & ~UINT64_C(0xffffffff)) | 0xd4200000);
#endif
	return word;
}

/* -------------------------------------------------------------------- events */

static void move(uint32_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % step_shared->cpus, &set);
	(void)sched_setaffinity(child, sizeof(set), &set);
}

/* While it is stopped. Returns the signal to go on with. */
static int happen(enum step_event event)
{
	static uint32_t cpu;

	points[event]++;
	switch (event) {
	case STEP_SIGNAL:
		return SIGUSR1;
	case STEP_MIGRATE:
		move(++cpu);
		return 0;
	default:
		__atomic_store_n(&step_shared->helper, 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&step_shared->helper, __ATOMIC_SEQ_CST) != 0)
			(void)usleep(20);
		return 0;
	}
}

/* --------------------------------------------------------------- every instruction */

static void begin(uint32_t op)
{
	step_shared->op = op;
	to_stop(0); /* prepared */
	runs++;
}

/* Until the next operation is asked for. */
static void finish(void)
{
	to_stop(0);
	move(0);
}

/* The handler, at full speed up to its trap, then to its return: another signal in between would only come after it. */
static void handle(int sig)
{
	uint64_t sp = registers().SP;
	int steps = 0;

	if (resume(PTRACE_CONT, sig) != SIGTRAP || step_shared->handling == 0)
		die("no handler");
	pass_trap();
	while (registers().SP < sp && steps++ < 10000)
		(void)resume(PTRACE_SINGLESTEP, 0);
}

static void walk(uint32_t op, enum step_event event, uint32_t offset, uint32_t stride)
{
	uint64_t steps = 0;
	int sig = 0;

	begin(op);
	while (steps < STEPS_MAX && (sig = resume(PTRACE_SINGLESTEP, 0)) != SIGSTOP) {
		if (step_shared->running == 0 || ++steps % stride != offset || (sig = happen(event)) == 0)
			continue;
		handle(sig);
	}
	if (steps >= STEPS_MAX) {
		printf("FAILED %s did not end within %d steps\n", step_op_name[op], STEPS_MAX);
		step_shared->failures++;
		to_stop(0);
	}
	longest = steps > longest ? steps : longest;
	finish();
}

/* -------------------------------------------------------------------- breakpoints */

/* Runs to a breakpoint; false: the operation does not come by. Then it is at its third stop, else at the breakpoint. */
static bool run_to(uint32_t op, uint64_t address)
{
	uint64_t word;
	int sig;

	begin(op);
	word = set_trap(address);
	do
		sig = resume(PTRACE_CONT, 0);
	while (sig != SIGTRAP && sig != SIGSTOP);
	poke(address, word);
	if (sig == SIGSTOP)
		return false;
	if (registers().PC - TRAP_BYTES != address)
		die("stopped elsewhere");
	set_pc(address);
	return true;
}

/* The instructions of a section, in the order in which they run; the child is at the first. */
static unsigned int boundaries(const struct descriptor *d, uint64_t *address)
{
	unsigned int n = 0;
	uint64_t pc = d->start;

	/* Disarmed, else each step would lead to the abort handler. */
	poke(step_shared->rseq + 8, 0);
	while (pc >= d->start && pc < d->start + d->length && n < SECTION_MAX) {
		address[n++] = pc;
		(void)resume(PTRACE_SINGLESTEP, 0);
		pc = registers().PC;
	}
	return n;
}

static void break_in(uint32_t op, const struct descriptor *d)
{
	uint64_t address[SECTION_MAX];
	unsigned int n, i;
	int event;

	if (!run_to(op, d->start)) {
		finish();
		return;
	}
	n = boundaries(d, address);
	to_stop(0);
	finish();
	sections_hit++;
	for (i = 0; i < n; i++)
		for (event = 0; event < STEP_EVENTS; event++) {
			if (run_to(op, address[i])) {
				to_stop(happen((enum step_event)event));
				section_points++;
			}
			finish();
		}
}

static void stop_child(void)
{
	int status;

	step_shared->op = STEP_OPS;
	(void)ptrace(PTRACE_CONT, child, NULL, NULL);
	(void)waitpid(child, &status, __WALL);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		step_shared->failures++;
}

static int usage(void)
{
	fprintf(stderr, "usage: step [STRIDE, 1 to 1000]\n");
	return 2;
}

int main(int argc, char **argv)
{
	uint32_t stride = argc > 1 ? (uint32_t)atoi(argv[1]) : 16, op, offset;
	const struct descriptor *d;
	int event, status;
	cpu_set_t set;

	if (argc > 2 || stride < 1 || stride > 1000)
		return usage();
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	step_shared = (struct step_shared *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (step_shared == MAP_FAILED || sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	step_shared->cpus = (uint32_t)CPU_COUNT(&set);
	if (step_shared->cpus < 2) {
		printf("one CPU only\n");
		return 77;
	}
	child = fork();
	if (child == 0)
		step_child();
	if (waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status)) {
		printf("can't trace here\n");
		return 77;
	}
	move(0);
	for (op = 0; op < STEP_OPS; op++)
		for (event = 0; event < STEP_EVENTS && step_shared->failures == 0; event++)
			for (offset = 0; offset < stride && step_shared->failures == 0; offset++)
				walk(op, (enum step_event)event, offset, stride);
	printf("step: %" PRIu64 " signals, %" PRIu64 " moves, %" PRIu64 " remote drains at instructions; longest operation %" PRIu64
	       " steps\n", points[STEP_SIGNAL], points[STEP_MIGRATE], points[STEP_REMOTE_DRAIN], longest);
	for (op = 0; op < STEP_OPS && step_shared->rseq != 0; op++)
		for (d = table_begin; d < table_end && step_shared->failures == 0; d++)
			break_in(op, d);
	printf("step: %" PRIu64 " sections entered by operations, %" PRIu64 " points inside them\n", sections_hit, section_points);
	stop_child();
	printf("step: %s, %" PRIu64 " runs, %" PRIu64 " audits, %" PRIu64 " disturbed tries, %s\n",
	       step_shared->rseq != 0 ? "sections" : "generic", runs, step_shared->audits, step_shared->aborts,
	       step_shared->failures == 0 ? "EXACT" : "LOST");
	if (step_shared->rseq != 0 && section_points < 200) {
		printf("FAILED fewer points inside sections than there are\n");
		return 1;
	}
	return step_shared->failures != 0;
}

#else

int main(void)
{
	printf("stepping is written for x86-64 and AArch64\n");
	return 77;
}

#endif
