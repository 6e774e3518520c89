/* What differs between targets: memory, warps, the grid. Part of gpurpc.h.
 *
 * Ordering. Flags are relaxed and fences apart from them, as in the Rust client; the A numbers are the
 * assumptions of docs/memory-model.md.
 *
 * NVPTX has it all as PTX text: clang's builtins make a bare `atom`, relaxed at an unnamed scope, of an
 * acquiring read-modify-write, and a system-scope fence of a narrower one. A fence's mark is for
 * `cargo xtask check-ptx`.
 */
#ifndef GPURPC_TARGET_H
#define GPURPC_TARGET_H

#if defined(__NVPTX__) || defined(__CUDACC__) || defined(__CUDA__)
#define GPURPC_NVPTX 1
#elif defined(__AMDGCN__)
#define GPURPC_AMDGCN 1
#elif defined(__x86_64__)
#define GPURPC_CPU 1
#else
#error "gpurpc.h is for device code of nvptx64, amdgcn and x86_64"
#endif

#if defined(__CUDACC__) || defined(__CUDA__)
#define GPURPC_CUDA 1
#define GPURPC_DEVICE __attribute__((device))
#else
#define GPURPC_DEVICE
#endif

/* Whatever takes a mask is part of its caller: lanes that come to one function from two callers may run
 * in it together, and would leave it together. */
#define GPURPC_INLINE static inline __attribute__((always_inline, unused)) GPURPC_DEVICE
/* In an image once. It takes its masks itself and is done with them when it returns. */
#define GPURPC_ONCE static __attribute__((noinline, unused)) GPURPC_DEVICE

#ifdef __cplusplus
#define GPURPC_C extern "C"
#define GPURPC__EXTERN extern "C"
#else
#define GPURPC_C
#define GPURPC__EXTERN extern
#endif

typedef uint32_t __attribute__((may_alias)) gpurpc__u32;
typedef uint64_t __attribute__((may_alias)) gpurpc__u64;

/* ---- memory ---- */

#ifdef GPURPC_NVPTX

/* Regions lie in global memory: an access that may be to shared memory takes several instructions more. */
GPURPC_INLINE uint64_t gpurpc__global(const void *place) {
    uint64_t global;
    __asm__("cvta.to.global.u64 %0, %1;" : "=l"(global) : "l"(place));
    return global;
}

#define GPURPC__LOAD(name, type, constraint, instruction)                                                \
    GPURPC_INLINE type name(const void *place) {                                                         \
        type value;                                                                                      \
        __asm__ volatile(instruction " %0, [%1];"                                                        \
                         : "=" constraint(value)                                                         \
                         : "l"(gpurpc__global(place))                                                    \
                         : "memory");                                                                    \
        return value;                                                                                    \
    }
#define GPURPC__STORE(name, type, constraint, instruction)                                               \
    GPURPC_INLINE void name(void *place, type value) {                                                   \
        __asm__ volatile(instruction " [%0], %1;" ::"l"(gpurpc__global(place)), constraint(value)        \
                         : "memory");                                                                    \
    }
#define GPURPC__CHANGE(name, type, constraint, instruction)                                              \
    GPURPC_INLINE type name(void *place, type value) {                                                   \
        type before;                                                                                     \
        __asm__ volatile(instruction " %0, [%1], %2;"                                                    \
                         : "=" constraint(before)                                                        \
                         : "l"(gpurpc__global(place)), constraint(value)                                 \
                         : "memory");                                                                    \
        return before;                                                                                   \
    }

/* Shared with the host. */
GPURPC__LOAD(gpurpc__load32, uint32_t, "r", "ld.relaxed.sys.global.u32")
GPURPC__LOAD(gpurpc__load64, uint64_t, "l", "ld.relaxed.sys.global.u64")
GPURPC__STORE(gpurpc__store32, uint32_t, "r", "st.relaxed.sys.global.u32")
GPURPC__STORE(gpurpc__store64, uint64_t, "l", "st.relaxed.sys.global.u64")
/* The device's own. */
GPURPC__LOAD(gpurpc__look32, uint32_t, "r", "ld.relaxed.gpu.global.u32")
GPURPC__LOAD(gpurpc__look64, uint64_t, "l", "ld.relaxed.gpu.global.u64")
GPURPC__CHANGE(gpurpc__or32, uint32_t, "r", "atom.relaxed.gpu.global.or.b32")
GPURPC__CHANGE(gpurpc__or32_acquire, uint32_t, "r", "atom.acquire.gpu.global.or.b32")
GPURPC__CHANGE(gpurpc__and32_release, uint32_t, "r", "atom.release.gpu.global.and.b32")
GPURPC__CHANGE(gpurpc__or64_acquire, uint64_t, "l", "atom.acquire.gpu.global.or.b64")
GPURPC__STORE(gpurpc__store64_release, uint64_t, "l", "st.release.gpu.global.u64")

