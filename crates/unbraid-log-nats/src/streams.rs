//! The two JetStream streams of a log, and how they are created.

use std::time::Duration;

use async_nats::jetstream::{
    Context, ErrorCode,
    context::{CreateStreamErrorKind, GetStreamErrorKind},
    stream::{Config, DiscardPolicy, Republish, RetentionPolicy, StorageType},
};

use crate::{NatsError, NatsOptions, names::Names};

/// How long a stream is kept that nobody seals, and how long an expired stream is remembered.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// How long the server remembers the ids of messages. It costs memory for each of them, and nothing depends on it: each
/// append also states the message that it follows.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(10);

/// The configurations of the streams of a log.
pub(crate) fn configs(names: &Names, options: &NatsOptions) -> [Config; 2] {
    let (source, destination) = names.republish();
    let shared = Config {
        retention: RetentionPolicy::Limits,
        // An operator may limit the bytes: a full stream refuses new messages, and evicts none.
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas: options.replicas.max(1) as usize,
        max_bytes: -1,
        max_messages: -1,
        max_messages_per_subject: -1,
        max_consumers: -1,
        duplicate_window: DUPLICATE_WINDOW,
        allow_direct: true,
        ..Config::default()
    };
    let log = Config {
        name: names.log.clone(),
        description: Some("unbraid: records of streams".to_owned()),
        subjects: names.log_subjects(),
        max_age: DAY + options.ttl,
        republish: Some(Republish {
            source,
            destination,
            headers_only: false,
        }),
        ..shared.clone()
    };
    let values = Config {
        name: names.values.clone(),
        description: Some("unbraid: meta data, leases and claims".to_owned()),
        subjects: names.value_subjects(),
        // A stream runs for up to a day, is kept, and is remembered for another day.
        max_age: 2 * DAY + options.ttl,
        max_messages_per_subject: 1,
        ..shared
    };
    [log, values]
}

/// A stream that exists.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) replicas: usize,
    /// What an operator should know about it.
    pub(crate) warnings: Vec<String>,
}

/// Creates a stream, or checks and extends the existing one.
pub(crate) async fn ensure(context: &Context, config: &Config) -> Result<Found, NatsError> {
    let refused = |reason: String| NatsError::Refused {
        stream: config.name.clone(),
        reason,
    };
    let existing = match context.get_stream(&config.name).await {
        Ok(stream) => stream.cached_info().config.clone(),
        Err(error) if is_absent(&error.kind()) => {
            return create(context, config).await;
        }
        Err(error) => return Err(unusable(config, &error.to_string(), &error.kind())),
    };
    check(&existing, config)?;
    let mut warnings = Vec::new();
    if existing.max_age > Duration::ZERO && existing.max_age < config.max_age {
        // Only ever longer, so that gateways with different options do not undo each other's change.
        let longer = Config {
            max_age: config.max_age,
            ..existing.clone()
        };
        let updated = context.update_stream(&longer).await;
        updated.map_err(|error| refused(error.to_string()))?;
    }
    if existing.num_replicas != config.num_replicas {
        warnings.push(format!(
            "the stream {} has {} replicas, not {}: `nats stream edit` changes it",
            config.name, existing.num_replicas, config.num_replicas
        ));
    }
    if existing.storage == StorageType::Memory {
        warnings.push(format!(
            "the stream {} is kept in memory only: a restart of the server loses it",
            config.name
        ));
    }
    Ok(Found {
        replicas: existing.num_replicas,
        warnings,
    })
}

async fn create(context: &Context, config: &Config) -> Result<Found, NatsError> {
    let created = Found {
        replicas: config.num_replicas,
        warnings: Vec::new(),
    };
    match context.create_stream(config).await {
        Ok(_) => Ok(created),
        Err(error) => match error.kind() {
            // Another gateway with other options was faster.
            CreateStreamErrorKind::JetStream(cause)
                if cause.error_code() == ErrorCode::STREAM_NAME_EXIST =>
            {
                Ok(created)
            }
            CreateStreamErrorKind::JetStream(cause)
                if cause.error_code() == ErrorCode::STREAM_SUBJECT_OVERLAP =>
            {
                Err(NatsError::ForeignStream {
                    stream: config.name.clone(),
                    reason: "another stream has its subjects".to_owned(),
                })
            }
            _ => Err(NatsError::Refused {
                stream: config.name.clone(),
                reason: error.to_string(),
            }),
        },
    }
}

fn is_absent(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

fn unusable(config: &Config, reason: &str, kind: &GetStreamErrorKind) -> NatsError {
    let reason = reason.to_owned();
    match kind {
        GetStreamErrorKind::JetStream(_) => NatsError::Refused {
            stream: config.name.clone(),
            reason,
        },
        _ => NatsError::NoJetStream { reason },
    }
}

/// Whether an existing stream works as one of this log.
fn check(existing: &Config, config: &Config) -> Result<(), NatsError> {
    let mut subjects = existing.subjects.clone();
    let mut expected = config.subjects.clone();
    subjects.sort();
    expected.sort();
    let reason = if subjects != expected {
        "it has other subjects"
    } else if existing.republish != config.republish {
        "it does not republish to subscribers"
    } else if existing.max_messages_per_subject != config.max_messages_per_subject {
        "it keeps another number of messages for each subject"
    } else if !existing.allow_direct {
        "it does not allow direct access"
    } else if existing.sealed || existing.deny_purge || existing.no_ack {
        "it is sealed, or denies purges or acknowledgements"
    } else {
        return Ok(());
    };
    Err(NatsError::ForeignStream {
        stream: config.name.clone(),
        reason: reason.to_owned(),
    })
}
