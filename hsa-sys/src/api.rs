//! A list of functions as a table of pointers.

/// Makes `Api` of C declarations.
macro_rules! api {
    ($(
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;
    )*) => {
        /// The functions of the runtime, each under its own name.
        ///
        /// To call one is unsafe as the C function is: the HSA specification says what it demands.
        /// An implementation that is linked in writes the table out, which the compiler checks:
        /// `Api { hsa_init: my::hsa_init, .. }`.
        #[derive(Clone, Copy)]
        pub struct Api {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                pub $name: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,
            )*
        }

        impl Api {
            /// The functions' names.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// The table whose pointers `symbol` gives by their names.
            ///
            /// # Errors
            /// The first that `symbol` gives.
            ///
            /// # Safety
            /// What `symbol` gives is that function, for as long as the process lives.
            pub unsafe fn from_symbols<E>(
                symbol: impl Fn(&'static str) -> Result<*mut ::core::ffi::c_void, E>,
            ) -> Result<Self, E> {
                Ok(Self {
                    $(
                        // SAFETY: the caller vouches that the pointer is the function of this name,
                        // and the type is the one that the headers declare for it.
                        $name: unsafe {
                            ::core::mem::transmute::<
                                *mut ::core::ffi::c_void,
                                unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,
                            >(symbol(stringify!($name))?)
                        },
                    )*
                })
            }
        }

        impl ::core::fmt::Debug for Api {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct("Api").finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use api;
