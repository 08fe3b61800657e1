//! A subcommand that this build lacks.

use std::ffi::OsString;

/// The arguments of a subcommand that this build lacks. They are accepted, so that the error is about the build.
#[derive(Debug, clap::Args)]
pub(super) struct MissingArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use std::iter::once;

    use clap::Parser;

    use crate::{
        commands::Cli,
        exit::{Failure, Status},
    };

    /// The command line is an error that names the feature, if this build lacks it.
    #[track_caller]
    fn check(line: &str, feature: &str, is_present: bool) {
        if is_present {
            return;
        }
        let message = match Cli::try_parse_from(once("unbraid").chain(line.split(' '))) {
            Err(error) => {
                assert_eq!(error.exit_code(), 2, "{line}");
                error.to_string()
            }
            Ok(cli) => match cli.run() {
                Err(Failure::Usage(message)) => message,
                other => panic!("{line}: {other:?}"),
            },
        };
        let expected = format!("is not in this build: build it with `--features {feature}`");
        assert!(message.contains(&expected), "{line}: {message}");
    }

    #[test]
    fn a_missing_part_names_its_feature() {
        let has_chat = cfg!(feature = "chat");
        check("chat -m gpt-4o-mini -n 4 Hello?", "chat", has_chat);
        check("chat --help", "chat", has_chat);
        check("--strict chat", "chat", has_chat);
        let recorded = "replay --record-from http://127.0.0.1:1/v1 missing.sse";
        check(recorded, "chat", has_chat);
        let has_serve = cfg!(feature = "serve");
        check("serve --upstream http://127.0.0.1:1/v1", "serve", has_serve);
        check("serve --help", "serve", has_serve);
        check("demo --web", "serve", has_serve);
        let has_tokens = cfg!(feature = "tokens");
        check("collect --usage estimate missing.sse", "tokens", has_tokens);
        check("collect --request missing.json", "tokens", has_tokens);
        check("split --usage estimate --out .", "tokens", has_tokens);
    }

    #[test]
    fn the_demo_is_in_every_build() {
        let demo = Cli::try_parse_from(["unbraid", "demo", "--plain", "--speed", "100"]);
        let status = demo.map(Cli::run).map_err(|error| error.to_string());
        assert!(matches!(status, Ok(Ok(Status::Finished))), "{status:?}");
    }
}
