/* The layout of LLVM's libc for GPUs. Part of gpurpc.h.
 *
 * A port has two u32 mailboxes, the client's outbox and its inbox, a header of 16 bytes {mask u64, opcode
 * u32} and a packet of 64 bytes for each lane of a warp. The client owns the packets when both boxes are
 * equal. All of that is shared memory; the locks are in the client object, the device's own memory.
 */
#ifndef GPURPC_LLVM_H
#define GPURPC_LLVM_H

#ifdef GPURPC_LLVM_22
#define GPURPC__LOCKS 128
#else
#define GPURPC__LOCKS 512
#endif

/* The host fills it before the first kernel; its size says which form it is. */
typedef struct gpurpc__client {
    uint32_t ports;
#ifndef GPURPC_LLVM_22
    /* To wake a server that sleeps. Not rung: gpurpc's servers look by themselves, and leave it empty. */
    void *doorbell;
#endif
    char *inbox;  /* u32 for each port, the server's outbox */
    char *outbox; /* u32 for each port */
    char *header; /* 16 bytes for each port */
    char *packet; /* 64 bytes for each lane of each port */
    uint32_t locks[GPURPC__LOCKS];
} gpurpc__client;

#ifdef __cplusplus
static_assert(sizeof(gpurpc__client) == (GPURPC__LOCKS == 128 ? 552 : 2096), "the wire's client object");
#else
_Static_assert(sizeof(gpurpc__client) == (GPURPC__LOCKS == 128 ? 552 : 2096), "the wire's client object");
#endif

#define GPURPC__CLIENT __llvm_rpc_client
#define GPURPC__CLIENT_INIT
/* The number of a port's last hand-over is its outbox: 0 or 1. */
#define GPURPC__NEXT(number) (!(number))
/* Packets that a lane of a message has in a hand-over. */
#define GPURPC__SPREADS 0

#ifdef GPURPC_CUDA
/* In one file, without relocatable device code. */
extern "C" {
GPURPC_DEVICE __attribute__((used)) gpurpc__client GPURPC__CLIENT;
}
#else
GPURPC__EXTERN gpurpc__client GPURPC__CLIENT;
#endif

/* The leader: locks any port that is owned; its index in the upper half, its outbox in the lower. */
GPURPC_ONCE uint64_t gpurpc__lock(void) {
    gpurpc__client *client = &GPURPC__CLIENT;
    uint32_t ports = client->ports, start = gpurpc__hint(), polls = 0;
    if (!ports)
        return GPURPC__STOPPED; /* no host has filled the client */
    for (;; gpurpc__pause(++polls)) {
        for (uint32_t i = 0; i < ports; ++i) {
            uint32_t port = (start + i) % ports, bit = 1u << port % 32;
            uint32_t *word = &client->locks[port / 32 % GPURPC__LOCKS];
            if (gpurpc__look32(word) & bit)
                continue;
            /* Acquire: pairs with the release of `gpurpc__unlock`. This warp writes the packets, and its
             * outbox, behind what the last holder read and wrote (A4). */
            if (gpurpc__or32_acquire(word, bit) & bit)
                continue;
            uint32_t in = gpurpc__load32(client->inbox + 4 * port);
            uint32_t out = gpurpc__load32(client->outbox + 4 * port);
            if (in == out) {
                /* Acquire: pairs with the server's release before it set its box. It has read, after a
                 * call that nobody waited for, what is overwritten now, and only because the boxes are
                 * equal. */
                gpurpc__acquire_dependent();
                return (uint64_t)port << 32 | out;
            }
            /* The server has it still. Release: as in `gpurpc__unlock`. */
            (void)gpurpc__and32_release(word, ~bit);
        }
    }
}

/* The leader, when all lanes are done with the port. One that the server owns stays unavailable by its
 * boxes. */
GPURPC_ONCE void gpurpc__unlock(uint32_t port, uint32_t number, int owned, uint32_t leader) {
    (void)number, (void)owned, (void)leader;
    /* Release: pairs with the acquire in `gpurpc__lock` of the next holder. */
    (void)gpurpc__and32_release(&GPURPC__CLIENT.locks[port / 32 % GPURPC__LOCKS], ~(1u << port % 32));
}

/* A port's packets, and where unit `unit`, of 16 bytes, of packet `index` is among them. */
GPURPC_INLINE char *gpurpc__packets_of(uint32_t port) {
    return GPURPC__CLIENT.packet + (uint64_t)port * GPURPC__LANES * 64;
}
GPURPC_INLINE uint32_t gpurpc__unit(uint32_t index, uint32_t unit) { return index * 64 + 16 * unit; }

/* The leader, after all lanes have written and met: hands the port over. */
GPURPC_ONCE void gpurpc__publish(uint32_t port, uint32_t number, uint32_t opcode, uint64_t mask,
                                   int opening, int in_packets) {
    (void)in_packets;
    if (opening) {
        gpurpc__store64(GPURPC__CLIENT.header + 16 * (uint64_t)port, mask);
        gpurpc__store32(GPURPC__CLIENT.header + 16 * (uint64_t)port + 8, opcode);
    }
    /* Release: pairs with the server's acquire after it has seen the outbox (A3). It sees the header, and
     * the packets of all lanes, which `gpurpc__sync` ordered before this (A4; AMD: A5). */
    gpurpc__release();
    gpurpc__store32(GPURPC__CLIENT.outbox + 4 * (uint64_t)port, number);
}

/* The leader: waits until the port is owned again. This wire has no status: 0. */
GPURPC_ONCE uint64_t gpurpc__await(uint32_t port, uint32_t number, uint32_t leader) {
    uint32_t polls = 0;
    (void)leader;
    while (gpurpc__load32(GPURPC__CLIENT.inbox + 4 * (uint64_t)port) != number)
        gpurpc__pause(++polls);
    /* Acquire: pairs with the server's release before it set its box (A3); the other lanes are ordered
     * behind it by the sync that follows (A4). */
    gpurpc__acquire();
    return 0;
}

#endif
