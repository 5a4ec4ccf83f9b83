/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. Natively a program's signal handler may well use a file while it interrupts a call of PnetCDF: it
 * writes a last state when the batch system says that time is over, and then leaves, or jumps. The engine cannot be
 * entered twice on one thread, nor be left in the middle. So all handlers of the program's are called by one of ours. A
 * signal that interrupts the engine is held, and sent to its thread again when the engine is left: for the program it
 * has come a moment later. To block signals meanwhile would not do: the kernel gives them to other threads, those of
 * MPI.
 *
 * Not held is what an instruction causes (SIGSEGV and its like), and what asks where the program is (SIGPROF). What has
 * been held for three seconds, as when the engine waits for a server, is handled there and then: a timer of the
 * kernel's sends the same signal, and is told by the address that it carries.
 *
 * All of this may be called in handlers: no memory is allocated, no lock taken. */
#define _GNU_SOURCE
#include "signals.h"

#include "behind.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kSignals = 65, kMostHeld = 64, kPatienceSeconds = 3 };

/* What the program asked for. The kernel's flags are ours: we want to know who sends, and reset handlers ourselves. */
typedef struct {
  void *handler;
  int flags;
} Wish;
enum { kOurFlags = SA_SIGINFO | SA_RESETHAND };
static struct {
  void *_Atomic handler; /* NULL: none, or one that was for one time only and has been called */
  _Atomic int flags;     /* of kOurFlags */
} wishes[kSignals];

/* Shared by all threads. Whose a held signal is, the address of its thread's counter says; NULL: free. */
typedef struct {
  int *_Atomic owner;
  unsigned order;
  int timer;
  siginfo_t info;
} Held;
static Held all_held[kMostHeld];
static _Atomic unsigned next_order;
__thread int nessie_held_signals;

REAL(sigaction)

/* --- holding ------------------------------------------------------------------------------------------------------- */

static bool is_mine(const Held *held) { return atomic_load(&held->owner) == &nessie_held_signals; }

/* As in the kernel: of the old signals one is pending at most. */
static bool is_held_already(int number) {
  if (number >= SIGRTMIN || nessie_held_signals == 0) return false;
  for (const Held *held = all_held; held < all_held + kMostHeld; ++held)
    if (is_mine(held) && held->info.si_signo == number) return true;
  return false;
}

static Held *claim(void) {
  for (Held *held = all_held; held < all_held + kMostHeld; ++held) {
    int *nobody = NULL;
    if (atomic_compare_exchange_strong(&held->owner, &nobody, &nessie_held_signals)) return held;
  }
  return NULL;
}

static bool start_timer(Held *held) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = held->info.si_signo};
  event.sigev_value.sival_ptr = held;
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &held->timer) != 0) return false;
  const struct itimerspec patience = {.it_value.tv_sec = kPatienceSeconds};
  if (syscall(SYS_timer_settime, held->timer, 0, &patience, NULL) == 0) return true;
  (void)syscall(SYS_timer_delete, held->timer);
  return false;
}

/* Whether the signal waits for the engine's end; otherwise there is no room for it. */
static bool hold(const siginfo_t *info) {
  if (is_held_already(info->si_signo)) return true;
  Held *held = claim();
  if (held == NULL) return false;
  held->info = *info;
  held->order = atomic_fetch_add(&next_order, 1);
  if (!start_timer(held)) {
    atomic_store(&held->owner, NULL);
    return false;
  }
  ++nessie_held_signals;
  return true;
}

static siginfo_t let_go(Held *held) {
  const siginfo_t info = held->info;
  (void)syscall(SYS_timer_delete, held->timer);
  --nessie_held_signals;
  atomic_store(&held->owner, NULL);
  return info;
}

static void send_again(siginfo_t *info) {
  (void)syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), info->si_signo, info);
}

static Held *first_of_mine(void) {
  Held *first = NULL;
  for (Held *held = all_held; held < all_held + kMostHeld; ++held)
    if (is_mine(held) && (first == NULL || (int)(held->order - first->order) < 0)) first = held;
  return first;
}

void nessie_release_signals(void) {
  const int error = errno;
  while (nessie_held_signals > 0) {
    siginfo_t info = let_go(first_of_mine());
    send_again(&info);
  }
  errno = error;
}

/* --- handling ------------------------------------------------------------------------------------------------------ */

/* Between calls for one time only, one comes first. For the others nobody handles the signal any more. */
static void *take_handler(int number, int flags) {
  if ((flags & SA_RESETHAND) == 0) return atomic_load(&wishes[number].handler);
  void *handler = atomic_exchange(&wishes[number].handler, NULL);
  const struct sigaction standard = {.sa_handler = SIG_DFL};
  if (handler != NULL) (void)BEHIND(sigaction)(number, &standard, NULL);
  return handler;
}

static void call_handler(int number, siginfo_t *info, void *context) {
  const int flags = atomic_load(&wishes[number].flags);
  void *handler = take_handler(number, flags);
  if (handler == NULL) {
    send_again(info);
  } else if ((flags & SA_SIGINFO) != 0) {
    void (*call)(int, siginfo_t *, void *);
    memcpy(&call, &handler, sizeof call);
    call(number, info, context);
  } else {
    void (*call)(int);
    memcpy(&call, &handler, sizeof call);
    call(number);
  }
}

/* NULL: the signal is none that a timer of ours sends. */
static Held *held_of_timer(const siginfo_t *info) {
  if (info->si_code != SI_TIMER) return NULL;
  for (Held *held = all_held; held < all_held + kMostHeld; ++held)
    if (info->si_value.sival_ptr == held) return held;
  return NULL;
}

