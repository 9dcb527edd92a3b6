//! Calls worth asking about, shared by the tests that compare two sources of verdicts.

use postern_seccomp::{Arch, Call};

const X32: u32 = 0x4000_0000;

/// Values that rules compare with, their neighbours, and the same with a bit that an `int` lacks.
const VALUES: [u64; 15] = [
    0,
    1,
    4,
    16,
    17,
    0x5412,
    0x541c,
    0x1000_0000,
    0x7e02_0011,
    0x1_0000_0000,
    0x1_0000_0004,
    0x1_0000_0010,
    0x1_0000_5412,
    0x1_1000_0000,
    u64::MAX,
];

/// Every number up to well above the table, and both sides of every border farther up.
pub(crate) fn numbers() -> impl Iterator<Item = u32> {
    let far = [1000, X32 - 1, 0x7fff_ffff, 0x8000_0000, 0xbfff_ffff, 0xc000_0000, 0xffff_fffe];
    (0..=600).chain((0..=600).map(|number| X32 | number)).chain(far).chain([u32::MAX])
}

/// Arguments for a call whose verdict may depend on them: every combination in the first three.
pub(crate) fn all_arguments() -> impl Iterator<Item = [u64; 6]> {
    VALUES.into_iter().flat_map(|a| {
        VALUES.into_iter().flat_map(move |b| VALUES.into_iter().map(move |c| [a, b, c, 7, 7, 7]))
    })
}

/// Arguments for a call whose verdict should not depend on them.
pub(crate) fn some_arguments() -> impl Iterator<Item = [u64; 6]> {
    VALUES.into_iter().flat_map(|value| {
        (0..6)
            .map(move |place| core::array::from_fn(|i| if i == place { value } else { 0 }))
            .chain([[value; 6]])
    })
}

/// Every sampled native call; `depends` says whose verdict may depend on the arguments.
pub(crate) fn native_calls(depends: impl Fn(u32) -> bool) -> impl Iterator<Item = Call> {
    numbers().flat_map(move |number| {
        let thorough = depends(number).then(all_arguments).into_iter().flatten();
        some_arguments()
            .chain(thorough)
            .map(move |arguments| Call::native(Arch::X86_64, number, arguments))
    })
}

/// Sampled calls through other ABIs: i386, arm, aarch64, riscv64 and a value that is none.
pub(crate) fn foreign_calls() -> impl Iterator<Item = Call> {
    [0x4000_0003, 0x4000_0028, 0xc000_00b7, 0xc000_00f3, 0].into_iter().flat_map(|arch| {
        numbers().map(move |number| Call { arch, ..Call::native(Arch::X86_64, number, [0; 6]) })
    })
}
