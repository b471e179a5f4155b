//! Files that are mapped into this process. Only Linux reports them.

/// The file that is mapped at an address, such as that of a library's function.
pub(super) fn file_of(address: usize) -> Option<String> {
    file_at(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default(), address)
}

fn file_at(maps: &str, address: usize) -> Option<String> {
    let number = |text: &str| usize::from_str_radix(text, 16).ok();
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let is_there = (number(start)?..number(end)?).contains(&address);
        is_there.then(|| rest.find('/').map(|at| rest[at..].to_owned()))?
    })
}

#[cfg(test)]
mod tests {
    use super::file_at;

    #[test]
    fn addresses_have_files() {
        let maps = "1000-2000 r--p 0 08:01 1   /usr/lib/libcuda.so.550.1\n2000-3000 rw-p 0 00:00 0 \n3000-4000 r-xp 0 08:01 2  /opt/a b/x.so\n";
        let found = [0xfff, 0x1000, 0x1fff, 0x2000, 0x3001].map(|address| file_at(maps, address));
        let [driver, other] = ["/usr/lib/libcuda.so.550.1", "/opt/a b/x.so"].map(|path| Some(path.to_owned()));
        assert_eq!(found, [None, driver.clone(), driver, None, other]);
    }
}
