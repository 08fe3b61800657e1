//! What is checked about a server before it is used.

use std::{borrow::Cow, time::Duration};

use redis::{Value, aio::MultiplexedConnection};

use crate::{
    ConnectError, RedisOptions,
    address::{Address, Connection},
    error::Failure,
};

/// The oldest server whose commands suffice: `SET` with `NX` and `GET` at once.
const OLDEST: (u32, u32) = (7, 0);

/// Returns which command of the scripts the user may not call.
const PERMITTED: &str = include_str!("lua/permitted.lua");

/// The commands that it tries.
const COMMANDS: [&str; 13] = [
    "XADD",
    "PEXPIRE",
    "PTTL",
    "EXISTS",
    "XLEN",
    "XRANGE",
    "XREVRANGE",
    "XREAD",
    "XDEL",
    "UNLINK",
    "SET",
    "GET",
    "DEL",
];

/// What a usable server should be configured differently for.
pub(crate) type Warnings = Vec<String>;

/// Checks the server's version, its role and its configuration.
pub(crate) async fn check(
    connection: &Connection,
    address: &Address,
    options: &RedisOptions,
) -> Result<Warnings, ConnectError> {
    let mut commands = connection.commands.clone();
    let answer = redis::cmd("INFO").query_async(&mut commands).await;
    let text = match answer {
        Ok(value) => text(&value)
            .map(Cow::into_owned)
            .ok_or_else(|| connect_error(Failure::Answer, address))?,
        Err(error) => return Err(request_error(error.into(), "INFO", address)),
    };
    let info = Info(&text);
    info.check_version(address)?;
    if info.get("cluster_enabled") == Some("1") {
        return Err(ConnectError::Cluster);
    }
    if info.get("role") == Some("slave") {
        return Err(ConnectError::Replica);
    }
    check_permission(connection, address, options).await?;
    Ok(info.warnings(options))
}

/// The text of an answer.
fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes)),
        Value::VerbatimString { text, .. } => Some(Cow::Borrowed(text)),
        _ => None,
    }
}

/// The time of the server's clock, in microseconds, by its answer to `INFO`.
pub(crate) fn time(info: &Value) -> Option<u64> {
    Info(&text(info)?).get("server_time_usec")?.parse().ok()
}

/// For how many whole seconds the server has been up, by its answer to `INFO`.
pub(crate) fn uptime(info: &Value) -> Option<Duration> {
    let text = text(info)?;
    let seconds = Info(&text).get("uptime_in_seconds")?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Runs a script that calls the commands of all scripts, with a key of the prefix.
async fn check_permission(
    connection: &Connection,
    address: &Address,
    options: &RedisOptions,
) -> Result<(), ConnectError> {
    let key = format!("{}:permitted:{{}}", options.prefix);
    let mut eval = redis::cmd("EVAL");
    eval.arg(PERMITTED).arg(1).arg(key);
    let mut commands = connection.commands.clone();
    let answer: Result<Value, _> = eval.query_async(&mut commands).await;
    let refused = match answer {
        Ok(Value::Nil) => return check_calls(&mut commands, address).await,
        Ok(value) => text(&value).map(Cow::into_owned).unwrap_or_default(),
        Err(error) => return Err(request_error(error.into(), "EVAL", address)),
    };
    let command = COMMANDS.into_iter().find(|command| *command == refused);
    Err(ConnectError::NotPermitted {
        command: command.unwrap_or("EVAL"),
    })
}

/// Loads a script and calls it by its hash, as all others are.
async fn check_calls(
    commands: &mut MultiplexedConnection,
    address: &Address,
) -> Result<(), ConnectError> {
    let loaded: Result<String, _> = redis::cmd("SCRIPT")
        .arg("LOAD")
        .arg("return false")
        .query_async(commands)
        .await;
    let hash = loaded.map_err(|error| request_error(error.into(), "SCRIPT|LOAD", address))?;
    let called: Result<Value, _> = redis::cmd("EVALSHA")
        .arg(hash)
        .arg(0)
        .query_async(commands)
        .await;
    match called {
        Ok(_) => Ok(()),
        Err(error) => Err(request_error(error.into(), "EVALSHA", address)),
    }
}

/// The error of a request before the log is connected.
fn request_error(failure: Failure, command: &'static str, address: &Address) -> ConnectError {
    match failure {
        Failure::Server(code) if code == "NOPERM" => ConnectError::NotPermitted { command },
        Failure::Server(code) if code == "ERR" => unreachable(address, Failure::Server(code)),
        failure => connect_error(failure, address),
    }
}

/// The error of a connection that failed.
pub(crate) fn connect_error(failure: Failure, address: &Address) -> ConnectError {
    match failure {
        Failure::Unauthorized => ConnectError::Unauthorized,
        Failure::Answer => ConnectError::NotRedis {
            address: address.to_string(),
        },
        Failure::Server(code) => match code.as_str() {
            "NOAUTH" | "WRONGPASS" => ConnectError::Unauthorized,
            // The only other request at that time is the choice of a database.
            "ERR" => ConnectError::InvalidUrl {
                reason: "the server has no such database",
            },
            _ => unreachable(address, Failure::Server(code)),
        },
        Failure::Connection(_) | Failure::Timeout | Failure::Replicas => {
            unreachable(address, failure)
        }
    }
}

fn unreachable(address: &Address, failure: Failure) -> ConnectError {
    ConnectError::Unreachable {
        address: address.to_string(),
        reason: failure.reason(),
    }
}

/// The answer to `INFO`: lines of a name, a colon and a value.
struct Info<'a>(&'a str);

