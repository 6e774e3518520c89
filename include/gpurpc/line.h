/* gpurpc's layout `Line`, as docs/protocol.md has it. Part of gpurpc.h.
 *
 * This client is one "without words of 16 bytes": messages in packets, the header's number alone and after
 * a release, the reply's flag read by the leader. That is right on every device; the Rust client of an
 * NVIDIA GPU saves both fences of a short call by such words.
 */
#ifndef GPURPC_LINE_H
#define GPURPC_LINE_H

/* What the image exports, and the host completes before the first kernel. */
typedef struct gpurpc__client {
    char magic[8];
    uint32_t version, layout, wished_ports;
    uint32_t ports, lanes, bulk;
    char *shared, *own;
    uint32_t flags, reserved[3];
} gpurpc__client;

#define GPURPC__CLIENT __gpurpc_client
#define GPURPC__CLIENT_INIT \
    = {{'g', 'p', 'u', 'r', 'p', 'c', 0, 0}, 3, 2, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0}}
/* After the last number comes 2: 0 is the memory's at the start, and the lowest bit turns. No lane's word
 * is written here, so none is to be cleared then. */
#define GPURPC__NEXT(number) ((number) == 0xFFFFFFFFu ? 2 : (number) + 1)
#define GPURPC__SPREADS 1

#ifdef GPURPC_CUDA
extern "C" {
GPURPC_DEVICE __attribute__((used)) gpurpc__client GPURPC__CLIENT GPURPC__CLIENT_INIT;
}
#else
GPURPC__EXTERN gpurpc__client GPURPC__CLIENT;
#endif

/* Where the arrays lie: bytes from the start of the shared region, each on a page of its own. The host
 * counts one port more, a panic handler's. */
GPURPC_INLINE uint64_t gpurpc__up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) & ~(to - 1); }
GPURPC_INLINE uint64_t gpurpc__total(void) { return (uint64_t)GPURPC__CLIENT.ports + 1; }
GPURPC_INLINE uint64_t gpurpc__request_size(void) { return gpurpc__up(64 + 16 * GPURPC__LANES, 64); }
GPURPC_INLINE uint64_t gpurpc__reply_size(void) { return gpurpc__up(16 * GPURPC__LANES, 32); }
GPURPC_INLINE uint64_t gpurpc__replies(void) {
    return 4096 + gpurpc__up(gpurpc__total() * gpurpc__request_size(), 4096);
}
GPURPC_INLINE uint64_t gpurpc__packets(void) {
    return gpurpc__replies() + gpurpc__up(gpurpc__total() * gpurpc__reply_size(), 4096);
}
GPURPC_INLINE uint64_t gpurpc__summaries(void) {
    uint64_t tails = gpurpc__up(gpurpc__total() * GPURPC__LANES * 80, 4096);
    return gpurpc__packets() + gpurpc__up(gpurpc__total() * GPURPC__LANES * 64, 4096) + 2 * tails;
}

GPURPC_INLINE char *gpurpc__request(uint32_t port) {
    return GPURPC__CLIENT.shared + 4096 + port * gpurpc__request_size();
}

/* A port's state in the device's own memory: the number of its last hand-over in the lower half, and */
#define GPURPC__LOCKED (1ull << 32)
#define GPURPC__IN_FLIGHT (1ull << 33) /* nobody waited for its last call */
#define GPURPC__LEADER 40              /* from this bit on, 6 bits: whose reply word that call has */

GPURPC_INLINE char *gpurpc__state(uint32_t port) { return GPURPC__CLIENT.own + 64 + 16 * (uint64_t)port; }

/* The first 8 bytes of a lane's reply word: number and meta in one access (A2). */
GPURPC_INLINE uint64_t gpurpc__reply(uint32_t port, uint32_t lane) {
    return gpurpc__load64(GPURPC__CLIENT.shared + gpurpc__replies() + port * gpurpc__reply_size() + 16 * lane);
}

/* Waits a little; every 1024 polls, whether the host has said that the run ends. */
GPURPC_INLINE int gpurpc__stopped(uint32_t polls) {
    gpurpc__pause(polls);
    return polls % 1024 == 0 && gpurpc__load32(GPURPC__CLIENT.shared) != 0;
}

