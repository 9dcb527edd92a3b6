//! The smallest guest: it exits with 0 and needs no library, so that only the sandbox is measured.
#![no_std]
#![no_main]

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the no-op guest is written for x86_64");

core::arch::global_asm!(".globl _start", "_start:", "mov eax, 231", "xor edi, edi", "syscall");

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
