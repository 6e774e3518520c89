//! What the pretended driver reads of PTX, and the cubins that it makes: they have a real one's
//! tables, and behind the header the text that they are made of, with a NUL.

/// What a text declares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    /// Kernels with the bytes of their parameters.
    pub(crate) kernels: Vec<(String, usize)>,
    /// Variables of 8 bytes, with the functions that they point to.
    pub(crate) variables: Vec<(String, Option<String>)>,
}

impl Image {
    pub(crate) fn new(text: &str) -> Self {
        let kernels = text.split(".entry ").skip(1).map(|entry| {
            let (name, rest) = entry.split_once('(').unwrap_or((entry, ""));
            let parameters = rest.split_once(')').map_or("", |(inside, _)| inside);
            let mut size = 0_usize;
            for parameter in parameters.split(',') {
                let bytes = match parameter {
                    pointer if pointer.contains(".u64") => 8,
                    number if number.contains(".u32") => 4,
                    _ => continue,
                };
                size = size.next_multiple_of(bytes) + bytes;
            }
            (name.trim().to_owned(), size)
        });
        let variables = text.lines().filter_map(|line| {
            let line = line.trim().strip_prefix(".visible ")?;
            if !line.starts_with(".global ") && !line.starts_with(".const ") {
                return None;
            }
            let declared = line.split_once(".u64 ")?.1.strip_suffix(';')?;
            Some(match declared.split_once(" = ") {
                Some((name, function)) => (name.to_owned(), Some(function.to_owned())),
                None => (declared.to_owned(), None),
            })
        });
        Self {
            kernels: kernels.collect(),
            variables: variables.collect(),
        }
    }
}

/// A string's place in a table of strings, where it is put with its NUL.
fn intern(strings: &mut Vec<u8>, text: &str) -> u32 {
    let at = strings.len() as u32;
    strings.extend(text.as_bytes());
    strings.push(0);
    at
}

/// A symbol of the first section.
fn symbol(name: u32, info: u8, other: u8, size: u64) -> Vec<u8> {
    let mut symbol = name.to_le_bytes().to_vec();
    symbol.extend([info, other, 1, 0]);
    symbol.extend(0_u64.to_le_bytes());
    symbol.extend(size.to_le_bytes());
    symbol
}

/// A section's header: name, type, place, size, and what a table of symbols has besides.
fn section(name: u32, kind: u32, at: usize, size: usize, [link, info, each]: [u32; 3]) -> Vec<u8> {
    let mut header = [name, kind].map(u32::to_le_bytes).concat();
    let numbers = [0, 0, at as u64, size as u64];
    header.extend(numbers.map(u64::to_le_bytes).concat());
    header.extend([link, info].map(u32::to_le_bytes).concat());
    header.extend([8, u64::from(each)].map(u64::to_le_bytes).concat());
    header
}

/// The cubin of a text.
pub(crate) fn cubin(text: &str) -> Vec<u8> {
    let image = Image::new(text);
    let (mut file, mut strings) = (vec![0; 64], vec![0]);
    file.extend(text.as_bytes());
    file.push(0);
    let mut symbols = vec![0; 24];
    let mut sections = vec![0; 64];
    let mut infos = Vec::new();
    for (name, size) in &image
        .variables
        .iter()
        .map(|(name, _)| (name, 8))
        .collect::<Vec<_>>()
    {
        // Global, a variable.
        symbols.extend(symbol(intern(&mut strings, name), 0x11, 0, *size));
    }
    for (name, size) in &image.kernels {
        // Global, a function that is an entry.
        symbols.extend(symbol(intern(&mut strings, name), 0x12, 0x10, 256));
        // An attribute of no value, then the parameters' size if there are any.
        let mut info = vec![1, 0x36, 0, 0];
        if *size > 0 {
            info.extend([3, 0x19, *size as u8, 0]);
        }
        let name = intern(&mut strings, &format!(".nv.info.{name}"));
        infos.extend(section(name, 0x7000_0000, file.len(), info.len(), [0; 3]));
        file.extend(info);
    }
    let [strtab, symtab] = [".strtab", ".symtab"].map(|name| intern(&mut strings, name));
    sections.extend(section(strtab, 3, file.len(), strings.len(), [0; 3]));
    file.extend(strings);
    file.resize(file.len().next_multiple_of(8), 0);
    sections.extend(section(symtab, 2, file.len(), symbols.len(), [1, 1, 24]));
    file.extend(symbols);
    sections.extend(infos);
    // As CUDA 13 does it, the sections' headers stand anywhere.
    file.resize(file.len().next_multiple_of(8) + 2, 0);
    file[..7].copy_from_slice(b"\x7FELF\x02\x01\x01");
    let count = (sections.len() / 64) as u16;
    for (at, half) in [
        (16, 2),
        (18, 190),
        (20, 1),
        (52, 64),
        (58, 64),
        (60, count),
        (62, 1),
    ] {
        file[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    let at = file.len() as u64;
    file[40..48].copy_from_slice(&at.to_le_bytes());
    file.extend(sections);
    file
}
