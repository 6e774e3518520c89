/* Ports. Part of gpurpc.h.
 *
 *   gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_TEST_INCREMENT));
 *   uint64_t value = 1;
 *   if (gpurpc_send(&port, &value, 1) == 0 && gpurpc_recv(&port, &value, 1) == 0)
 *       ...;
 *   gpurpc_close(&port);
 *
 * The first operation is a send. All lanes of a port do each operation together; each has its own message.
 * Operations return 0, or what the host says instead of going on with the conversation: 0x1000 its handler
 * failed, 0x1001 nobody handles the opcode, and what else docs/protocol.md lists under "Status"; then every
 * further operation returns the same. LLVM's wire has no such word, so there it is always 0.
 *
 * If no host has filled the client, the thread ends at the open. In `Line` (GPURPC_LINE) it also ends in an
 * open or an operation that still waits when the run is over. LLVM's wire has no stop word: there such a
 * thread waits without end.
 */
#ifndef GPURPC_PORT_H
#define GPURPC_PORT_H

typedef struct gpurpc_port {
    uint64_t mask;   /* the lanes that take part: the same in all of them, as all but `first` is */
    char *packets;
    uint32_t index;  /* which port */
    uint32_t number; /* of the last hand-over */
    uint32_t opcode;
    uint32_t parts; /* packets that a lane of a message has in each hand-over, */
    uint32_t first; /* and the first one of this lane */
    int opening;    /* nothing was handed over yet */
    int owned;      /* the packets are this side's */
    int status;
} gpurpc_port;

/* The lanes that are here together and want the same: a port carries one opcode. */
GPURPC_INLINE uint64_t gpurpc__gather(uint32_t opcode) {
    uint64_t mask = gpurpc__active();
    if (GPURPC__CONSTANT(opcode))
        return mask;
    for (;;) {
        int agrees = gpurpc__broadcast(mask, opcode) == opcode;
        uint64_t agreed = gpurpc__ballot(mask, agrees);
        if (agrees)
            return agreed;
        mask &= ~agreed;
    }
}

/* Opens a port, waiting until one is free. */
GPURPC_INLINE gpurpc_port gpurpc_open(uint32_t opcode) {
    gpurpc_port port;
    uint64_t found = 0;
    port.mask = gpurpc__gather(opcode);
    /* The leader waits for all; they meet in the broadcast. */
    if (gpurpc__leads(port.mask))
        found = gpurpc__lock();
    found = gpurpc__broadcast(port.mask, found);
    if (found == GPURPC__STOPPED)
        gpurpc__end_thread();
    /* The other lanes' first writes come behind what the leader acquired. */
    gpurpc__sync(port.mask);
    port.index = (uint32_t)(found >> 32);
    port.number = (uint32_t)found;
    port.packets = gpurpc__packets_of(port.index);
    port.opcode = opcode;
    port.parts = 1;
    port.first = gpurpc__lane();
    if (GPURPC__SPREADS && gpurpc__count(port.mask) * 2 <= GPURPC__LANES) {
        /* Lanes of a message use the packets of idle ones. */
        port.parts = GPURPC__LANES / gpurpc__count(port.mask);
        port.first = gpurpc__count(port.mask & ((1ull << gpurpc__lane()) - 1)) * port.parts;
    }
    port.opening = 1;
    port.owned = 1;
    port.status = 0;
    return port;
}

/* Gives the port back. If the last operation was a send, nobody waits for the host. */
GPURPC_INLINE void gpurpc_close(gpurpc_port *port) {
    gpurpc__sync(port->mask); /* all lanes are done with the packets */
    if (gpurpc__leads(port->mask))
        gpurpc__unlock(port->index, port->number, port->owned, gpurpc__lowest(port->mask));
}

