//! The 32-bit gate, the vsyscall page, and a call whose registers a signal handler chose.

#![expect(unsafe_code, reason = "instructions that have no function")]

use core::arch::asm;

/// A call by the 32-bit gate, with 32-bit numbers: a pointer must lie below 4 GiB. The kernel's
/// answer, negative for an errno.
pub(crate) fn int80(number: u32, arguments: &[u32; 6]) -> i32 {
    let mut answer = number;
    // SAFETY: the arguments are live; registers that the compiler keeps for itself are restored.
    unsafe {
        asm!(
            "push rbx",
            "push rbp",
            "mov ebx, [r8]",
            "mov ecx, [r8 + 4]",
            "mov edx, [r8 + 8]",
            "mov esi, [r8 + 12]",
            "mov edi, [r8 + 16]",
            "mov ebp, [r8 + 20]",
            "int 0x80",
            "pop rbp",
            "pop rbx",
            inout("eax") answer,
            inout("r8") arguments.as_ptr() => _,
            out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _,
            out("r9") _, out("r10") _, out("r11") _,
        );
    }
    answer.cast_signed()
}

/// `time` by its fixed address in the vsyscall page, which a kernel may not have: then it faults.
pub(crate) fn vsyscall_time() -> i64 {
    let answer: i64;
    // SAFETY: the address is the kernel's own entry or faults; a null argument is allowed.
    unsafe {
        asm!(
            "call rax",
            inout("rax") 0xffff_ffff_ff60_0400_u64 => answer,
            inout("rdi") 0 => _,
            clobber_abi("C"),
        );
    }
    answer
}

/// Two `syscall` instructions in a row: the first is given, and whoever changes the saved registers
/// of a signal that it raises chooses the second.
pub(crate) fn calls_in_a_row(number: i64, first: usize, second: usize) -> i64 {
    let answer: i64;
    // SAFETY: the first call is the caller's; the second gets what a handler left in the registers.
    unsafe {
        asm!(
            "syscall",
            "syscall",
            inout("rax") number => answer,
            inout("rdi") first => _,
            inout("rsi") second => _,
            out("rdx") _, out("rcx") _, out("r11") _,
        );
    }
    answer
}