static void on_signal(int number, siginfo_t *info, void *context) {
  const int error = errno;
  Held *const late = held_of_timer(info);
  if (late != NULL) {
    if (!is_mine(late) || late->timer != info->si_timerid) return;
    siginfo_t held = let_go(late);
    errno = error;
    call_handler(number, &held, context);
  } else if (!nessie_shim_is_inside() || !hold(info)) {
    errno = error;
    call_handler(number, info, context);
  } else {
    errno = error;
  }
}

/* --- what the program asks for ------------------------------------------------------------------------------------- */

/* Outside of runs nothing is held. A program may clear its environment later. */
static bool is_in_run(void) {
  static _Atomic int answer; /* 0: not asked yet */
  if (atomic_load(&answer) == 0) atomic_store(&answer, getenv("NESSIE_SERVERS") != NULL ? 1 : -1);
  return atomic_load(&answer) > 0;
}
__attribute__((constructor)) static void look_for_run(void) { (void)is_in_run(); }

static bool may_be_held(int number) {
  switch (number) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGSYS:
    case SIGPROF: return false;
    default: return number > 0 && number < kSignals && is_in_run();
  }
}

static bool is_function(sighandler_t handler) {
  return handler != SIG_DFL && handler != SIG_IGN && handler != SIG_HOLD && handler != SIG_ERR;
}

static Wish wish(int number) {
  if (number <= 0 || number >= kSignals) return (Wish){NULL, 0};
  return (Wish){atomic_load(&wishes[number].handler), atomic_load(&wishes[number].flags)};
}

static void set_wish(int number, Wish to) {
  atomic_store(&wishes[number].flags, to.flags);
  atomic_store(&wishes[number].handler, to.handler);
}

/* The kernel's action as the program knows it. */
static void show(Wish wished, struct sigaction *action) {
  if (action->sa_sigaction != on_signal) return;
  action->sa_flags = (action->sa_flags & ~kOurFlags) | wished.flags;
  memcpy(&action->sa_handler, &wished.handler, sizeof wished.handler);
}

typedef int Sigaction(int, const struct sigaction *, struct sigaction *);

static int set_held_action(Sigaction *behind, int number, const struct sigaction *action, struct sigaction *old) {
  const Wish before = wish(number);
  struct sigaction ours = *action;
  Wish after = {.flags = action->sa_flags & kOurFlags};
  memcpy(&after.handler, &action->sa_handler, sizeof after.handler);
  ours.sa_flags = (action->sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
  ours.sa_sigaction = on_signal;
  set_wish(number, after);
  const int result = behind(number, &ours, old);
  if (result != 0) set_wish(number, before);
  if (result == 0 && old != NULL) show(before, old);
  return result;
}

/* Whoever is behind us may carry out signal() by sigaction(), which is ours again, and hand on what we gave him. */
static bool is_ours(const struct sigaction *action) { return action != NULL && action->sa_sigaction == on_signal; }

static int set_action(Sigaction *behind, int number, const struct sigaction *action, struct sigaction *old) {
  if (is_ours(action)) return behind(number, action, old);
  if (action != NULL && may_be_held(number) && is_function(action->sa_handler))
    return set_held_action(behind, number, action, old);
  const Wish before = wish(number);
  const int result = behind(number, action, old);
  if (result == 0 && old != NULL) show(before, old);
  return result;
}

NESSIE_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
  return set_action(BEHIND(sigaction), number, action, old);
}
int __sigaction(int number, const struct sigaction *action, struct sigaction *old);
REAL(__sigaction)
NESSIE_EXPORT int __sigaction(int number, const struct sigaction *action, struct sigaction *old) {
  return set_action(BEHIND(__sigaction), number, action, old);
}

/* What the older functions set, among it what siginterrupt() had asked for, stays, but for the flags that are ours. */
static void adopt_flags(int number) {
  struct sigaction action;
  if (BEHIND(sigaction)(number, NULL, &action) != 0 || action.sa_sigaction != on_signal) return;
  atomic_store(&wishes[number].flags, action.sa_flags & SA_RESETHAND);
  action.sa_flags = (action.sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
  (void)BEHIND(sigaction)(number, &action, NULL);
}

typedef sighandler_t Signal(int, sighandler_t);

static sighandler_t shown(Wish wished, sighandler_t old) {
  if (old != (sighandler_t)(uintptr_t)on_signal) return old;
  return (sighandler_t)(uintptr_t)wished.handler;
}

static sighandler_t set_handler(Signal *behind, int number, sighandler_t handler) {
  const Wish before = wish(number);
  if (!may_be_held(number) || !is_function(handler)) return shown(before, behind(number, handler));
  set_wish(number, (Wish){(void *)(uintptr_t)handler, 0});
  const sighandler_t old = behind(number, (sighandler_t)(uintptr_t)on_signal);
  if (old == SIG_ERR)
    set_wish(number, before);
  else
    adopt_flags(number);
  return shown(before, old);
}

#define SIGNAL(name)                                                  \
  Signal name;                                                        \
  REAL(name)                                                          \
  NESSIE_EXPORT sighandler_t name(int number, sighandler_t handler) { \
    return set_handler(BEHIND(name), number, handler);                \
  }
SIGNAL(signal)
SIGNAL(bsd_signal)
SIGNAL(ssignal)
SIGNAL(sysv_signal)
SIGNAL(__sysv_signal)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* sigset() has side effects, but programs call it */
SIGNAL(sigset)
