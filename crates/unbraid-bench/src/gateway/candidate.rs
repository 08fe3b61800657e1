//! What is compared, as data, and how each is started.

use std::{
    env, fs,
    io::{self, BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::{
    guard::{self, Guard},
    load::Target,
    options::Options,
    process, venv, wait_for,
};
use crate::brokers::Broker;

/// The gateways: a name, the log that `unbraid serve` uses if it is not its memory, and further lines of each request. Another
/// one is one more row, here or after `--` on the command line.
const GATEWAYS: &[(&str, Option<&str>, &str)] = &[
    ("unbraid live", None, "x-stream-durability: live\r\n"),
    ("unbraid memory", None, ""),
    ("unbraid file", Some("file"), ""),
    ("unbraid Redis", Some("redis"), ""),
    ("unbraid NATS", Some("nats"), ""),
];

/// Above the load of every mode. The options of a row take precedence.
const LIMITS: [(&str, &str); 2] = [
    ("UNBRAID_MAX_STREAMS", "20000"),
    ("UNBRAID_MAX_MEMORY", "4GiB"),
];

const LITELLM: &str = "litellm 2 workers";

/// How long a candidate may take to start. LiteLLM imports for minutes on a busy machine.
const START: Duration = Duration::from_secs(600);

/// Something that forwards requests, or the upstream itself.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) name: String,
    kind: Kind,
    headers: &'static str,
    /// What a gateway's log is, if it is not its memory.
    log: Option<&'static str>,
    /// The command of a gateway, if it is not the one beside the benchmark.
    command: Option<PathBuf>,
}

#[derive(Debug, Clone)]
enum Kind {
    Direct,
    Nginx,
    LiteLlm,
    Gateway(Vec<String>),
}

/// The candidates that were chosen, and one more gateway with these options, if there are any.
pub(super) fn all(more: &[String], options: &Options) -> Vec<Candidate> {
    let candidate = |name: &str, kind, headers| Candidate {
        name: name.to_owned(),
        kind,
        headers,
        log: None,
        command: None,
    };
    let mut all = vec![
        candidate("direct", Kind::Direct, ""),
        candidate("nginx 2 workers", Kind::Nginx, ""),
        candidate(LITELLM, Kind::LiteLlm, ""),
    ];
    for (name, log, headers) in GATEWAYS {
        let gateway = candidate(name, Kind::Gateway(Vec::new()), headers);
        all.push(Candidate {
            log: *log,
            ..gateway
        });
    }
    if let Some(command) = &options.against {
        let gateways = all
            .iter()
            .filter(|one| matches!(one.kind, Kind::Gateway(_)));
        let others = gateways.map(|gateway| Candidate {
            name: format!("other {}", gateway.name),
            command: Some(command.clone()),
            ..gateway.clone()
        });
        let others: Vec<_> = others.collect();
        all.extend(others);
    }
    all.retain(|candidate| options.takes(&candidate.name));
    if !more.is_empty() {
        let name = format!("unbraid {}", more.join(" "));
        all.push(candidate(&name, Kind::Gateway(more.to_vec()), ""));
    }
    all
}

impl Candidate {
    /// A gateway with these options alone.
    pub(super) fn gateway(options: Vec<String>) -> Self {
        Self {
            name: "unbraid".to_owned(),
            kind: Kind::Gateway(options),
            headers: "",
            log: None,
            command: None,
        }
    }
}

/// A candidate that runs. Dropping it ends its processes.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) target: Target,
    /// The processes; empty for the upstream itself, whose usage is not counted.
    pub(super) pids: Vec<u32>,
    child: Option<Child>,
    /// Released only after the processes have ended.
    _guard: Option<Guard>,
    /// It ends after its gateway.
    broker: Option<Broker>,
    directory: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Its group has only processes that it has started.
            let group = child.id();
            let exited = || child.try_wait().map(|status| status.is_some());
            let _still_there = guard::end_group(group, exited);
            let _exited = child.wait();
        }
        let _absent = fs::remove_dir_all(&self.directory);
    }
}

impl Candidate {
    /// Starts it in front of the upstream. An error says why it cannot be compared here.
    pub(super) fn start(&self, upstream: SocketAddr, options: &Options) -> io::Result<Running> {
        let directory = env::temp_dir().join(format!(
            "unbraid-bench-{}-{}",
            std::process::id(),
            self.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
        ));
        fs::create_dir_all(&directory)?;
        let mut running = Running {
            target: Target {
                address: upstream,
                headers: self.headers,
            },
            pids: Vec::new(),
            child: None,
            _guard: None,
            broker: None,
            directory,
        };
        match &self.kind {
            Kind::Direct => return Ok(running),
            Kind::Nginx => running.start_nginx(upstream)?,
            Kind::LiteLlm => running.start_litellm(upstream, options.left(START))?,
            Kind::Gateway(arguments) => {
                let mut arguments = arguments.clone();
                if let Some(log) = self.log {
                    arguments.extend(["--log".to_owned(), running.start_log(log)?]);
                }
                let command = self.command.clone().map_or_else(crate::cli::command, Ok);
                running.start_gateway(command?, upstream, &arguments)?;
            }
        }
        let child = running.child.as_ref().map_or(0, Child::id);
        running.pids = process::tree(child)?;
        Ok(running)
    }

    pub(super) fn is_direct(&self) -> bool {
        matches!(self.kind, Kind::Direct)
    }

    /// Whether its streams can be read again.
    pub(super) fn keeps_streams(&self) -> bool {
        matches!(self.kind, Kind::Gateway(_)) && self.headers.is_empty()
    }

    /// LiteLLM cannot: its row would be the time until it is known that it cannot.
    pub(super) fn carries_the_full_load(&self) -> bool {
        !matches!(self.kind, Kind::LiteLlm)
    }
}

