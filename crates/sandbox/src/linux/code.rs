//! The program's own code in memory.

use std::fs;

/// Lets go of the pages of code that the start of the program needed. The kernel maps many pages
/// around each that is touched, so that after its start a program holds far more of its file than it
/// uses; what is needed again is found in the system's cache.
pub(crate) fn let_go() {
    let (Ok(program), Ok(maps)) = (
        fs::read_link("/proc/self/exe"),
        fs::read_to_string("/proc/self/maps"),
    ) else {
        return;
    };
    let name = program.to_string_lossy();
    for (from, to) in maps.lines().filter_map(|line| code(line, &name)) {
        // SAFETY: the kernel has just named this range as code of this program: mapped from its
        // file, private and not writable, so that what is read there again is what was there.
        unsafe {
            libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_DONTNEED);
        }
    }
}

/// From where to where a line of `/proc/self/maps` has code of the program of this name.
fn code(line: &str, name: &str) -> Option<(usize, usize)> {
    let mut parts = line.splitn(6, ' ');
    let (range, permissions) = (parts.next()?, parts.next()?);
    let file = parts.nth(3)?.trim_start();
    if permissions != "r-xp" || file != name {
        return None;
    }
    let (from, to) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some((number(from)?, number(to)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_programs_own_code_is_let_go_of() {
        let code = |line| code(line, "/usr/bin/ward");
        let own = "55d0c2a00000-55d0c3400000 r-xp 00a00000 fe:00 1234                       /usr/bin/ward";
        assert_eq!(code(own), Some((0x55d0_c2a0_0000, 0x55d0_c340_0000)));
        for other in [
            "55d0c2000000-55d0c2a00000 r--p 00000000 fe:00 1234                       /usr/bin/ward",
            "55d0c3400000-55d0c3410000 rw-p 01400000 fe:00 1234                       /usr/bin/ward",
            "7f2b10000000-7f2b10150000 r-xp 00028000 fe:00 99                         /usr/lib/libc.so.6",
            "7ffd5a1f0000-7ffd5a1f2000 r-xp 00000000 00:00 0                          [vdso]",
            "7f2b20000000-7f2b20001000 r-xp 00000000 00:00 0 ",
            "",
        ] {
            assert_eq!(code(other), None, "{other}");
        }
    }
}
