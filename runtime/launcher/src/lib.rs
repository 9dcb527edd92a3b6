//! The launcher: a single-threaded process that builds a template root once and then makes one
//! confined process per run, by system calls alone.
//!
//! It decides nothing: the library hands it a plan as data ([`wire`]), and every failure goes back
//! as a step and an errno. The same sources are compiled twice: here, for clippy and unit tests,
//! and by `build.rs` into the static image that [`IMAGE`] holds.
#![no_std]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::integer_division,
    clippy::string_slice
)]

mod attest;
mod child;
mod confine;
#[cfg(not(postern_image))]
pub mod direct;
mod identity;
mod landlock;
mod mount;
mod namespaces;
mod processors;
mod serve;
mod setup;
mod socket;
mod sys;
mod terminal;
pub mod wire;

pub use serve::main;

/// The launcher as a static executable of a few pages, to be exec'ed from a descriptor.
#[cfg(not(postern_image))]
pub static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/postern-launcher"));

#[cfg(all(test, not(postern_image)))]
mod tests {
    extern crate std;

    #[test]
    fn the_image_is_a_small_static_elf() {
        let image = super::IMAGE;
        assert_eq!(image.get(..4), Some(&b"\x7fELF"[..]));
        assert!(image.len() <= 32 * 1024, "{} bytes", image.len());
        // ET_EXEC: nothing to relocate, no interpreter to load.
        assert_eq!(image.get(16..18), Some(&[2u8, 0][..]));
    }
}
