//! x86_64: the entry point and the memory functions that the compiler calls.
//!
//! # Safety
//! The kernel enters `_start` with an aligned stack; each memory function does what its C
//! namesake does, in string instructions, so that it cannot be compiled into a call of itself.

use core::arch::{asm, naked_asm};

#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn _start() -> ! {
    naked_asm!("xor ebp, ebp", "and rsp, -16", "call {start}", "ud2", start = sym enter)
}

extern "C" fn enter() -> ! {
    super::start()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller's contract is memcpy's.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if to.addr().wrapping_sub(from.addr()) >= len {
        // SAFETY: the target does not begin inside the source, so that forward copying is right.
        return unsafe { memcpy(to, from, len) };
    }
    // SAFETY: the caller's contract is memmove's; the copy runs from the end, then restores the
    // direction flag.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") len => _,
            inout("rdi") to.wrapping_add(len).wrapping_sub(1) => _,
            inout("rsi") from.wrapping_add(len).wrapping_sub(1) => _, options(nostack));
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    // SAFETY: the caller's contract is memset's.
    unsafe {
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("eax") byte,
            options(nostack, preserves_flags));
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    let mut at = 0;
    while at < len {
        // SAFETY: the caller's contract is memcmp's: both are readable for `len` bytes.
        let (x, y) = unsafe { (a.wrapping_add(at).read_volatile(), b.wrapping_add(at).read_volatile()) };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
        at += 1;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: the caller's contract is bcmp's, which memcmp's covers.
    unsafe { memcmp(a, b, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut len = 0;
    // SAFETY: the caller's contract is strlen's: a NUL ends the text.
    while unsafe { text.wrapping_add(len).read_volatile() } != 0 {
        len += 1;
    }
    len
}
