//! Tail words: what of a message of up to 64 bytes does not fit beside its flag.

use rpc_bitmap::{Memory, System};
use rpc_types::Packet;
use rpc_types::packet::{TAILS, tails};

use super::super::{Header, Room, lanes};
use super::{LineOf, Places};

const _: () = assert!(
    TAILS == 5,
    "`take_all_rows` and `put_all_rows` count to that"
);

impl<M: Memory<Scope = System>, const WORDS: bool> LineOf<M, WORDS> {
    /// Whether each lane's tail words have come.
    #[inline(always)]
    pub(super) fn tails_are_here(&self, port: u32, header: &Header) -> bool {
        // Relaxed and read again by `take_tails`, as in `lanes_are_here`.
        lanes(header.mask).all(|lane| {
            let first = self.geometry.request_tail(port, lane);
            (0..tails(header.bytes)).all(|tail| {
                let place = first + tail * self.geometry.tail_row();
                self.shared.load32(place) == header.sequence
            })
        })
    }

    /// Takes messages of `N` tail words, whose words have been taken: 0 if all of them has come.
    #[inline(always)]
    fn take_rows<const N: usize>(
        &self,
        places: &Places,
        port: u32,
        header: &Header,
        room: &mut Room,
    ) -> u32 {
        let mut others = 0;
        // One access (A8) each: a word with this number came with it.
        self.shared.load128_each::<N>(
            places.request_tail(port),
            places.tail_row,
            header.mask,
            |lane, rows| {
                let lane = lane as usize & 63;
                let packet = &mut room.packets[lane];
                if N < TAILS {
                    *packet = Packet::ZERO;
                }
                packet.words[0] = room.words[lane];
                for (tail, word) in rows.into_iter().enumerate() {
                    others |= word[0] as u32 ^ header.sequence;
                    packet.put_tail(tail, word);
                }
            },
        );
        others
    }

    /// Writes `N` tail words for each lane.
    #[inline(always)]
    fn put_rows<const N: usize>(&self, places: &Places, port: u32, header: &Header, room: &Room) {
        // Relaxed: pairs with `take_reply_tails`, by the number in the same word (A8).
        self.shared.store128_each::<N>(
            places.reply_tail(port),
            places.tail_row,
            header.mask,
            |lane| {
                let packet = &room.packets[lane as usize & 63];
                core::array::from_fn(|tail| packet.get_tail(tail, header.sequence))
            },
        );
    }

    /// Takes messages that are longer than a word, whose words have been taken: 0 if all of them has
    /// come.
    #[inline(always)]
    pub(super) fn take_all_rows(
        &self,
        places: &Places,
        port: u32,
        header: &Header,
        room: &mut Room,
    ) -> u32 {
        match tails(header.bytes) {
            1 => self.take_rows::<1>(places, port, header, room),
            2 => self.take_rows::<2>(places, port, header, room),
            3 => self.take_rows::<3>(places, port, header, room),
            4 => self.take_rows::<4>(places, port, header, room),
            _ => self.take_rows::<TAILS>(places, port, header, room),
        }
    }

    /// Writes what of all lanes' messages is behind their words.
    #[inline(always)]
    pub(super) fn put_all_rows(
        &self,
        places: &Places,
        port: u32,
        header: &Header,
        bytes: usize,
        room: &Room,
    ) {
        match tails(bytes) {
            0 => {}
            1 => self.put_rows::<1>(places, port, header, room),
            2 => self.put_rows::<2>(places, port, header, room),
            3 => self.put_rows::<3>(places, port, header, room),
            4 => self.put_rows::<4>(places, port, header, room),
            _ => self.put_rows::<TAILS>(places, port, header, room),
        }
    }
}