impl<'a> Info<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }

    fn check_version(&self, address: &Address) -> Result<(), ConnectError> {
        // Valkey states the version of Redis that it is compatible with, too.
        let version = self.get("redis_version").unwrap_or_default();
        let mut parts = version.split('.').map(str::parse);
        let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
            return Err(connect_error(Failure::Answer, address));
        };
        if (major, minor) < OLDEST {
            let is_version = |char: &char| char.is_ascii_digit() || *char == '.';
            let version = version.chars().take_while(is_version).take(32).collect();
            return Err(ConnectError::OldServer { version });
        }
        Ok(())
    }

    fn warnings(&self, options: &RedisOptions) -> Warnings {
        let mut warnings = Vec::new();
        let policy = self.get("maxmemory_policy");
        if policy.is_some_and(|policy| policy != "noeviction") {
            warnings.push(
                "Redis evicts keys when its memory is full, and loses streams by it: set maxmemory-policy noeviction"
                    .to_owned(),
            );
        }
        if self.get("aof_enabled") == Some("0") {
            warnings.push(
                "Redis keeps no append-only file, and loses ended streams when it restarts: set appendonly yes"
                    .to_owned(),
            );
        }
        let replicas = self.get("connected_slaves").map(str::parse);
        if let Some(Ok(connected)) = replicas
            && options.replicas > connected
        {
            warnings.push(format!(
                "Redis has {connected} connected replicas, but each record has to reach {}",
                options.replicas
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Address {
        Address::parse("redis://h", None).unwrap()
    }

    #[track_caller]
    fn check_version(version: &str, expected: Result<(), ConnectError>) {
        let info = format!("# Server\r\nredis_version:{version}\r\nredis_mode:standalone\r\n");
        assert_eq!(Info(&info).check_version(&address()), expected, "{version}");
    }

    #[test]
    fn servers_before_7_are_refused() {
        let old = |version: &str| {
            Err(ConnectError::OldServer {
                version: version.to_owned(),
            })
        };
        let foreign = Err(ConnectError::NotRedis {
            address: "h:6379".to_owned(),
        });
        check_version("7.0.0", Ok(()));
        check_version("10.2", Ok(()));
        check_version("6.2.14", old("6.2.14"));
        check_version("6.2\u{1b}[31m", foreign.clone());
        check_version("6.2.\u{1b}[31m", old("6.2."));
        check_version("", foreign.clone());
        check_version("unstable", foreign);
    }

    #[test]
    fn each_command_of_the_scripts_is_tried() {
        let scripts = [
            include_str!("lua/add.lua"),
            include_str!("lua/append.lua"),
            include_str!("lua/claim.lua"),
            include_str!("lua/erase.lua"),
            include_str!("lua/follow.lua"),
            include_str!("lua/keep_claim.lua"),
            include_str!("lua/open.lua"),
            include_str!("lua/prelude.lua"),
            include_str!("lua/release_claim.lua"),
            include_str!("lua/renew.lua"),
            include_str!("lua/seal.lua"),
            include_str!("lua/seal_lost.lua"),
            include_str!("lua/status.lua"),
            include_str!("lua/tail.lua"),
        ];
        let calls = scripts
            .iter()
            .flat_map(|script| script.split("call('").skip(1));
        let called: Vec<&str> = calls.filter_map(|call| call.split('\'').next()).collect();
        assert!(called.len() > 30);
        for command in called {
            assert!(COMMANDS.contains(&command), "{command}");
        }
        for command in COMMANDS {
            assert!(PERMITTED.contains(&format!("{{'{command}',")), "{command}");
        }
    }

    #[test]
    fn the_uptime_is_a_number_of_seconds() {
        let uptime_of = |text: &str| uptime(&Value::BulkString(text.into()));
        let info = "# Server\r\nuptime_in_seconds:7\r\nuptime_in_days:0\r\n";
        assert_eq!(uptime_of(info), Some(Duration::from_secs(7)));
        assert_eq!(uptime_of("uptime_in_seconds:x"), None);
        assert_eq!(uptime(&Value::Nil), None);
    }

    #[test]
    fn the_time_is_a_number_of_microseconds() {
        let info = "# Server\r\nserver_time_usec:1700000000000007\r\nuptime_in_seconds:7\r\n";
        let info = Value::BulkString(info.into());
        assert_eq!(time(&info), Some(1_700_000_000_000_007));
        assert_eq!(time(&Value::BulkString(b"".to_vec())), None);
    }

    #[test]
    fn a_configuration_that_loses_streams_is_warned_about() {
        let check = |info: &str, options: &RedisOptions| Info(info).warnings(options);
        let options = RedisOptions::default().with_replicas(2);
        let good = "maxmemory_policy:noeviction\r\naof_enabled:1\r\nconnected_slaves:2\r\n";
        assert!(check(good, &options).is_empty());
        assert!(check("", &options).is_empty(), "unknown is not wrong");
        let bad = "maxmemory_policy:allkeys-lru\r\naof_enabled:0\r\nconnected_slaves:1\r\n";
        let warnings = check(bad, &options);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings[0].contains("noeviction"));
    }
}
