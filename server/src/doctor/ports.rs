//! The port to listen on: whether it is free, or which process uses it.

use std::fs;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::path::Path;

use super::Check;

const GROUP: &str = "network";
/// The state of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

pub(super) fn check(host: IpAddr, port: u16) -> Vec<Check> {
    let value = format!("{host}:{port}");
    let check = match TcpListener::bind((host, port)) {
        Ok(_) if port == 0 => Check::ok(GROUP, "port", format!("{value}, a free port will be chosen at the start")),
        Ok(_) => Check::ok(GROUP, "port", format!("{value} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let owner = owner(Path::new("/proc"), port).unwrap_or_else(|| "another process".to_owned());
            let advice = "stop that process, or pass another --port";
            Check::failure(GROUP, "port", format!("{value} is taken by {owner}"), advice)
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let advice = "pass --port with a number from 1024, or grant the capability CAP_NET_BIND_SERVICE";
            Check::failure(GROUP, "port", format!("{value}: {error}"), advice)
        }
        Err(error) => {
            let advice = "pass --host with an address of this machine";
            Check::failure(GROUP, "port", format!("{value}: {error}"), advice)
        }
    };
    vec![check]
}

/// Finds the process that listens on a port, as far as this user may know.
fn owner(proc: &Path, port: u16) -> Option<String> {
    let inode = ["net/tcp", "net/tcp6"]
        .iter()
        .find_map(|table| inode(&fs::read_to_string(proc.join(table)).unwrap_or_default(), port))?;
    let socket = format!("socket:[{inode}]");
    for entry in fs::read_dir(proc).ok()?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) else { continue };
        let files = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        if targets.any(|target| target.as_os_str() == socket.as_str()) {
            let program = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (process {pid})", program.trim()));
        }
    }
    None
}

/// Finds the inode of the socket that listens on a port in a table of the kernel.
fn inode(table: &str, port: u16) -> Option<String> {
    let local = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(1)?.ends_with(&local) && *fields.get(3)? == LISTENING;
        listens.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::Status;
    use super::*;

    #[test]
    fn who_has_the_port_is_named() {
        let host = IpAddr::from([127, 0, 0, 1]);
        let taken = TcpListener::bind((host, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let found = &check(host, port)[0];
        assert_eq!(found.status, Status::Failure);
        assert!(found.value.contains(&format!("(process {})", std::process::id())), "{found:?}");
        drop(taken);
        assert_eq!(check(host, 0)[0].status, Status::Ok);
    }

    #[test]
    fn an_address_of_another_machine_is_a_failure() {
        assert_eq!(check(IpAddr::from([192, 0, 2, 1]), 8000)[0].status, Status::Failure);
    }

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                     0: 0100007F:1F40 0100007F:AAAA 01 00000000:00000000 00:00000000 00000000     0        0 11 1\n\
                     1: 0100007F:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22 1\n\
                     2: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 33 1\n";
        assert_eq!(inode(table, 8000).as_deref(), Some("33"));
        assert_eq!(inode(table, 8002), None);
    }
}
