//! Nothing that the benchmark has started outlives it, however it ends.
#![cfg(test)]
#![cfg(target_os = "linux")]

use std::{
    env, fs,
    io::{Read, Write},
    net::TcpListener,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

const BENCH: &str = env!("CARGO_BIN_EXE_unbraid-bench");

/// Far more than it takes on any machine, and far less than the processes would live.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process with a child, in a group of its own. Its output ends with the last of them.
fn family() -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", "sleep 1000 & sleep 1000"]);
    shell.stdout(Stdio::piped()).process_group(0);
    shell.spawn().unwrap()
}

fn guard(group: &Child) -> Child {
    let mut guard = Command::new(BENCH);
    guard.args(["guard", &group.id().to_string()]);
    guard.stdin(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_group_ends_with_the_input_of_its_guard() {
    let mut family = family();
    let mut guard = guard(&family);
    drop(guard.stdin.take());
    let mut output = family.stdout.take().unwrap();
    output.read_to_end(&mut Vec::new()).unwrap();
    assert!(!family.wait().unwrap().success());
    assert!(guard.wait().unwrap().success());
}

#[test]
fn a_guard_that_is_released_ends_nothing() {
    let mut family = family();
    let mut guard = guard(&family);
    guard.stdin.take().unwrap().write_all(b".").unwrap();
    assert!(guard.wait().unwrap().success());
    assert!(family.try_wait().unwrap().is_none());
    let group = format!("-{}", family.id());
    Command::new("kill")
        .args(["-KILL", "--", &group])
        .status()
        .unwrap();
    family.wait().unwrap();
}

/// A gateway that never answers, as a script: it prints its address, and writes its process id into a file.
fn script(directory: &Path, address: &str) -> std::path::PathBuf {
    let path = directory.join("unbraid");
    let text = format!(
        "#!/bin/sh\necho $$ > {}\necho http://{address}/\nexec sleep 1000\n",
        directory.join("pid").display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Waits for a value.
fn until<T>(mut value: impl FnMut() -> Option<T>) -> T {
    let pause = Duration::from_millis(20);
    for _ in 0..PATIENCE.as_millis() / pause.as_millis() {
        if let Some(value) = value() {
            return value;
        }
        thread::sleep(pause);
    }
    panic!("it takes too long");
}

/// Whether a process runs. One that has ended may wait for its parent.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn the_gateway_of_a_benchmark_that_is_killed_ends() {
    let directory = env::temp_dir().join(format!("unbraid-guard-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    // Its requests are accepted by the system, and by nobody else.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let mut bench = Command::new(BENCH)
        .args(["gateway", "soak", "100"])
        .env("UNBRAID_COMMAND", script(&directory, &address))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The first connection of its load shows that the guard was started.
    silent.accept().unwrap();
    let pid = fs::read_to_string(directory.join("pid")).unwrap();
    assert!(runs(pid.trim()));
    bench.kill().unwrap();
    bench.wait().unwrap();
    until(|| (!runs(pid.trim())).then_some(()));
    fs::remove_dir_all(&directory).unwrap();
}
