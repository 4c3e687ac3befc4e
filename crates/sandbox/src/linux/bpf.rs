//! A small assembler for seccomp's classic BPF.
//!
//! The field's crates cannot say "ask the supervisor" (`USER_NOTIF`) nor close the x32 numbers, so
//! the few instructions that are needed are written here. A program only ever loads words of
//! `seccomp_data`, compares, and returns.

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

/// A program in the making.
#[derive(Debug, Default)]
pub(crate) struct Program {
    instructions: Vec<Instruction>,
}

impl Program {
    /// Starts with what every program does: another architecture's calls end the process, and
    /// numbers from `foreign` on (x32) do not exist.
    pub(crate) fn new(arch: u32, foreign: Option<u32>) -> Self {
        let mut program = Self::default();
        program.load(ARCH_AT);
        program.jump(JUMP_EQUAL, arch, 1, 0);
        program.give(Verdict::Kill);
        program.load(NUMBER_AT);
        if let Some(foreign) = foreign {
            program.jump(JUMP_GREATER_OR_EQUAL, foreign, 0, 1);
            program.give(Verdict::Errno(libc::ENOSYS));
        }
        program
    }

    /// Gives every call of this number the verdict.
    pub(crate) fn on(&mut self, number: u32, verdict: Verdict) {
        self.jump(JUMP_EQUAL, number, 0, 1);
        self.give(verdict);
    }

    /// Gives calls of this number the verdict where the argument passes the test.
    pub(crate) fn on_argument(&mut self, number: u32, argument: u32, test: Test, verdict: Verdict) {
        let mut body = Self::default();
        let low = 16 + 8 * argument;
        match test {
            Test::AnyBit(bits) => {
                body.load(low);
                body.jump(JUMP_ANY_BIT, bits, 0, 1);
                body.give(verdict);
            }
            Test::OneOf(values) => {
                body.load(low);
                body.jump_if_any(values, verdict);
            }
            Test::NoneOf(values) => {
                body.load(low);
                body.jump_unless_any(values, verdict);
            }
            Test::MaskedNoneOf(mask, values) => {
                body.load(low);
                body.statement(AND, mask);
                body.jump_unless_any(values, verdict);
            }
            Test::NotZero => {
                body.load(low);
                body.jump(JUMP_EQUAL, 0, 0, 2);
                body.load(low + 4);
                body.jump(JUMP_EQUAL, 0, 1, 0);
                body.give(verdict);
            }
        }
        body.load(NUMBER_AT);
        let length = u8::try_from(body.instructions.len()).unwrap_or(u8::MAX);
        self.jump(JUMP_EQUAL, number, 0, length);
        self.instructions.extend(body.instructions);
    }

    /// Ends the program: what nothing was said of is allowed.
    pub(crate) fn finish(mut self) -> Vec<Instruction> {
        self.give(Verdict::Allow);
        self.instructions
    }

    fn jump_if_any(&mut self, values: &[u32], verdict: Verdict) {
        for (index, value) in values.iter().enumerate() {
            let to_verdict = values.len() - 1 - index;
            let last = to_verdict == 0;
            self.jump(
                JUMP_EQUAL,
                *value,
                u8::try_from(to_verdict).unwrap_or(0),
                u8::from(last),
            );
        }
        self.give(verdict);
    }

    fn jump_unless_any(&mut self, values: &[u32], verdict: Verdict) {
        for (index, value) in values.iter().enumerate() {
            let past_verdict = values.len() - index;
            self.jump(
                JUMP_EQUAL,
                *value,
                u8::try_from(past_verdict).unwrap_or(0),
                0,
            );
        }
        self.give(verdict);
    }

    fn load(&mut self, at: u32) {
        self.statement(LOAD_WORD, at);
    }

    fn give(&mut self, verdict: Verdict) {
        self.statement(RETURN, verdict.value());
    }

    fn statement(&mut self, code: u16, value: u32) {
        self.instructions.push(Instruction {
            code,
            jump_true: 0,
            jump_false: 0,
            value,
        });
    }

    fn jump(&mut self, code: u16, value: u32, jump_true: u8, jump_false: u8) {
        self.instructions.push(Instruction {
            code,
            jump_true,
            jump_false,
            value,
        });
    }
}

/// Runs a program over one system call, as the kernel would. For tests.
#[cfg(test)]
pub(crate) fn run(program: &[Instruction], arch: u32, number: u32, arguments: [u64; 6]) -> Verdict {
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
    loop {
        let i = program[at];
        at += 1;
        let mut jump = |yes: bool| at += usize::from(if yes { i.jump_true } else { i.jump_false });
        match i.code {
            LOAD_WORD => register = word(i.value),
            AND => register &= i.value,
            JUMP_EQUAL => jump(register == i.value),
            JUMP_GREATER_OR_EQUAL => jump(register >= i.value),
            JUMP_ANY_BIT => jump(register & i.value != 0),
            RETURN => {
                return match i.value & 0xffff_0000 {
                    0x7fff_0000 => Verdict::Allow,
                    0x0005_0000 => Verdict::Errno((i.value & 0xffff) as i32),
                    0x7fc0_0000 => Verdict::Notify,
                    _ => Verdict::Kill,
                };
            }
            other => panic!("unknown instruction {other:#x}"),
        }
    }
}
