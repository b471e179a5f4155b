//! The file that the library was loaded from: a program may find several of them.

/// Name of the file that is mapped at an address.
pub(crate) fn file_name(address: usize) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let number = |text: &str| usize::from_str_radix(text, 16).ok();
    maps.lines().find_map(|line| {
        let (start, rest) = line.split_once('-')?;
        let (end, rest) = rest.split_once(' ')?;
        let is_there = (number(start)?..number(end)?).contains(&address);
        is_there.then(|| Some(rest.get(rest.rfind('/')? + 1..)?.to_owned()))?
    })
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_function_is_in_the_file_of_the_program() {
        let own = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        assert_eq!(file_name(file_name as *const () as usize), own);
        assert_eq!(file_name(8), None);
    }
}
