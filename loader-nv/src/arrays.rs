//! Constructors and destructors.
//!
//! CUDA's linker makes no arrays of them: LLVM's compiler gives each a variable that points to it,
//! with its priority at the end of the name, and the image's first and last kernels go through
//! arrays that whoever loads the image makes of these.

use std::collections::BTreeMap;

use loader_core::device::DeviceError;

use crate::device::CudaDevice;

/// What the variables' names begin with, and the pointers to the array's start and end.
const ARRAYS: [[&str; 3]; 2] = [
    [
        "__init_array_object_",
        "__init_array_start",
        "__init_array_end",
    ],
    [
        "__fini_array_object_",
        "__fini_array_start",
        "__fini_array_end",
    ],
];
/// Bytes of a pointer.
const POINTER: usize = 8;
/// The longest name that a sentence has.
const SHOWN: usize = 256;

/// Whether the text names a constructor or destructor, and the array for it.
pub(crate) fn has_any(text: &str) -> bool {
    ARRAYS
        .iter()
        .any(|[prefix, start, _]| text.contains(prefix) && text.contains(start))
}

/// Whether a variable of this name is an entry of an array.
pub(crate) fn is_part(name: &str) -> bool {
    ARRAYS.iter().any(|[prefix, ..]| name.starts_with(prefix))
}

/// Those of `variables` that begin so, by ascending priority; of the same priority as they stand.
fn in_order<'v>(variables: &'v [String], prefix: &str) -> Result<Vec<&'v str>, DeviceError> {
    let mut found: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for name in variables.iter().filter(|name| name.starts_with(prefix)) {
        let priority = name
            .rsplit('_')
            .next()
            .and_then(|digits| digits.parse().ok());
        let priority = priority.ok_or_else(|| {
            DeviceError::Image(format!(
                "the image's variable {} does not end with a priority, `_` and a number, as those of \
                 constructors and destructors do: give it another name",
                shown(name)
            ))
        })?;
        found.entry(priority).or_default().push(name);
    }
    Ok(found.into_values().flatten().collect())
}

/// A name, as much of it as a sentence has room for.
fn shown(name: &str) -> String {
    name.chars().take(SHOWN).collect()
}

impl CudaDevice {
    /// Makes the arrays of what the loaded image has as `variables`. An image without the pointers,
    /// or one that has set them itself, needs none.
    pub(crate) fn make_arrays(&self, variables: &[String]) -> Result<(), DeviceError> {
        for [prefix, start, end] in ARRAYS {
            let (Some(start), Some(end)) = (self.pointer(start)?, self.pointer(end)?) else {
                continue;
            };
            if start.1 != 0 || end.1 != 0 {
                continue;
            }
            // Only now: names that are in no array may be any.
            let names = in_order(variables, prefix)?;
            if names.is_empty() {
                continue;
            }
            let mut array = Vec::with_capacity(names.len() * POINTER);
            for name in names {
                let function = self.pointer(name)?.ok_or_else(|| {
                    DeviceError::Image(format!(
                        "the image's {} is no pointer to a function: give that variable another name",
                        shown(name)
                    ))
                })?;
                array.extend_from_slice(&function.1.to_le_bytes());
            }
            let address = self.new_private(array.len())?;
            self.write(&array, address)?;
            self.write(&address.to_le_bytes(), start.0)?;
            let behind = address + array.len() as u64;
            self.write(&behind.to_le_bytes(), end.0)?;
        }
        Ok(())
    }

    /// Address and value of a variable of the image, if there is one that can be a pointer.
    fn pointer(&self, name: &str) -> Result<Option<(u64, u64)>, DeviceError> {
        let Some((address, POINTER)) = self.global(name)? else {
            return Ok(None);
        };
        let mut value = [0; POINTER];
        self.read(address, &mut value)?;
        Ok(Some((address, u64::from_le_bytes(value))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_priorities() {
        let variables = [
            "__init_array_object_b_1f_65535",
            "other",
            "__init_array_object_a_1f_101",
            "__fini_array_object_c_1f_1",
            "__init_array_object_d_1f_65535",
            "__init_array_object__1f_9",
        ]
        .map(str::to_owned);
        let order = in_order(&variables, "__init_array_object_").unwrap();
        let short: Vec<_> = order.iter().map(|name| &name[20..]).collect();
        assert_eq!(short, ["_1f_9", "a_1f_101", "b_1f_65535", "d_1f_65535"]);
        let odd = ["__init_array_object_x".to_owned()];
        let said = in_order(&odd, "__init_array_object_").unwrap_err();
        let said = said.to_string();
        assert!(said.contains("not end with a priority"), "{said}");
        assert!(said.contains("give it another name"), "{said}");
        assert!(has_any(
            ".u64 __fini_array_start; .u64 __fini_array_object_a_1 = a;"
        ));
        assert!(!has_any(
            ".u64 __init_array_start; .u64 __fini_array_object_a_1 = a;"
        ));
    }
}
