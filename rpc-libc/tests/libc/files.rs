//! Files: what is in them, and what their streams say.

use std::fs;

use rpc_types::Opcode;

use crate::rig::{Calls, EOF, LIMIT, Layout, Plan, content, on_all_layouts};

on_all_layouts!(
    text_goes_and_comes,
    modes,
    ends_of_files,
    lines,
    pushed_back,
    positions,
    reading_and_writing,
    appending,
    buffers_are_written_at_the_end,
    handles_of_closed_files,
);

fn text_goes_and_comes<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    // Around a packet, the buffer, and a piece of a long read.
    for length in [0, 1, 55, 56, 57, 64, 16_383, 16_384, 16_385, 300_001] {
        let bytes = content(length);
        let file = client.fopen(&path, "wb");
        assert!(file != 0 && file.is_multiple_of(4));
        for part in [&bytes[..length / 3], &bytes[length / 3..]] {
            assert_eq!(client.fwrite(file, part), part.len() as u64);
        }
        assert_eq!(client.fread(file, 1), b"", "it is not for reading");
        assert_eq!(client.flags(file), (false, true));
        assert_eq!(client.fclose(file), 0);
        assert!(fs::read(&path).unwrap() == bytes);
        let file = client.fopen(&path, "r");
        let (first, rest) = bytes.split_at(length.min(20_000));
        assert!(client.fread(file, first.len() as u64) == first);
        assert_eq!(client.flags(file), (false, false));
        assert!(client.fread(file, 1 << 40) == rest);
        assert_eq!(client.flags(file), (true, false));
        assert_eq!(client.fwrite(file, b"x"), 0, "it is not for writing");
        assert_eq!(client.flags(file), (true, true));
        assert_eq!(client.word(Opcode::CLEARERR, file), 0);
        assert_eq!(client.flags(file), (false, false));
        assert_eq!(client.fclose(file), 0);
    }
}

fn modes<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    for (mode, opens, left) in [
        ("r", false, None),
        ("r+", false, None),
        ("wx", true, Some("")),
        ("wx", false, Some("")),
        ("a", true, Some("text")),
        ("ax", false, Some("text")),
        ("rb", true, Some("text")),
        ("r+be", true, Some("texttext")),
        ("w+", true, Some("text")),
        ("q", false, Some("text")),
        ("", false, Some("text")),
        ("rw", false, Some("text")),
        ("w", true, Some("text")),
    ] {
        let file = client.fopen(&path, mode);
        assert_eq!(file != 0, opens, "{mode}");
        if opens && mode != "wx" {
            if mode == "r+be" {
                assert_eq!(client.fseek(file, 0, 2), 0);
            }
            let writes = mode != "rb";
            assert_eq!(client.fwrite(file, b"text"), if writes { 4 } else { 0 });
        }
        assert_eq!(client.fclose(file), if opens { 0 } else { EOF });
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), left, "{mode}");
    }
    // A folder can be opened, and not read.
    let folder = client.fopen(rig.folder.to_str().unwrap(), "r");
    assert_eq!(client.fread(folder, 5), b"");
    assert_eq!(client.flags(folder), (false, true));
    assert_eq!(client.fopen(rig.folder.to_str().unwrap(), "w"), 0);
    assert_eq!(client.fopen("", "r"), 0);
}

fn ends_of_files<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    fs::write(&path, "12345").unwrap();
    let file = client.fopen(&path, "r");
    assert_eq!(client.fread(file, 0), b"");
    assert_eq!(client.fread(file, 5), b"12345");
    assert_eq!(
        client.flags(file),
        (false, false),
        "nobody has seen the end"
    );
    assert_eq!(client.fread(file, 1), b"");
    assert_eq!(client.flags(file), (true, false));
    // Now there is more, and the end is still the end until it is cleared.
    fs::write(&path, "123456").unwrap();
    assert_eq!(client.fread(file, 1), b"");
    client.word(Opcode::CLEARERR, file);
    assert_eq!(client.fread(file, 100), b"6");
    assert_eq!(client.fseek(file, -2, 1), 0);
    assert_eq!(client.flags(file), (false, false));
    assert_eq!(client.fread(file, 100), b"56");
}

