//! The broker: a child process in a folder of its own, which is killed, emptied, suspended and runs out of space.

use std::{
    env, fs, io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Mutex,
    time::{Instant, sleep, timeout},
};

use super::{CannotRun, LogKind, process::Process};

/// A broker that is started again on the same port.
#[derive(Debug)]
pub(super) struct Broker {
    kind: LogKind,
    program: PathBuf,
    folder: PathBuf,
    port: u16,
    disk: Option<Disk>,
    process: Mutex<Option<Process>>,
}

/// No server takes longer to start, not even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Small, so that it can be filled at once.
const DISK_MIB: u64 = 96;

impl Broker {
    /// Starts the broker of this log; `None` if the log needs none.
    pub(super) async fn start(kind: LogKind, folder: &Path) -> Result<Option<Self>, CannotRun> {
        let Some((program, package)) = kind.broker() else {
            return Ok(None);
        };
        let program = find(program).ok_or_else(|| {
            CannotRun::absent(format!(
                "{program} is not installed (apt-get install {package})"
            ))
        })?;
        let folder = folder.join("broker");
        fs::create_dir_all(&folder).map_err(CannotRun::io)?;
        let disk = Disk::mount(&folder);
        let broker = Self {
            kind,
            program,
            folder,
            port: free_port().map_err(CannotRun::io)?,
            disk,
            process: Mutex::default(),
        };
        broker.restart().await?;
        Ok(Some(broker))
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Whether its disk can be filled.
    pub(super) fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Kills it. What it has written stays.
    pub(super) async fn kill(&self) {
        self.process.lock().await.take();
    }

    /// Deletes what it has written. It must not run.
    pub(super) fn empty(&self) {
        let data = self.data();
        // There is nothing to delete if it was killed before it wrote anything.
        let _removed = fs::remove_dir_all(&data);
    }

    pub(super) async fn suspend(&self) {
        if let Some(process) = &*self.process.lock().await {
            process.suspend();
        }
    }

    pub(super) async fn resume(&self) {
        if let Some(process) = &*self.process.lock().await {
            process.resume();
        }
    }

    /// Fills its disk, until the result is dropped.
    pub(super) fn fill_disk(&self) -> Option<FullDisk> {
        self.disk.as_ref().map(Disk::fill)
    }

    /// Starts it, and waits until it answers.
    pub(super) async fn restart(&self) -> Result<(), CannotRun> {
        let mut process = self.process.lock().await;
        let deadline = Instant::now() + PATIENCE;
        fs::create_dir_all(self.data()).map_err(CannotRun::io)?;
        // The kernel may keep its port for a moment, or another process may have it.
        while Instant::now() < deadline {
            *process = None;
            let mut started = Process::start(&mut self.command(), &self.folder.join("output.log"))
                .map_err(CannotRun::io)?;
            while started.exit_code().is_none() && Instant::now() < deadline {
                if self.is_ready().await {
                    *process = Some(started);
                    return Ok(());
                }
                sleep(Duration::from_millis(20)).await;
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(CannotRun::new(format!(
            "{} does not start: see {}",
            self.program.display(),
            self.folder.display()
        )))
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        let port = self.port.to_string();
        if self.kind == LogKind::Nats {
            command
                .args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"])
                .arg(self.data());
            return command;
        }
        command
            .args(["--port", &port, "--bind", "127.0.0.1", "--dir"])
            .arg(self.data())
            .args([
                "--daemonize",
                "no",
                "--save",
                "",
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
            ])
            // The log of a round is small, and a rewrite needs a second copy of it.
            .args(["--auto-aof-rewrite-percentage", "0"]);
        command
    }

    /// Whether it answers requests. A broker that loads its data accepts connections before that.
    async fn is_ready(&self) -> bool {
        let attempt = async {
            let mut socket = TcpStream::connect(self.address()).await.ok()?;
            let mut answer = [0; 512];
            if self.kind == LogKind::Nats {
                let length = socket.read(&mut answer).await.ok()?;
                return answer.get(..length)?.starts_with(b"INFO ").then_some(());
            }
            socket.write_all(b"PING\r\n").await.ok()?;
            let length = socket.read(&mut answer).await.ok()?;
            answer.get(..length)?.starts_with(b"+PONG").then_some(())
        };
        timeout(Duration::from_secs(1), attempt)
            .await
            .ok()
            .flatten()
            .is_some()
    }
}

/// Finds a program in `PATH`, and where Debian installs servers.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let mut programs = folders.map(|folder| folder.join(name));
    programs.find(|program| program.is_file())
}

/// A port of the loopback address that nothing listens on at this moment.
pub(super) fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// A small file system. Mounting one needs the rights of root.
#[derive(Debug)]
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: &Path) -> Option<Self> {
        let size = format!("size={DISK_MIB}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder)
            .stderr(Stdio::null())
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then(|| Self(folder.to_owned()))
    }

    fn fill(&self) -> FullDisk {
        let path = self.0.join("filler");
        let block = vec![0; 1 << 20];
        if let Ok(mut file) = fs::File::create(&path) {
            // Ends with an error when the disk is full.
            while io::Write::write_all(&mut file, &block).is_ok() {}
            while io::Write::write_all(&mut file, &[0]).is_ok() {}
        }
        FullDisk(path)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .stderr(Stdio::null())
            .status();
    }
}

/// A disk without space. Dropping it frees the space.
#[derive(Debug)]
pub(super) struct FullDisk(PathBuf);

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _removed = fs::remove_file(&self.0);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Before its disk.
        self.process.get_mut().take();
    }
}
