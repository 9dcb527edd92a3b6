//! Calls out of bytes, most of them near what some rule compares with; judges nothing.

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use postern_seccomp::{Arch, Call, Condition, Test};

/// A call: mostly native and reviewed, with arguments that one of the conditions is about.
pub(crate) fn call(bytes: &mut Unstructured<'_>, conditions: &[Condition]) -> Result<Call> {
    const FOREIGN: [u32; 4] = [0x4000_0003, 0x4000_0028, 0xc000_00b7, 0];
    let number = match bytes.int_in_range(0..=9)? {
        0 => bytes.arbitrary()?,
        1 => 0x4000_0000 | bytes.int_in_range(0..=600)?,
        _ => bytes.int_in_range(0..=480)?,
    };
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = value(bytes, conditions)?;
    }
    let native = Call::native(Arch::X86_64, number, arguments);
    Ok(match bytes.int_in_range(0..=19)? {
        0 => Call { arch: *bytes.choose(&FOREIGN)?, ..native },
        _ => native,
    })
}

fn value(bytes: &mut Unstructured<'_>, conditions: &[Condition]) -> Result<u64> {
    let near: u64 = match bytes.choose(conditions) {
        Err(_) => bytes.arbitrary()?,
        Ok(condition) => constant(condition.test),
    };
    Ok(match bytes.int_in_range(0..=7)? {
        0 => bytes.arbitrary()?,
        1 => near.wrapping_add(1),
        2 => near.wrapping_sub(1),
        3 => near | 1 << 32,
        4 => near ^ 1 << bytes.int_in_range(0..=63)?,
        5 => bytes.int_in_range(0..=64)?,
        _ => near,
    })
}

fn constant(test: Test) -> u64 {
    match test {
        Test::Is(value) | Test::IsNot(value) | Test::HasAny(value) | Test::Low(_, value) => {
            value.into()
        }
        Test::MaskedIs { value, .. } | Test::MaskedIsNot { value, .. } => value.into(),
        Test::FullIs(value) | Test::FullIsNot(value) | Test::Full(_, value) => value,
        Test::FullMaskedIs { value, .. } => value,
        _ => 0,
    }
}