fn lines<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    let long = "x".repeat(40_000);
    fs::write(&path, format!("one\n\ntwo\0and\n{long}\nlast")).unwrap();
    let file = client.fopen(&path, "r");
    for count in [0, 1 << 63, u64::MAX] {
        assert_eq!(client.fgets(file, count), None);
    }
    let line = |count| client.fgets(file, count).map(String::from_utf8);
    for (count, text) in [
        (1, ""),
        (3, "on"),
        (2, "e"),
        (2, "\n"),
        (100, "\n"),
        (100, "two\0and\n"),
        (10_001, &long[..10_000]),
        (1 << 62, &format!("{}\n", &long[10_000..])),
        (4, "las"),
        (2, "t"),
    ] {
        assert_eq!(line(count), Some(Ok(text.to_owned())), "{count}");
        assert_eq!(client.flags(file), (false, false));
    }
    assert_eq!(line(2), None);
    assert_eq!(client.flags(file), (true, false));
    assert_eq!(line(1), Some(Ok(String::new())), "nothing to read");
    assert_eq!(client.fseek(file, -4, 2), 0);
    assert_eq!(line(100), Some(Ok("last".to_owned())));
    assert_eq!(client.flags(file), (true, false));
    // Not for reading.
    let other = client.fopen(&rig.path("other"), "w");
    assert_eq!(client.fgets(other, 10), None);
    assert_eq!(client.flags(other), (false, true));
}

fn pushed_back<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    fs::write(&path, "ab").unwrap();
    let file = client.fopen(&path, "r+");
    assert_eq!(client.fread(file, 9), b"ab");
    assert_eq!(client.flags(file), (true, false));
    assert_eq!(client.ungetc(-1, file), EOF);
    assert_eq!(client.ungetc(0x1F9, file), 0xF9, "a character is a byte");
    assert_eq!(
        (client.flags(file), client.ftell(file)),
        ((false, false), 1)
    );
    assert_eq!(client.fread(file, 9), [0xF9]);
    assert_eq!(client.flags(file), (true, false));
    assert_eq!(client.ungetc(i32::from(b'x'), file), u64::from(b'x'));
    assert_eq!(client.ungetc(i32::from(b'\n'), file), u64::from(b'\n'));
    assert_eq!(client.fgets(file, 9).unwrap(), b"\n");
    assert_eq!(client.fgets(file, 9).unwrap(), b"x");
    // Positioning forgets it.
    assert_eq!(client.ungetc(i32::from(b'y'), file), u64::from(b'y'));
    assert_eq!(client.fseek(file, 0, 0), 0);
    assert_eq!(client.ungetc(i32::from(b'z'), file), u64::from(b'z'));
    assert_eq!(
        client.ftell(file),
        0,
        "there is nothing in front of the start"
    );
    assert_eq!(client.fread(file, 9), b"zab");
    // In the middle of writing, and only so much of it.
    assert_eq!(client.fwrite(file, b"cd"), 2);
    let taken = (0..1000)
        .take_while(|_| client.ungetc(1, file) == 1)
        .count();
    assert!((1..1000).contains(&taken));
    assert_eq!(client.fread(file, 1000).len(), taken);
    assert_eq!(client.fclose(file), 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "abcd");
    let file = client.fopen(&path, "w");
    assert_eq!(client.ungetc(1, file), EOF);
}

fn positions<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    fs::write(&path, "0123456789").unwrap();
    let file = client.fopen(&path, "r+");
    assert_eq!(client.fread(file, 3), b"012");
    assert_eq!(client.ftell(file), 3);
    for (offset, whence, to) in [
        (5, 0, Some(5)),
        (-2, 1, Some(3)),
        (0, 1, Some(3)),
        (-1, 2, Some(9)),
        (-1, 0, None),
        (-10, 1, None),
        (-11, 2, None),
        (0, 3, None),
        (0, u64::MAX, None),
        (i64::MIN, 1, None),
        (i64::MIN, 2, None),
        (7, 0, Some(7)),
    ] {
        let before = client.ftell(file);
        let result = client.fseek(file, offset, whence);
        assert_eq!(result, to.map_or(EOF, |_| 0), "{offset} {whence}");
        assert_eq!(client.ftell(file), to.unwrap_or(before));
    }
    assert_eq!(client.fread(file, 2), b"78");
    // Behind the end, and written there: a gap of zeros.
    assert_eq!(client.fseek(file, 2, 2), 0);
    assert_eq!(client.fwrite(file, b"x"), 1);
    assert_eq!(client.ftell(file), 13, "with what is not written out");
    assert_eq!(client.fclose(file), 0);
    assert_eq!(fs::read(&path).unwrap(), b"0123456789\0\0x");
}

