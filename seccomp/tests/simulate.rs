//! The simulator, instruction by instruction.

use postern_seccomp::{Call, Error, Fault, Instruction, Program, simulate};

const CALL: Call = Call {
    number: 0x11,
    arch: 0x22,
    instruction_pointer: 0x4444_4444_3333_3333,
    arguments: [0x6666_6666_5555_5555, 0, 0, 0, 0, 0xbbbb_bbbb_aaaa_aaaa],
};

type Line = (u16, u8, u8, u32);

fn program(lines: &[Line]) -> Result<Program, Error> {
    let bytes = |(code, jt, jf, k): &Line| {
        let ([c0, c1], [k0, k1, k2, k3]) = (code.to_le_bytes(), k.to_le_bytes());
        [c0, c1, *jt, *jf, k0, k1, k2, k3]
    };
    Program::from_bytes(lines.iter().map(bytes).collect::<Vec<_>>().as_flattened())
}

/// A program that answers 1 if the word at `offset` is `value`.
fn word_is(offset: u32, value: u32) -> [Line; 4] {
    [
        (Instruction::LOAD, 0, 0, offset),
        (Instruction::JEQ, 0, 1, value),
        (Instruction::RETURN, 0, 0, 1),
        (Instruction::RETURN, 0, 0, 0),
    ]
}

#[test]
fn words_lie_where_the_kernel_puts_them() {
    let table = [
        ("number", 0, 0x11),
        ("arch", 4, 0x22),
        ("instruction pointer, low", 8, 0x3333_3333),
        ("instruction pointer, high", 12, 0x4444_4444),
        ("first argument, low", 16, 0x5555_5555),
        ("first argument, high", 20, 0x6666_6666),
        ("last argument, low", 56, 0xaaaa_aaaa),
        ("last argument, high", 60, 0xbbbb_bbbb),
    ];
    for (name, offset, value) in table {
        assert_eq!(simulate(&program(&word_is(offset, value)).unwrap(), &CALL), Ok(1), "{name}");
        assert_eq!(
            simulate(&program(&word_is(offset, value ^ 1)).unwrap(), &CALL),
            Ok(0),
            "{name}"
        );
    }
}

#[test]
fn tests_compare_as_the_kernel_does() {
    // The word compared is 0x11; unsigned, so 0xffff_ffff is above it.
    let table = [
        ("JEQ", Instruction::JEQ, [(0x10, 0), (0x11, 1), (0x12, 0), (u32::MAX, 0)]),
        ("JGT", Instruction::JGT, [(0x10, 1), (0x11, 0), (0x12, 0), (u32::MAX, 0)]),
        ("JGE", Instruction::JGE, [(0x10, 1), (0x11, 1), (0x12, 0), (u32::MAX, 0)]),
        ("JSET", Instruction::JSET, [(0x0e, 0), (0x11, 1), (0x12, 1), (u32::MAX, 1)]),
    ];
    for (name, code, rows) in table {
        for (k, expected) in rows {
            let lines = [
                (Instruction::LOAD, 0, 0, 0),
                (code, 1, 0, k),
                (Instruction::RETURN, 0, 0, 0),
                (Instruction::RETURN, 0, 0, 1),
            ];
            assert_eq!(simulate(&program(&lines).unwrap(), &CALL), Ok(expected), "{name} {k:#x}");
        }
    }
}

#[test]
fn masks_and_long_jumps() {
    let [load, test, yes, no] = word_is(0, 0x10);
    assert_eq!(
        simulate(&program(&[load, (Instruction::AND, 0, 0, 0xfe), test, yes, no]).unwrap(), &CALL),
        Ok(1)
    );
    let jump = (Instruction::JUMP, 0, 0, 300);
    let lines = [vec![jump], vec![no; 300], vec![yes], vec![no; 5]].concat();
    assert_eq!(simulate(&program(&lines).unwrap(), &CALL), Ok(1));
}

#[test]
fn faults_are_typed() {
    let load = (Instruction::LOAD, 0, 0, 0);
    let table = [
        ("no return", vec![load], Fault::PastEnd { at: 1 }),
        ("test past the end", vec![(Instruction::JEQ, 9, 9, 0)], Fault::PastEnd { at: 10 }),
        (
            "jump past all ends",
            vec![(Instruction::JUMP, 0, 0, u32::MAX)],
            Fault::PastEnd { at: 1 << 32 },
        ),
        ("unaligned", vec![(Instruction::LOAD, 0, 0, 2)], Fault::BadLoad { at: 0, offset: 2 }),
        (
            "outside",
            vec![load, (Instruction::LOAD, 0, 0, 64)],
            Fault::BadLoad { at: 1, offset: 64 },
        ),
        ("unknown", vec![load, (0x07, 0, 0, 0)], Fault::UnknownInstruction { at: 1, code: 0x07 }),
    ];
    for (name, lines, expected) in table {
        assert_eq!(simulate(&program(&lines).unwrap(), &CALL), Err(expected), "{name}");
    }
}