/* Waits until this side owns the packets. */
GPURPC_INLINE int gpurpc__own(gpurpc_port *port) {
    uint64_t word = 0;
    if (port->owned || port->status)
        return port->status;
    if (gpurpc__leads(port->mask))
        word = gpurpc__await(port->index, port->number, gpurpc__lowest(port->mask));
    word = gpurpc__broadcast(port->mask, word);
    if (word == GPURPC__STOPPED)
        gpurpc__end_thread();
    gpurpc__sync(port->mask); /* what the leader acquired, to all */
    port->owned = 1;
    port->status = (int)word;
    return port->status;
}

GPURPC_INLINE void gpurpc__hand_over(gpurpc_port *port, int in_packets) {
    gpurpc__sync(port->mask); /* all lanes have written */
    port->number = GPURPC__NEXT(port->number);
    if (gpurpc__leads(port->mask))
        gpurpc__publish(port->index, port->number, port->opcode, port->mask, port->opening, in_packets);
    port->opening = 0;
    port->owned = 0;
}

/* Begins a receive: hands back what was received before. */
GPURPC_INLINE int gpurpc__expect(gpurpc_port *port) {
    if (port->owned && !port->status)
        gpurpc__hand_over(port, 0);
    return gpurpc__own(port);
}

/* Sends `count` words, at most 8. */
GPURPC_INLINE int gpurpc_send(gpurpc_port *port, const uint64_t *words, uint32_t count) {
    if (gpurpc__own(port))
        return port->status;
    for (uint32_t i = 0; i < count; i += 2)
        gpurpc__write16(port->packets + gpurpc__unit(gpurpc__lane(), i / 2), words[i],
                        i + 1 < count ? words[i + 1] : 0);
    gpurpc__hand_over(port, count != 0);
    return 0;
}

/* Receives `count` words, at most 8. */
GPURPC_INLINE int gpurpc_recv(gpurpc_port *port, uint64_t *words, uint32_t count) {
    if (gpurpc__expect(port))
        return port->status;
    for (uint32_t i = 0; i < count; i += 2) {
        uint64_t low, high;
        gpurpc__read16(port->packets + gpurpc__unit(gpurpc__lane(), i / 2), &low, &high);
        words[i] = low;
        if (i + 1 < count)
            words[i + 1] = high;
    }
    return 0;
}

/* ---- messages of any length ----
 *
 * The first packet begins with the length; bytes fill the rest of it and further packets. All lanes go on
 * until the longest message is through.
 *
 * In `Line` a long message may travel as its address: the length has this bit, and no bytes follow. */
#define GPURPC__REFERENCE (1ull << 63)

/* Bytes `at` to `at + 15` of a message into a packet; what is past its end means nothing. */
GPURPC_ONCE void gpurpc__put_bytes(void *place, const unsigned char *bytes, uint64_t count) {
    uint64_t words[2] = {0, 0};
    for (uint32_t i = 0; i < 16 && i < count; ++i)
        words[i / 8] |= (uint64_t)bytes[i] << 8 * (i % 8);
    gpurpc__write16(place, words[0], words[1]);
}
GPURPC_INLINE void gpurpc__put_unit(void *place, const void *data, uint64_t at, uint64_t length) {
    const unsigned char *bytes = (const unsigned char *)data + at;
    if (length - at >= 16 && (uintptr_t)bytes % 8 == 0)
        gpurpc__write16(place, ((const gpurpc__u64 *)bytes)[0], ((const gpurpc__u64 *)bytes)[1]);
    else
        gpurpc__put_bytes(place, bytes, length - at);
}

/* The reverse, for a buffer of `room` bytes. */
GPURPC_ONCE void gpurpc__take_bytes(unsigned char *bytes, uint64_t low, uint64_t high, uint64_t count) {
    for (uint32_t i = 0; i < 16 && i < count; ++i)
        bytes[i] = (unsigned char)((i < 8 ? low : high) >> 8 * (i % 8));
}
GPURPC_INLINE void gpurpc__take_unit(const void *place, void *data, uint64_t at, uint64_t room) {
    unsigned char *bytes = (unsigned char *)data + at;
    uint64_t low, high;
    if (at >= room)
        return; /* acknowledged, not kept */
    gpurpc__read16(place, &low, &high);
    if (room - at >= 16 && (uintptr_t)bytes % 8 == 0) {
        ((gpurpc__u64 *)bytes)[0] = low;
        ((gpurpc__u64 *)bytes)[1] = high;
    } else {
        gpurpc__take_bytes(bytes, low, high, room - at);
    }
}