/* A packet's bytes, in units of 16: volatile, which is strong, so that no stale cache is looked into (A11).
 * One access, but nothing relies on that. */
GPURPC_INLINE void gpurpc__read16(const void *place, uint64_t *low, uint64_t *high) {
    __asm__ volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(*low), "=l"(*high)
                     : "l"(gpurpc__global(place))
                     : "memory");
}
GPURPC_INLINE void gpurpc__write16(void *place, uint64_t low, uint64_t high) {
    __asm__ volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(gpurpc__global(place)), "l"(low),
                     "l"(high)
                     : "memory");
}

/* PTX has one fence for both. */
GPURPC_INLINE void gpurpc__release(void) {
    __asm__ volatile("fence.acq_rel.sys; // gpurpc:system" ::: "memory");
}
GPURPC_INLINE void gpurpc__acquire(void) {
    __asm__ volatile("fence.acq_rel.sys; // gpurpc:system" ::: "memory");
}
/* Where what follows is only done because of the value read (A11). */
GPURPC_INLINE void gpurpc__acquire_dependent(void) { __asm__ volatile("" ::: "memory"); }

/* The address where the host can copy to and from, or 0. */
GPURPC_INLINE uint64_t gpurpc__reach(const void *place) {
    uint32_t is_global;
    __asm__("{ .reg .pred %%g; isspacep.global %%g, %1; selp.u32 %0, 1, 0, %%g; }"
            : "=r"(is_global)
            : "l"(place));
    return is_global ? (uint64_t)place : 0;
}

#else /* not NVPTX: the builtins do what they say */

#ifdef GPURPC_AMDGCN
#define GPURPC__SYSTEM , __MEMORY_SCOPE_SYSTEM
#define GPURPC__OWN , __MEMORY_SCOPE_DEVICE
#define GPURPC__ATOMIC(operation) __scoped_atomic_##operation
#else
#define GPURPC__SYSTEM
#define GPURPC__OWN
#define GPURPC__ATOMIC(operation) __atomic_##operation
#endif

