//! A small assembler for seccomp's classic BPF.
//!
//! The field's crates cannot say "ask the supervisor" (`USER_NOTIF`) nor close the x32 numbers, so
//! the few instructions that are needed are written here. A program only ever loads words of
//! `seccomp_data`, compares, and returns.

use std::collections::BTreeMap;

/// One instruction, as the kernel reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    value: u32,
}

const LOAD_WORD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;

/// Where `seccomp_data` keeps the system call's number.
const NUMBER_AT: u32 = 0;
/// Where it keeps the architecture.
const ARCH_AT: u32 = 4;

/// What happens to a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on.
    Allow,
    /// It fails with this error.
    Errno(i32),
    /// The supervisor is told.
    Notify,
    /// The process ends.
    Kill,
}

impl Verdict {
    fn value(self) -> u32 {
        match self {
            Self::Allow => 0x7fff_0000,
            Self::Errno(errno) => 0x0005_0000 | (errno.unsigned_abs() & 0xffff),
            Self::Notify => 0x7fc0_0000,
            Self::Kill => 0x8000_0000,
        }
    }
}

/// A test of the low half of one argument. The high half is looked at only where a 64-bit value
/// could matter; flags and families are 32 bits wide in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    /// Any of these bits is set.
    AnyBit(u32),
    /// It is one of these.
    OneOf(&'static [u32]),
    /// It is none of these.
    NoneOf(&'static [u32]),
    /// Under the mask, it is none of these.
    MaskedNoneOf(u32, &'static [u32]),
    /// It is not zero, all 64 bits.
    NotZero,
}

/// A program in the making: what happens to which call.
///
/// It becomes a tree that is searched by the call's number. The kernel runs every new filter over
/// every number there is, for each command that starts; over a list this would take longer than
/// all else that a filter costs.
#[derive(Debug)]
pub(crate) struct Program {
    arch: u32,
    /// Where numbers of another call convention begin.
    foreign: Option<u32>,
    calls: BTreeMap<u32, Vec<Instruction>>,
}

impl Program {
    /// An empty program: another architecture's calls end the process, numbers from `foreign` on
    /// (x32) do not exist, everything else is allowed.
    pub(crate) fn new(arch: u32, foreign: Option<u32>) -> Self {
        Self {
            arch,
            foreign,
            calls: BTreeMap::new(),
        }
    }

    /// Gives every call of this number the verdict, where no earlier test has decided it.
    pub(crate) fn on(&mut self, number: u32, verdict: Verdict) {
        self.calls.entry(number).or_default().push(give(verdict));
    }

    /// Gives calls of this number the verdict where the argument passes the test.
    pub(crate) fn on_argument(&mut self, number: u32, argument: u32, test: Test, verdict: Verdict) {
        let body = self.calls.entry(number).or_default();
        let low = 16 + 8 * argument;
        body.push(load(low));
        match test {
            Test::AnyBit(bits) => body.push(jump(JUMP_ANY_BIT, bits, 0, 1)),
            Test::OneOf(values) => {
                for (index, value) in values.iter().enumerate() {
                    let to_verdict = u8::try_from(values.len() - 1 - index).unwrap_or(0);
                    body.push(jump(
                        JUMP_EQUAL,
                        *value,
                        to_verdict,
                        u8::from(to_verdict == 0),
                    ));
                }
            }
            Test::NoneOf(values) => none_of(body, values),
            Test::MaskedNoneOf(mask, values) => {
                body.push(statement(AND, mask));
                none_of(body, values);
            }
            Test::NotZero => {
                body.push(jump(JUMP_EQUAL, 0, 0, 2));
                body.push(load(low + 4));
                body.push(jump(JUMP_EQUAL, 0, 1, 0));
            }
        }
        body.push(give(verdict));
    }

    /// Gives calls of this number the verdict where two arguments, each named by its place, have any
    /// of these bits.
    pub(crate) fn on_bits(
        &mut self,
        number: u32,
        first: (u32, u32),
        second: (u32, u32),
        verdict: Verdict,
    ) {
        self.calls.entry(number).or_default().extend([
            load(16 + 8 * first.0),
            jump(JUMP_ANY_BIT, first.1, 0, 3),
            load(16 + 8 * second.0),
            jump(JUMP_ANY_BIT, second.1, 0, 1),
            give(verdict),
        ]);
    }

    /// The program as the kernel takes it.
    pub(crate) fn finish(self) -> Vec<Instruction> {
        let mut program = vec![
            load(ARCH_AT),
            jump(JUMP_EQUAL, self.arch, 1, 0),
            give(Verdict::Kill),
            load(NUMBER_AT),
        ];
        if let Some(foreign) = self.foreign {
            program.push(jump(JUMP_GREATER_OR_EQUAL, foreign, 0, 1));
            program.push(give(Verdict::Errno(libc::ENOSYS)));
        }
        program.extend(tree(&spans(self.calls)));
        program
    }
}

/// Numbers that meet the same, up to where the next span begins.
type Span = (u32, Vec<Instruction>);

/// All numbers there are. Neighbours that meet the same are one span: what it costs to put a filter
/// up grows with its length.
fn spans(calls: BTreeMap<u32, Vec<Instruction>>) -> Vec<Span> {
    let allowed = || vec![give(Verdict::Allow)];
    let mut spans: Vec<Span> = vec![(0, allowed())];
    for (number, mut body) in calls {
        // A plain verdict is all there is; behind a test comes what did not pass it.
        if body.len() > 1 {
            body.push(give(Verdict::Allow));
        }
        spans.pop_if(|(begin, _)| *begin == number);
        spans.push((number, body));
        spans.push((number.saturating_add(1), allowed()));
    }
    spans.dedup_by(|next, span| next.1 == span.1);
    spans
}

/// Searches for the number that is loaded.
fn tree(spans: &[Span]) -> Vec<Instruction> {
    match spans {
        [] => vec![give(Verdict::Allow)],
        [(_, body)] => body.clone(),
        _ => {
            let (low, high) = spans.split_at(spans.len() / 2);
            let (below, above) = (tree(low), tree(high));
            // A comparison reaches no further than 255 instructions, a plain jump as far as needed.
            let mut node = match u8::try_from(below.len()) {
                Ok(past) => vec![jump(JUMP_GREATER_OR_EQUAL, high[0].0, past, 0)],
                Err(_) => vec![
                    jump(JUMP_GREATER_OR_EQUAL, high[0].0, 0, 1),
                    statement(JUMP, u32::try_from(below.len()).unwrap_or(u32::MAX)),
                ],
            };
            node.extend(below);
            node.extend(above);
            node
        }
    }
}

fn none_of(body: &mut Vec<Instruction>, values: &[u32]) {
    for (index, value) in values.iter().enumerate() {
        let past_verdict = u8::try_from(values.len() - index).unwrap_or(0);
        body.push(jump(JUMP_EQUAL, *value, past_verdict, 0));
    }
}

fn load(at: u32) -> Instruction {
    statement(LOAD_WORD, at)
}

fn give(verdict: Verdict) -> Instruction {
    statement(RETURN, verdict.value())
}

fn statement(code: u16, value: u32) -> Instruction {
    jump(code, value, 0, 0)
}

fn jump(code: u16, value: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction {
        code,
        jump_true,
        jump_false,
        value,
    }
}

/// Runs a program over one system call, as the kernel would. For tests.
#[cfg(test)]
pub(crate) fn run(program: &[Instruction], arch: u32, number: u32, arguments: [u64; 6]) -> Verdict {
    interpret(program, arch, number, arguments).0
}

/// How many instructions a program runs for a number. For tests.
#[cfg(test)]
pub(crate) fn steps(program: &[Instruction], arch: u32, number: u32) -> usize {
    interpret(program, arch, number, [0; 6]).1
}

#[cfg(test)]
fn interpret(
    program: &[Instruction],
    arch: u32,
    number: u32,
    arguments: [u64; 6],
) -> (Verdict, usize) {
    let word = |at: u32| -> u32 {
        match at {
            NUMBER_AT => number,
            ARCH_AT => arch,
            _ => {
                let argument = arguments[((at - 16) / 8) as usize];
                if at.is_multiple_of(8) {
                    argument as u32
                } else {
                    (argument >> 32) as u32
                }
            }
        }
    };
    let (mut at, mut register) = (0_usize, 0_u32);
    for step in 1.. {
        let i = program[at];
        at += 1;
        let mut jump = |yes: bool| at += usize::from(if yes { i.jump_true } else { i.jump_false });
        match i.code {
            LOAD_WORD => register = word(i.value),
            JUMP => at += i.value as usize,
            AND => register &= i.value,
            JUMP_EQUAL => jump(register == i.value),
            JUMP_GREATER_OR_EQUAL => jump(register >= i.value),
            JUMP_ANY_BIT => jump(register & i.value != 0),
            RETURN => {
                let verdict = match i.value & 0xffff_0000 {
                    0x7fff_0000 => Verdict::Allow,
                    0x0005_0000 => Verdict::Errno((i.value & 0xffff) as i32),
                    0x7fc0_0000 => Verdict::Notify,
                    _ => Verdict::Kill,
                };
                return (verdict, step);
            }
            other => panic!("unknown instruction {other:#x}"),
        }
    }
    unreachable!("a program ends with a verdict")
}