/* Sends a message. */
GPURPC_INLINE int gpurpc_send_n(gpurpc_port *port, const void *data, uint64_t length) {
    uint64_t at = 0, told = length, address = 0;
    int first = 1;
#ifdef GPURPC_LINE
    if (GPURPC__CLIENT.bulk && length >= GPURPC__CLIENT.bulk)
        address = gpurpc__reach(data);
    if (address) {
        told |= GPURPC__REFERENCE;
        at = length;
    }
#endif
    do {
        if (gpurpc__own(port))
            return port->status;
        for (uint32_t part = 0; part < port->parts && (first || at < length); ++part) {
            uint32_t unit = 0, index = port->first + part;
            if (first) {
                uint64_t head = address;
                for (uint32_t i = 0; !address && i < 8 && i < length; ++i)
                    head |= (uint64_t)((const unsigned char *)data)[i] << 8 * i;
                gpurpc__write16(port->packets + gpurpc__unit(index, 0), told, head);
                unit = 1;
                at = address ? length : 8;
                first = 0;
            }
            for (; unit < 4 && at < length; ++unit, at += 16)
                gpurpc__put_unit(port->packets + gpurpc__unit(index, unit), data, at, length);
        }
        gpurpc__hand_over(port, 1);
    } while (gpurpc__any(port->mask, at < length));
#ifdef GPURPC_LINE
    /* The host has copied what was referred to: the message may change. */
    if (gpurpc__any(port->mask, address != 0))
        return gpurpc_recv(port, 0, 0);
#endif
    return 0;
}

/* Receives packets of a message: `*told` is its length as the host says it, with `GPURPC__REFERENCE`. */
GPURPC_INLINE int gpurpc__recv_packets(gpurpc_port *port, void *data, uint64_t room, uint64_t *told) {
    uint64_t at = 0, length = 0;
    int first = 1;
    do {
        if (gpurpc__expect(port))
            return port->status;
        for (uint32_t part = 0; part < port->parts && (first || at < length); ++part) {
            uint32_t unit = 0, index = port->first + part;
            if (first) {
                uint64_t head;
                gpurpc__read16(port->packets + gpurpc__unit(index, 0), told, &head);
                length = GPURPC__SPREADS && *told & GPURPC__REFERENCE ? 0 : *told;
                room = room < length ? room : length;
                gpurpc__take_bytes((unsigned char *)data, head, 0, room < 8 ? room : 8);
                unit = 1;
                at = 8;
                first = 0;
            }
            for (; unit < 4 && at < length; ++unit, at += 16)
                gpurpc__take_unit(port->packets + gpurpc__unit(index, unit), data, at, room);
        }
    } while (gpurpc__any(port->mask, at < length));
    return 0;
}

/* Receives a message: its first `room` bytes, and in `*length` how long it is, which may be more. */
GPURPC_INLINE int gpurpc_recv_n(gpurpc_port *port, void *data, uint64_t room, uint64_t *length) {
    uint64_t told = 0;
    if (gpurpc__recv_packets(port, data, room, &told))
        return port->status;
#ifdef GPURPC_LINE
    if (gpurpc__any(port->mask, (told & GPURPC__REFERENCE) != 0)) {
        /* Where each lane wants it, in its own packet; then in packets what has no such place. */
        uint64_t answer[2] = {0, 0}, rest = 0;
        if (told & GPURPC__REFERENCE) {
            answer[0] = gpurpc__reach(data);
            answer[1] = room;
        }
        if (gpurpc_send(port, answer, 2) ||
            gpurpc__recv_packets(port, data, told & GPURPC__REFERENCE && !answer[0] ? room : 0, &rest))
            return port->status;
        told &= ~GPURPC__REFERENCE;
    }
#endif
    *length = told;
    return 0;
}

#endif
