//! The Lua scripts, and calls of them.
//!
//! A script is one transaction. `MULTI` is not enough: whether a record follows the log's tail decides whether it is written,
//! and with `WATCH` other requests of the same connection would be part of the transaction.

use std::{
    fmt::{Display, Write},
    sync::LazyLock,
};

use redis::{Cmd, RedisWrite, ToRedisArgs, cmd};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// Room for the arguments of an append, and for its bytes beside the record.
const ARGUMENTS: usize = 10;
const OVERHEAD: usize = 256;

/// A script, and the hash by which a server that knows it runs it.
pub(crate) struct Script {
    code: &'static str,
    hash: String,
}

impl Script {
    fn new(code: &'static str) -> Self {
        let mut hash = String::new();
        for byte in digest(&SHA1_FOR_LEGACY_USE_ONLY, code.as_bytes()).as_ref() {
            // Writing to a string cannot fail.
            let _written = write!(hash, "{byte:02x}");
        }
        Self { code, hash }
    }
}

macro_rules! scripts {
    ($($name:ident = $($file:literal),+;)*) => {$(
        pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(concat!($(include_str!(concat!("lua/", $file, ".lua"))),+)));
    )*};
}

scripts! {
    OPEN = "prelude", "open";
    APPEND = "follow", "prelude", "append";
    RENEW = "prelude", "renew";
    SEAL = "prelude", "seal";
    SEAL_LOST = "prelude", "doubtful", "seal_lost";
    STATUS = "prelude", "status";
    TAIL = "prelude", "tail";
    ERASE = "prelude", "erase";
    CLAIM = "doubtful", "claim";
    KEEP_CLAIM = "keep_claim";
    RELEASE_CLAIM = "release_claim";
    ADD = "add";
}

/// A request that may be sent again: a command, or a call of a script.
pub(crate) struct Request {
    /// By the script's hash.
    pub(crate) cmd: Cmd,
    /// Loads the script that the command calls.
    script: Option<&'static Script>,
}

impl Request {
    pub(crate) fn script(script: &'static Script, keys: &[&str]) -> Self {
        Self::script_with(script, keys, 0)
    }

    /// The same, with room for further arguments of this many bytes.
    pub(crate) fn script_with(script: &'static Script, keys: &[&str], bytes: usize) -> Self {
        let mut cmd = Cmd::with_capacity(ARGUMENTS, OVERHEAD + bytes);
        cmd.arg("EVALSHA")
            .arg(&script.hash)
            .arg(keys.len())
            .arg(keys);
        Self {
            cmd,
            script: Some(script),
        }
    }

    pub(crate) fn command(name: &str) -> Self {
        Self {
            cmd: cmd(name),
            script: None,
        }
    }

    #[must_use]
    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.cmd.arg(arg);
        self
    }

    #[must_use]
    pub(crate) fn display(mut self, arg: impl Display) -> Self {
        self.cmd.write_arg_fmt(arg);
        self
    }

    /// The command after which the server knows the script. A server that was restarted knows none.
    pub(crate) fn load(&self) -> Option<Cmd> {
        let script = self.script?;
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(script.code);
        Some(load)
    }
}