impl Running {
    fn start_nginx(&mut self, upstream: SocketAddr) -> io::Result<()> {
        let port = free_port()?;
        let dir = self.directory.display();
        let config = format!(
            "worker_processes 2;\nworker_rlimit_nofile 20000;\npid {dir}/pid;\nerror_log {dir}/error.log;\nevents {{ worker_connections 16384; }}\n\
             http {{\n  access_log off;\n  client_body_temp_path {dir}/body;\n  proxy_temp_path {dir}/proxy;\n  fastcgi_temp_path {dir}/f;\n  uwsgi_temp_path {dir}/u;\n  scgi_temp_path {dir}/s;\n\
             server {{\n    listen 127.0.0.1:{port};\n    location / {{\n      proxy_pass http://{upstream};\n      proxy_http_version 1.1;\n      proxy_buffering off;\n      proxy_read_timeout 600s;\n    }}\n  }}\n}}\n"
        );
        let file = self.directory.join("nginx.conf");
        fs::write(&file, config)?;
        let mut command = Command::new("nginx");
        command.arg("-p").arg(&self.directory).arg("-c").arg(&file);
        command.args(["-e", "stderr", "-g", "daemon off;"]);
        self.spawn(command, Stdio::null())
            .map_err(|_| io::Error::other("nginx is not installed (apt-get install nginx)"))?;
        self.listens(port, "/", START)
    }

    fn start_litellm(&mut self, upstream: SocketAddr, limit: Duration) -> io::Result<()> {
        let program = venv()?.join("bin/litellm");
        if !program.is_file() {
            let message = "litellm is not installed (tests/bench/prepare.py installs it from PyPI)";
            return Err(io::Error::other(message));
        }
        // Without a key for its own clients it does not start, unless it is permitted. Then it checks none, in its favour.
        let config = format!(
            "model_list:\n  - model_name: m\n    litellm_params:\n      model: openai/m\n      api_base: http://{upstream}/v1\n      api_key: sk-bench\nlitellm_settings:\n  num_retries: 0\n  request_timeout: 600\ngeneral_settings:\n  dangerously_permit_weak_or_unset_master_key: true\n"
        );
        let file = self.directory.join("config.yaml");
        fs::write(&file, config)?;
        let port = free_port()?;
        let mut command = Command::new(program);
        command.arg("--config").arg(&file);
        command.args([
            "--host",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--num_workers",
            "2",
            // Its server starts workers again that do not answer within 5 s, which one that imports on a busy machine never does.
            "--timeout_worker_healthcheck",
            "600",
        ]);
        // Nothing is fetched or reported while it runs.
        command.envs([
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
            ("LITELLM_LOG", "ERROR"),
        ]);
        command
            .env("LITELLM_TELEMETRY", "False")
            .env("NO_PROXY", "*");
        self.spawn(command, Stdio::null())?;
        self.listens(port, "/health/liveliness", limit)
    }

    /// Starts what keeps the streams of a gateway, and returns its address.
    fn start_log(&mut self, log: &str) -> io::Result<String> {
        if log == "file" {
            let file = self.directory.join("streams.log");
            return Ok(format!("file:{}", file.display()));
        }
        let broker = super::block_on(Broker::start(log))??;
        let absent = || io::Error::other(format!("{log}-server is not installed"));
        let broker = broker.ok_or_else(absent)?;
        Ok(self.broker.insert(broker).url())
    }

    fn start_gateway(
        &mut self,
        command: PathBuf,
        upstream: SocketAddr,
        options: &[String],
    ) -> io::Result<()> {
        let mut command = Command::new(command);
        command.args(["serve", "--listen", "127.0.0.1:0", "--upstream"]);
        command.arg(format!("http://{upstream}/v1"));
        command.envs(LIMITS).args(options);
        self.spawn(command, Stdio::piped())?;
        let stdout = self.child.as_mut().and_then(|child| child.stdout.take());
        let mut line = String::new();
        BufReader::new(stdout.ok_or(io::ErrorKind::BrokenPipe)?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("http://");
        let address = address.and_then(|rest| rest.strip_suffix('/')?.parse().ok());
        let message = "the command has not printed its address";
        self.target.address = address.ok_or_else(|| io::Error::other(message))?;
        Ok(())
    }

    fn spawn(&mut self, mut command: Command, stdout: Stdio) -> io::Result<()> {
        let log = fs::File::create(self.log())?;
        command.stdin(Stdio::null()).stdout(stdout).stderr(log);
        let child = command.process_group(0).spawn()?;
        let group = child.id();
        self.child = Some(child);
        self._guard = Some(Guard::start(group)?);
        Ok(())
    }

    /// What the processes print, apart from their answers.
    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// An error with the last line of the log, which usually is the reason.
    fn failed(&self, error: &io::Error) -> io::Error {
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let last = log.lines().rev().find(|line| !line.trim().is_empty());
        io::Error::other(format!("{error}: {}", last.unwrap_or("it printed nothing")))
    }

    /// Waits until a path is answered, by whatever status.
    fn listens(&mut self, port: u16, path: &str, limit: Duration) -> io::Result<()> {
        self.target.address = (Ipv4Addr::LOCALHOST, port).into();
        let address = self.target.address;
        let child = self.child.as_mut();
        let Some(child) = child else { return Ok(()) };
        let started = wait_for("the start", limit, || {
            if let Some(status) = child.try_wait()? {
                return Err(io::Error::other(format!("it has exited: {status}")));
            }
            Ok(super::resume::get(address, path).is_ok())
        });
        started.map_err(|error| self.failed(&error))
    }
}

fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