#define GPURPC__LOAD(name, type, scope)                                                                  \
    GPURPC_INLINE uint##type##_t name(const void *place) {                                               \
        return GPURPC__ATOMIC(load_n)((const gpurpc__u##type *)place, __ATOMIC_RELAXED scope);           \
    }
#define GPURPC__STORE(name, type, order, scope)                                                          \
    GPURPC_INLINE void name(void *place, uint##type##_t value) {                                         \
        GPURPC__ATOMIC(store_n)((gpurpc__u##type *)place, value, order scope);                           \
    }
#define GPURPC__CHANGE(name, type, operation, order)                                                     \
    GPURPC_INLINE uint##type##_t name(void *place, uint##type##_t value) {                               \
        return GPURPC__ATOMIC(operation)((gpurpc__u##type *)place, value, order GPURPC__OWN);            \
    }

/* Shared with the host. */
GPURPC__LOAD(gpurpc__load32, 32, GPURPC__SYSTEM)
GPURPC__LOAD(gpurpc__load64, 64, GPURPC__SYSTEM)
GPURPC__STORE(gpurpc__store32, 32, __ATOMIC_RELAXED, GPURPC__SYSTEM)
GPURPC__STORE(gpurpc__store64, 64, __ATOMIC_RELAXED, GPURPC__SYSTEM)
/* The device's own. */
GPURPC__LOAD(gpurpc__look32, 32, GPURPC__OWN)
GPURPC__LOAD(gpurpc__look64, 64, GPURPC__OWN)
GPURPC__CHANGE(gpurpc__or32, 32, fetch_or, __ATOMIC_RELAXED)
GPURPC__CHANGE(gpurpc__or32_acquire, 32, fetch_or, __ATOMIC_ACQUIRE)
GPURPC__CHANGE(gpurpc__and32_release, 32, fetch_and, __ATOMIC_RELEASE)
GPURPC__CHANGE(gpurpc__or64_acquire, 64, fetch_or, __ATOMIC_ACQUIRE)
GPURPC__STORE(gpurpc__store64_release, 64, __ATOMIC_RELEASE, GPURPC__OWN)

/* A packet's bytes, in units of 16. */
GPURPC_INLINE void gpurpc__read16(const void *place, uint64_t *low, uint64_t *high) {
    *low = ((const volatile gpurpc__u64 *)place)[0];
    *high = ((const volatile gpurpc__u64 *)place)[1];
}
GPURPC_INLINE void gpurpc__write16(void *place, uint64_t low, uint64_t high) {
    ((volatile gpurpc__u64 *)place)[0] = low;
    ((volatile gpurpc__u64 *)place)[1] = high;
}

#ifdef GPURPC_AMDGCN
/* No scope named: the system's. */
GPURPC_INLINE void gpurpc__release(void) { __builtin_amdgcn_fence(__ATOMIC_RELEASE, ""); }
GPURPC_INLINE void gpurpc__acquire(void) { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, ""); }
GPURPC_INLINE uint64_t gpurpc__reach(const void *place) {
    /* Memory that the host may copy under a running kernel is not told apart here. */
    (void)place;
    return 0;
}
#else
GPURPC_INLINE void gpurpc__release(void) { __atomic_thread_fence(__ATOMIC_RELEASE); }
GPURPC_INLINE void gpurpc__acquire(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
GPURPC_INLINE uint64_t gpurpc__reach(const void *place) { return (uint64_t)place; }
#endif
GPURPC_INLINE void gpurpc__acquire_dependent(void) { gpurpc__acquire(); }

#endif

#undef GPURPC__LOAD
#undef GPURPC__STORE
#undef GPURPC__CHANGE

/* ---- warps and the grid ----
 *
 * A mask has a bit for each lane. `gpurpc__active` gives the lanes that are here together; the lowest
 * lane of a mask leads it. Every lane of the mask calls what takes one.
 */

#if defined(GPURPC_CUDA) && !defined(__clang__)
GPURPC_INLINE uint32_t gpurpc__lowest(uint64_t mask) { return (uint32_t)__ffsll((long long)mask) - 1; }
GPURPC_INLINE uint32_t gpurpc__count(uint64_t mask) { return (uint32_t)__popcll(mask); }
#define GPURPC__CONSTANT(value) 0
#else
GPURPC_INLINE uint32_t gpurpc__lowest(uint64_t mask) { return (uint32_t)__builtin_ctzll(mask); }
GPURPC_INLINE uint32_t gpurpc__count(uint64_t mask) { return (uint32_t)__builtin_popcountll(mask); }
#define GPURPC__CONSTANT(value) __builtin_constant_p(value)
#endif

/* Declares gpurpc_thread, gpurpc_block, gpurpc_threads and gpurpc_blocks, of dimension 0 to 2. */
#define GPURPC__GRID(name, x, y, z)                                                                      \
    GPURPC_INLINE uint32_t name(int dimension) { return dimension == 0 ? (x) : dimension == 1 ? (y) : (z); }

#ifdef GPURPC_NVPTX

#define GPURPC__REGISTER(name, text)                                                                     \
    GPURPC_INLINE uint32_t name(void) {                                                                  \
        uint32_t value;                                                                                  \
        __asm__("mov.u32 %0, %%" text ";" : "=r"(value));                                                \
        return value;                                                                                    \
    }
GPURPC__REGISTER(gpurpc__lane, "laneid")
GPURPC__REGISTER(gpurpc__warp, "warpid")
GPURPC__REGISTER(gpurpc__sm, "smid")
GPURPC__REGISTER(gpurpc__sms, "nsmid")
#define GPURPC__REGISTERS(name, text)                                                                    \
    GPURPC__REGISTER(name##_x, text ".x")                                                                \
    GPURPC__REGISTER(name##_y, text ".y")                                                                \
    GPURPC__REGISTER(name##_z, text ".z")                                                                \
    GPURPC__GRID(name, name##_x(), name##_y(), name##_z())
GPURPC__REGISTERS(gpurpc_thread, "tid")
GPURPC__REGISTERS(gpurpc_block, "ctaid")
GPURPC__REGISTERS(gpurpc_threads, "ntid")
GPURPC__REGISTERS(gpurpc_blocks, "nctaid")
#undef GPURPC__REGISTERS
#undef GPURPC__REGISTER

#define GPURPC__LANES 32u
/* The compiler knows of intrinsics that lanes take part together; of assembly it may not. */
#ifdef __clang__
#define GPURPC__ACTIVE() __nvvm_activemask()
#define GPURPC__BALLOT(mask, value) __nvvm_vote_ballot_sync(mask, value)
#define GPURPC__SHUFFLE(mask, value, lane) __nvvm_shfl_sync_idx_i32(mask, value, lane, 31)
#define GPURPC__SYNC(mask) __nvvm_bar_warp_sync(mask)
#else
#define GPURPC__ACTIVE() __activemask()
#define GPURPC__BALLOT(mask, value) __ballot_sync(mask, value)
#define GPURPC__SHUFFLE(mask, value, lane) __shfl_sync(mask, value, lane)
#define GPURPC__SYNC(mask) __syncwarp(mask)
#endif

/* Each lane's copy of the mask goes through a shuffle from itself. ptxas takes the result of `activemask` for
 * the same in all lanes that run together from there on, and leaves out of each `.sync` operation what
 * tells masks apart; but lanes that took masks apart may come to run together (A12). */
GPURPC_INLINE uint64_t gpurpc__active(void) {
    uint32_t mask = (uint32_t)GPURPC__ACTIVE();
    return (uint32_t)GPURPC__SHUFFLE(mask, (int)mask, (int)gpurpc__lane());
}
GPURPC_INLINE uint64_t gpurpc__ballot(uint64_t mask, int value) {
    return (uint32_t)GPURPC__BALLOT((uint32_t)mask, value != 0);
}
GPURPC_INLINE uint64_t gpurpc__broadcast(uint64_t mask, uint64_t value) {
    uint32_t lanes = (uint32_t)mask, leader = gpurpc__lowest(mask);
    uint32_t low = (uint32_t)GPURPC__SHUFFLE(lanes, (int)(uint32_t)value, (int)leader);
    uint32_t high = (uint32_t)GPURPC__SHUFFLE(lanes, (int)(uint32_t)(value >> 32), (int)leader);
    return (uint64_t)high << 32 | low;
}
/* What each lane did before is seen by all after (A4). */
GPURPC_INLINE void gpurpc__sync(uint64_t mask) { GPURPC__SYNC((uint32_t)mask); }
GPURPC_INLINE void gpurpc__pause(uint32_t polls) {
    uint32_t nanoseconds = polls < 64 ? 20 : 500;
    __asm__ volatile("nanosleep.u32 %0;" ::"r"(nanoseconds));
}
/* Slot first: few warps use few, low ports. */
GPURPC_INLINE uint32_t gpurpc__hint(void) { return gpurpc__warp() * gpurpc__sms() + gpurpc__sm(); }
/* Ends this thread alone, without a trap. */
GPURPC_INLINE void gpurpc__end_thread(void) { __asm__ volatile("exit;"); }

#elif defined(GPURPC_AMDGCN)

GPURPC__GRID(gpurpc_thread, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
             __builtin_amdgcn_workitem_id_z())
GPURPC__GRID(gpurpc_block, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
             __builtin_amdgcn_workgroup_id_z())
GPURPC__GRID(gpurpc_threads, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
             __builtin_amdgcn_workgroup_size_z())
/* The dispatch counts threads, not blocks. */
#define GPURPC__BLOCKS(d)                                                                                \
    ((__builtin_amdgcn_grid_size_##d() + __builtin_amdgcn_workgroup_size_##d() - 1) /                     \
     __builtin_amdgcn_workgroup_size_##d())
GPURPC__GRID(gpurpc_blocks, GPURPC__BLOCKS(x), GPURPC__BLOCKS(y), GPURPC__BLOCKS(z))
#undef GPURPC__BLOCKS

#define GPURPC__LANES ((uint32_t)__builtin_amdgcn_wavefrontsize())

GPURPC_INLINE uint32_t gpurpc__lane(void) {
    return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
GPURPC_INLINE uint64_t gpurpc__ballot(uint64_t mask, int value) {
    return __builtin_amdgcn_ballot_w64(value != 0) & mask;
}
GPURPC_INLINE uint64_t gpurpc__active(void) { return gpurpc__ballot(~0ull, 1); }
GPURPC_INLINE uint64_t gpurpc__broadcast(uint64_t mask, uint64_t value) {
    /* Lanes of different masks may be here together, each with a leader of its own: one after the other. */
    uint32_t leader = gpurpc__lowest(mask);
    for (;;) {
        uint32_t first = __builtin_amdgcn_readfirstlane(leader);
        if (leader == first) {
            uint32_t low = __builtin_amdgcn_readlane((uint32_t)value, first);
            uint32_t high = __builtin_amdgcn_readlane((uint32_t)(value >> 32), first);
            return (uint64_t)high << 32 | low;
        }
    }
}
GPURPC_INLINE void gpurpc__sync(uint64_t mask) {
    /* Lanes run in lock step and share the counters that a fence of the leader waits for (A5): only the
     * compiler must not reorder. */
    (void)mask;
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    __builtin_amdgcn_wave_barrier();
}
GPURPC_INLINE void gpurpc__pause(uint32_t polls) {
    if (polls < 64)
        __builtin_amdgcn_s_sleep(1);
    else
        __builtin_amdgcn_s_sleep(8);
}
/* Ends this thread and its wavefront: for when the run is ending. */
GPURPC_INLINE void gpurpc__end_thread(void) { __builtin_amdgcn_endpgm(); }

#else /* the CPU device */

/* Who a thread is: the last argument of each kernel. */
typedef struct gpurpc__identity {
    uint32_t block[3], thread[3], blocks[3], threads[3];
} gpurpc__identity;
typedef struct gpurpc__self {
    const gpurpc__identity *who;
    void *leave[5]; /* to the end of the kernel */
} gpurpc__self;
/* GPURPC_CLIENT defines it. */
GPURPC__EXTERN __thread gpurpc__self gpurpc__this __attribute__((visibility("hidden")));

GPURPC_INLINE uint32_t gpurpc_thread(int dimension) { return gpurpc__this.who->thread[dimension]; }
GPURPC_INLINE uint32_t gpurpc_block(int dimension) { return gpurpc__this.who->block[dimension]; }
GPURPC_INLINE uint32_t gpurpc_threads(int dimension) { return gpurpc__this.who->threads[dimension]; }
GPURPC_INLINE uint32_t gpurpc_blocks(int dimension) { return gpurpc__this.who->blocks[dimension]; }

#define GPURPC__LANES 1u
GPURPC_INLINE uint32_t gpurpc__lane(void) { return 0; }
GPURPC_INLINE uint64_t gpurpc__active(void) { return 1; }
GPURPC_INLINE uint64_t gpurpc__ballot(uint64_t mask, int value) { return value ? mask : 0; }
GPURPC_INLINE uint64_t gpurpc__broadcast(uint64_t mask, uint64_t value) {
    (void)mask;
    return value;
}
GPURPC_INLINE void gpurpc__sync(uint64_t mask) { (void)mask; }
GPURPC_INLINE long gpurpc__syscall(long number, const void *first, const void *second) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second)
                     : "rcx", "r11", "memory");
    return result;
}
/* Spins, then lets others run, then sleeps: with more threads than cores, spinning takes ten times as long. */
GPURPC_INLINE void gpurpc__pause(uint32_t polls) {
    if (polls > 20000) {
        static const long time[2] = {0, 50000};
        (void)gpurpc__syscall(35, time, 0); /* nanosleep */
    } else if (polls > 200) {
        (void)gpurpc__syscall(24, 0, 0); /* sched_yield */
    } else {
        __builtin_ia32_pause();
    }
}
/* Ends this thread alone: goes back to its kernel, which returns. */
GPURPC_ONCE void gpurpc__end_thread(void) { __builtin_longjmp(gpurpc__this.leave, 1); }

#endif
#undef GPURPC__GRID

/* What a leader found instead of a port or a status: the run is over. */
#define GPURPC__STOPPED (~0ull)

/* Whether `value` is true on any lane of `mask`. */
GPURPC_INLINE int gpurpc__any(uint64_t mask, int value) { return gpurpc__ballot(mask, value) != 0; }
GPURPC_INLINE int gpurpc__leads(uint64_t mask) { return gpurpc__lane() == gpurpc__lowest(mask); }

/* This thread's number in its block, and its block's in the grid. */
GPURPC_INLINE uint32_t gpurpc_thread_index(void) {
    return (gpurpc_thread(2) * gpurpc_threads(1) + gpurpc_thread(1)) * gpurpc_threads(0) + gpurpc_thread(0);
}
GPURPC_INLINE uint32_t gpurpc_block_index(void) {
    return (gpurpc_block(2) * gpurpc_blocks(1) + gpurpc_block(1)) * gpurpc_blocks(0) + gpurpc_block(0);
}
GPURPC_INLINE uint32_t gpurpc_block_size(void) {
    return gpurpc_threads(0) * gpurpc_threads(1) * gpurpc_threads(2);
}
/* This thread's number in the grid. */
GPURPC_INLINE uint64_t gpurpc_index(void) {
    return (uint64_t)gpurpc_block_index() * gpurpc_block_size() + gpurpc_thread_index();
}

#ifndef GPURPC_NVPTX
/* Where the search for a port starts. Nothing says where this warp runs; blocks start in order, so
 * counting warps spreads those that run at once. */
GPURPC_INLINE uint32_t gpurpc__hint(void) {
    uint32_t warps = (gpurpc_block_size() + GPURPC__LANES - 1) / GPURPC__LANES;
    return gpurpc_block_index() * warps + gpurpc_thread_index() / GPURPC__LANES;
}
#endif

#endif