fn reading_and_writing<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    let file = client.fopen(&path, "w+");
    assert_eq!(client.fwrite(file, b"one two three\nfour"), 18);
    assert_eq!(fs::read(&path).unwrap(), b"", "it is kept back");
    assert_eq!(client.fflush(file), 0);
    assert_eq!(fs::read(&path).unwrap(), b"one two three\nfour");
    assert_eq!(client.fseek(file, 4, 0), 0);
    assert_eq!(client.fread(file, 3), b"two");
    // What was read ahead is no matter.
    assert_eq!(client.fwrite(file, b"-"), 1);
    assert_eq!(client.fgets(file, 99).unwrap(), b"three\n");
    assert_eq!(client.fwrite(file, b"12"), 2);
    assert_eq!(client.fread(file, 99), b"ur");
    assert_eq!(client.fwrite(file, b"!"), 1);
    // All streams of the program.
    assert_eq!(client.fflush(0), 0);
    assert_eq!(fs::read(&path).unwrap(), b"one two-three\n12ur!");
    // Where nothing can be written, all is refused that does it.
    let full = client.fopen("/dev/full", "w");
    assert_eq!(client.fwrite(full, b"abc"), 3);
    assert_eq!(client.fflush(full), EOF);
    assert_eq!(client.flags(full), (false, true));
    assert_eq!(client.fwrite(full, &content(20_000)), 0);
    assert_eq!(client.fwrite(full, b"abc"), 3);
    assert_eq!(client.fclose(full), EOF);
    assert_eq!(client.fclose(full), EOF);
}

fn appending<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    fs::write(&path, "0123").unwrap();
    let file = client.fopen(&path, "a");
    assert_eq!(client.ftell(file), 4);
    assert_eq!(client.fseek(file, 0, 0), 0);
    assert_eq!(client.fwrite(file, b"45"), 2);
    assert_eq!(client.ftell(file), 6, "wherever it was");
    assert_eq!(client.fclose(file), 0);
    let file = client.fopen(&path, "a+");
    assert_eq!(client.fread(file, 2), b"01");
    assert_eq!(client.fwrite(file, b"67"), 2);
    assert_eq!(client.ftell(file), 8);
    assert_eq!(client.fclose(file), 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "01234567");
}

fn buffers_are_written_at_the_end<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    for n in 0..20 {
        let file = client.fopen(&rig.path(&n.to_string()), "w");
        assert_eq!(client.fwrite(file, b"never closed"), 12);
    }
    let drained = rig.service.drain(LIMIT);
    assert_eq!(drained.cancelled, 0);
    for n in 0..20 {
        let text = fs::read_to_string(rig.path(&n.to_string())).unwrap();
        assert_eq!(text, "never closed");
    }
}

fn handles_of_closed_files<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    let old = client.fopen(&path, "w+");
    assert_eq!(client.fclose(old), 0);
    let new = client.fopen(&path, "w+");
    assert_eq!(client.fwrite(new, b"text"), 4);
    for file in [
        old,
        0,
        4,
        u64::MAX << 2,
        old ^ 4,
        new + 4,
        new ^ 1 << 63,
        new + (1 << 34),
    ] {
        assert_eq!(client.fclose(file), EOF, "{file:#x}");
        assert_eq!(client.fwrite(file, b"else"), 0);
        assert_eq!(client.fread(file, 4), b"");
        assert_eq!(client.fgets(file, 4), None);
        assert_eq!(client.fseek(file, 0, 0), EOF);
        assert_eq!(client.ftell(file), EOF);
        assert_eq!(client.ungetc(1, file), EOF);
        assert_eq!(client.fflush(file) == EOF, file != 0);
        assert_eq!(client.flags(file), (true, true));
    }
    // Opcodes without a tag know none.
    for tag in 1..4 {
        assert_eq!(client.fwrite(new | tag, b"else"), 0);
        assert_eq!(client.fclose(new | tag), EOF);
    }
    assert_eq!(client.fclose(new), 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    rig.is_whole();
}
