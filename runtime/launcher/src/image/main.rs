//! The static image: entry, memory functions and panic handler around `postern_launcher::main`.
#![no_std]
#![no_main]

#[path = "x86_64.rs"]
mod arch;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    postern_init::sys::exit(postern_init::supervise::FAILED)
}

fn start() -> ! {
    postern_init::sys::exit(postern_launcher::main())
}
