//! The model, from the command line or from the environment.

use clap::{Arg, ArgMatches, Command, Error, FromArgMatches, parser::ValueSource};

const ID: &str = "model";
const VARIABLE: &str = "OPENAI_MODEL";

/// The option `--model`. A name on the command line replaces that of a whole request; one in the environment does not.
#[derive(Debug)]
pub(super) struct ModelArg {
    name: Option<String>,
    is_explicit: bool,
}

impl ModelArg {
    /// The name, if the command line has it.
    pub(super) fn explicit(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.is_explicit)
    }

    /// The name from the command line, or else from the environment.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl FromArgMatches for ModelArg {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let name = matches.get_one::<String>(ID);
        Ok(Self {
            // An empty variable counts as unset, as in other clients.
            name: name.filter(|name| !name.is_empty()).cloned(),
            is_explicit: matches.value_source(ID) == Some(ValueSource::CommandLine),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for ModelArg {
    fn augment_args(command: Command) -> Command {
        let arg = Arg::new(ID)
            .short('m')
            .long("model")
            .value_name("MODEL")
            .env(VARIABLE)
            .hide_env_values(true)
            .help("The model");
        command.arg(arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
