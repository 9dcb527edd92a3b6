//! Calls worth asking about: every number, both sides of every border, the edges of every
//! condition with and without high bits, and tuples from a fixed seed.

use std::collections::BTreeSet;

use postern_seccomp::{Arch, Call, Condition, Policy, Test};

const X32: u32 = 0x4000_0000;
const HIGH: u64 = 1 << 32;

/// Values that mean something to many calls, and some with bits that an `int` lacks.
const VALUES: [u64; 10] =
    [0, 1, 4, 16, HIGH, HIGH | 4, 0x7ffc_0000_1000, 0x7ffc_0000_0000, 0xffff_ffff, u64::MAX];

/// The most tuples for one number; more are drawn from the seed.
const TUPLES_MAX: usize = 60_000;

/// Random numbers that are the same on every machine (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn pick(&mut self, values: &[u64]) -> u64 {
        values[usize::try_from(self.next() % values.len() as u64).unwrap()]
    }
}

/// Every number up to well above the table, and both sides of every border farther up.
pub(crate) fn numbers() -> impl Iterator<Item = u32> {
    let far = [1000, X32 - 1, 0x7fff_ffff, 0x8000_0000, 0xbfff_ffff, 0xc000_0000, 0xffff_fffe];
    (0..=600).chain((0..=600).map(|number| X32 | number)).chain(far).chain([u32::MAX])
}

/// Values around what a test compares with.
fn edges(test: Test) -> Vec<u64> {
    let around = |value: u64| [value.wrapping_sub(1), value, value.wrapping_add(1)];
    match test {
        Test::Is(value) | Test::IsNot(value) | Test::Low(_, value) => around(value.into()).to_vec(),
        Test::HasAny(mask) => {
            let bits = (0..32).map(|bit| 1 << bit).filter(|bit| mask & bit != 0);
            bits.chain([mask, !mask]).map(u64::from).collect()
        }
        Test::MaskedIs { mask, value } | Test::MaskedIsNot { mask, value } => {
            let outside = !mask | value;
            let bits = (0..32).map(|bit| value ^ (1 << bit));
            bits.chain([value, outside, outside & !1]).map(u64::from).collect()
        }
        Test::NotNull => vec![0, 1, HIGH],
        Test::FullIs(value) | Test::FullIsNot(value) | Test::Full(_, value) => {
            let halves = [value ^ HIGH, value & 0xffff_ffff, value >> 32 << 32];
            around(value).into_iter().chain(halves).collect()
        }
        Test::FullMaskedIs { mask, value } => {
            let bits = (0..64).map(|bit| value ^ (1 << bit));
            bits.chain([value, !mask | value]).collect()
        }
        other => panic!("no edges of {other:?}"),
    }
}

/// Every sampled native call, thorough where `conditions` of a number say that it depends.
pub(crate) fn native(conditions: impl Fn(u32) -> Vec<Condition>) -> impl Iterator<Item = Call> {
    numbers().flat_map(move |number| {
        let tuples = tuples(&conditions(number), u64::from(number));
        tuples.into_iter().map(move |arguments| Call::native(Arch::X86_64, number, arguments))
    })
}

/// The same for the rules of a policy.
pub(crate) fn of_policy(policy: Policy) -> impl Iterator<Item = Call> {
    native(move |number| {
        let name = Arch::X86_64.call_name(number);
        let rules = policy.rules().filter(|rule| Some(rule.call) == name);
        rules.flat_map(|rule| rule.conditions).copied().collect()
    })
}

fn tuples(conditions: &[Condition], seed: u64) -> Vec<[u64; 6]> {
    let mut random = Random(seed);
    let mut values: [BTreeSet<u64>; 6] = Default::default();
    for condition in conditions {
        let place = &mut values[usize::from(condition.argument.index())];
        for edge in edges(condition.test) {
            let draw = random.next();
            place.extend([edge, edge ^ HIGH, edge | (0xffff_ffff << 32), edge ^ (draw << 32)]);
        }
    }
    let used: Vec<usize> = (0..6).filter(|place| !values[*place].is_empty()).collect();
    let values: Vec<Vec<u64>> =
        values.into_iter().map(|own| own.into_iter().chain(VALUES).collect()).collect();
    let mut tuples = plain_tuples();
    let all: usize = used.iter().map(|place| values[*place].len()).product();
    match used.is_empty() || all > TUPLES_MAX {
        true => {}
        false => tuples.extend(products(&used, &values)),
    }
    let drawn = if used.is_empty() {
        8
    } else if all > TUPLES_MAX {
        TUPLES_MAX
    } else {
        500
    };
    tuples.extend((0..drawn).map(|_| core::array::from_fn(|place| random.pick(&values[place]))));
    tuples.extend((0..8).map(|_| core::array::from_fn(|_| random.next())));
    tuples
}

/// One value in one place or in all.
fn plain_tuples() -> Vec<[u64; 6]> {
    let mut tuples = vec![[0; 6]];
    for value in VALUES {
        tuples.push([value; 6]);
        let one = |place| core::array::from_fn(|other| if other == place { value } else { 0 });
        tuples.extend((0..6).map(one));
    }
    tuples
}

/// Every combination in the places that count.
fn products(used: &[usize], values: &[Vec<u64>]) -> Vec<[u64; 6]> {
    let mut tuples = vec![[7; 6]];
    for place in used {
        let longer = tuples.iter().flat_map(|tuple| {
            values[*place].iter().map(|value| {
                let mut tuple = *tuple;
                tuple[*place] = *value;
                tuple
            })
        });
        tuples = longer.collect();
    }
    tuples
}

/// Sampled calls through other ABIs: i386, arm, aarch64, riscv64 and a value that is none.
pub(crate) fn foreign() -> impl Iterator<Item = Call> {
    [0x4000_0003, 0x4000_0028, 0xc000_00b7, 0xc000_00f3, 0].into_iter().flat_map(|arch| {
        numbers().map(move |number| Call { arch, ..Call::native(Arch::X86_64, number, [0; 6]) })
    })
}
