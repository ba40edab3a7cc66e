/* The transition system of Cleaner.tla for SPIN: the same states, the same invariant, the same atomic actions.
 *
 * st[p]: 0 None, 1..N Paused(n), IN_PROGRESS, ABORTED; dirt[p]: 0..D; ret[p]: retention holds a pause;
 * cl[t]: the partition that thread t cleans, from 1; 0 if it is idle.
 * Every action is one d_step of the only process, so the states that SPIN stores are the states of the model, and each
 * is tested for the invariant once. The choices of p and t are written out by macros, for two threads and three to five
 * partitions: P=5 unless `spin -DP=3`.
 */
#ifndef P
#define P 5
#endif
#define T 2
#ifndef N
#define N 3
#endif
#ifndef D
#define D 1
#endif
#define IN_PROGRESS 14
#define ABORTED 15
#define paused_or_none(p) (st[p] <= N)

byte st[P];
byte dirt[P];
bit ret[P];
byte cl[T];

/* p is at least as dirty as every partition that may be grabbed */
#define no_dirtier(p, q) (st[q] != 0 || dirt[q] <= dirt[p])
#if P == 5
#define filthiest(p) (no_dirtier(p, 0) && no_dirtier(p, 1) && no_dirtier(p, 2) && no_dirtier(p, 3) && no_dirtier(p, 4))
#elif P == 4
#define filthiest(p) (no_dirtier(p, 0) && no_dirtier(p, 1) && no_dirtier(p, 2) && no_dirtier(p, 3))
#else
#define filthiest(p) (no_dirtier(p, 0) && no_dirtier(p, 1) && no_dirtier(p, 2))
#endif

#define write(p) \
	:: d_step { dirt[p] < D -> dirt[p]++ }
#define grab(t, p) \
	:: d_step { cl[t] == 0 && st[p] == 0 && dirt[p] > 0 && filthiest(p) -> \
		st[p] = IN_PROGRESS; cl[t] = p + 1; dirt[p] = 0 }
#define abort_and_pause(p) \
	:: d_step { st[p] == IN_PROGRESS -> st[p] = ABORTED } \
	:: d_step { st[p] < N -> st[p]++ }
#define resume(p) \
	:: d_step { paused_or_none(p) && st[p] > ret[p] -> st[p]-- }
#define retention_start(p) \
	:: d_step { !ret[p] && st[p] == 0 -> st[p] = 1; ret[p] = 1 }
#define retention_finish(p) \
	:: d_step { ret[p] -> st[p]--; ret[p] = 0 }
#define done(t) \
	:: d_step { cl[t] != 0 && st[cl[t] - 1] == IN_PROGRESS -> st[cl[t] - 1] = 0; cl[t] = 0 } \
	:: d_step { cl[t] != 0 && st[cl[t] - 1] != IN_PROGRESS -> st[cl[t] - 1] = 1; dirt[cl[t] - 1] = D; cl[t] = 0 }
#define partition(p) \
	write(p) grab(0, p) grab(1, p) abort_and_pause(p) resume(p) retention_start(p) retention_finish(p)

#define cleaned(p) (st[p] >= IN_PROGRESS)
#define excl(p) \
	((!ret[p] || (st[p] >= 1 && st[p] <= N)) && (cleaned(p) == (cl[0] == p + 1 || cl[1] == p + 1)) \
	 && !(cl[0] == p + 1 && cl[1] == p + 1))
#if P == 5
#define exclusive (excl(0) && excl(1) && excl(2) && excl(3) && excl(4))
#elif P == 4
#define exclusive (excl(0) && excl(1) && excl(2) && excl(3))
#else
#define exclusive (excl(0) && excl(1) && excl(2))
#endif

active proctype cleaner() {
end:	do
	:: d_step { !exclusive -> assert(false) }
	done(0) done(1)
	partition(0) partition(1) partition(2)
#if P > 3
	partition(3)
#endif
#if P > 4
	partition(4)
#endif
	od
}
