//! Which code runs on which architecture.

use loader_core::image::ImageKind;

/// What a cubin, which needs no compiler, is ahead of any PTX.
const CUBIN: u32 = 1 << 16;

/// How well code of this kind for `architecture` (`sm_90`, `sm_90a`) runs on a device of architecture
/// `device` (90); `None` if it does not. Machine code is for one major number, from its minor number
/// on; PTX for everything from its architecture on; and both, if made for what only one architecture
/// has (`a`) or only its family (`f`), are taken for that architecture alone. Code that does not say
/// what it is for is the last choice.
pub(crate) fn fits(kind: ImageKind, architecture: &str, device: u32) -> Option<u32> {
    let ahead = match kind {
        ImageKind::Cubin => CUBIN,
        ImageKind::Ptx => 0,
        ImageKind::AmdGpu | ImageKind::X86_64 => return None,
    };
    if architecture.is_empty() {
        return Some(0);
    }
    let number = (architecture.strip_prefix("sm_")).or(architecture.strip_prefix("compute_"))?;
    let digits = number.trim_end_matches(['a', 'f']);
    let specific = match &number[digits.len()..] {
        "" => 0,
        "f" => 1,
        "a" => 2,
        _ => return None,
    };
    let number: u32 = digits.parse().ok().filter(|&number| number < 10_000)?;
    let runs = match kind {
        _ if specific != 0 => number == device,
        ImageKind::Cubin => number / 10 == device / 10 && number <= device,
        _ => number <= device,
    };
    // Of what runs, the nearest.
    runs.then_some(1 + ahead + number * 3 + specific)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubins_are_for_one_major_number() {
        let fits = |architecture| fits(ImageKind::Cubin, architecture, 89).is_some();
        for architecture in ["sm_80", "sm_86", "sm_89", ""] {
            assert!(fits(architecture), "{architecture}");
        }
        for architecture in [
            "sm_90", "sm_75", "sm_8", "sm_80a", "gfx1100", "sm_", "sm_89x",
        ] {
            assert!(!fits(architecture), "{architecture}");
        }
    }

    #[test]
    fn ptx_is_for_all_that_came_later() {
        let fits = |architecture| fits(ImageKind::Ptx, architecture, 103).is_some();
        for architecture in [
            "sm_50",
            "sm_90",
            "compute_100",
            "sm_103",
            "sm_103a",
            "sm_103f",
        ] {
            assert!(fits(architecture), "{architecture}");
        }
        for architecture in ["sm_120", "sm_90a", "sm_100f", "sm_103af", "sm_99999999999"] {
            assert!(!fits(architecture), "{architecture}");
        }
    }

    #[test]
    fn the_nearest_comes_first_and_no_compiler_before_one() {
        use ImageKind::{Cubin, Ptx};
        let best_first = [
            (Cubin, "sm_90a"),
            (Cubin, "sm_90f"),
            (Cubin, "sm_90"),
            (Ptx, "sm_90a"),
            (Ptx, "sm_90"),
            (Ptx, "sm_89"),
            (Ptx, "sm_52"),
            (Ptx, ""),
        ];
        let ranks = best_first.map(|(kind, architecture)| fits(kind, architecture, 90));
        assert!(ranks.is_sorted_by(|a, b| a > b && b.is_some()), "{ranks:?}");
        assert!(fits(Cubin, "sm_86", 89) > fits(Cubin, "sm_80", 89));
        assert_eq!(fits(ImageKind::AmdGpu, "", 90), None);
    }
}