/* The leader: locks any port that is owned; its index in the upper half, its number in the lower. */
GPURPC_ONCE uint64_t gpurpc__lock(void) {
    uint32_t ports = GPURPC__CLIENT.ports, start = gpurpc__hint(), polls = 0;
    if (!ports)
        return GPURPC__STOPPED; /* no host has filled the client */
    do {
        for (uint32_t i = 0; i < ports; ++i) {
            uint32_t port = (start + i) % ports;
            void *state = gpurpc__state(port);
            if (gpurpc__look64(state) & GPURPC__LOCKED)
                continue;
            /* Acquire: pairs with the release of `gpurpc__unlock`. This warp writes the packets behind
             * what the last holder read of them (A4). */
            uint64_t before = gpurpc__or64_acquire(state, GPURPC__LOCKED);
            if (before & GPURPC__LOCKED)
                continue;
            uint32_t leader = (uint32_t)(before >> GPURPC__LEADER) % 64, number = (uint32_t)before;
            if (before & GPURPC__IN_FLIGHT && (uint32_t)gpurpc__reply(port, leader) != number) {
                /* The server has it still. Release: as in `gpurpc__unlock`. */
                gpurpc__store64_release(state, before);
                continue;
            }
            /* Acquire: pairs with the server's release before its reply to a call that nobody waited for.
             * It has read what is overwritten now, and only because the reply is here. */
            gpurpc__acquire_dependent();
            return (uint64_t)port << 32 | number;
        }
    } while (!gpurpc__stopped(++polls));
    return GPURPC__STOPPED;
}

/* The leader, when all lanes are done with the port. */
GPURPC_ONCE void gpurpc__unlock(uint32_t port, uint32_t number, int owned, uint32_t leader) {
    uint64_t state = number;
    if (!owned)
        state |= GPURPC__IN_FLIGHT | (uint64_t)leader << GPURPC__LEADER;
    /* Release: pairs with the acquire in `gpurpc__lock` of the next holder. A store, since whoever tries
     * the lock meanwhile changes nothing. */
    gpurpc__store64_release(gpurpc__state(port), state);
}

/* A port's packets, and where unit `unit`, of 16 bytes, of packet `index` is among them: of all packets
 * first the first 16 bytes. */
GPURPC_INLINE char *gpurpc__packets_of(uint32_t port) {
    return GPURPC__CLIENT.shared + gpurpc__packets() + (uint64_t)port * GPURPC__LANES * 64;
}
GPURPC_INLINE uint32_t gpurpc__unit(uint32_t index, uint32_t unit) {
    return 16 * (unit * GPURPC__LANES + index);
}

/* The leader, after all lanes have written and met: hands the port over. */
GPURPC_ONCE void gpurpc__publish(uint32_t port, uint32_t number, uint32_t opcode, uint64_t mask,
                                   int opening, int in_packets) {
    char *request = gpurpc__request(port);
    /* 16-bit form of the opcode, flags, bytes. */
    uint32_t n = opcode & 0xFFFF, meta = (opening ? 1u << 8 : 0) | (in_packets ? 1u << 9 | 64 : 0);
    if (opcode - n == 0x63000000u && (n & 0xC000) != 0x4000) {
        meta |= n << 16;
    } else if (opcode - n == 0x75000000u && n < 0x4000) {
        meta |= (n | 0x4000) << 16;
    } else {
        meta |= 0xFFFFu << 16 | 1u << 11;
        gpurpc__store32(request + 16, opcode);
    }
    gpurpc__store32(request + 4, meta);
    gpurpc__store64(request + 8, mask);
    /* Release: pairs with the server's acquire after it has seen the number (A3). It sees the header, and
     * the packets of all lanes, which `gpurpc__sync` ordered before this (A4; AMD: A5). */
    gpurpc__release();
    gpurpc__store32(request, number);
    /* A hint for a server that sleeps; it carries no data and orders nothing. */
    gpurpc__store32(GPURPC__CLIENT.shared + gpurpc__summaries() + port / 64 * 16,
                    port % 64 << 26 | (number & 0x3FFFFFF));
}

/* The leader: waits until the port is owned again; the status that the host gives. */
GPURPC_ONCE uint64_t gpurpc__await(uint32_t port, uint32_t number, uint32_t leader) {
    uint64_t word;
    uint32_t polls = 0;
    while ((uint32_t)(word = gpurpc__reply(port, leader)) != number)
        if (gpurpc__stopped(++polls))
            return GPURPC__STOPPED;
    /* Acquire: pairs with the server's release before it wrote the word (A3); the other lanes are ordered
     * behind it by the sync that follows (A4). */
    gpurpc__acquire();
    return word >> 32 & 0xFFFFFF;
}

#endif
