//! The library: actors, logs, and a consumer task for each choice.

use futures::future::join;
use tokio::task::JoinSet;
use unbraid::{Choice, Completions};

use super::Record;
use crate::{
    body::{Answer, Part},
    feed::{Feed, Tally},
};

pub(super) async fn run(feed: Feed, tally: Tally) -> Answer {
    read(Completions::from_byte_stream(feed), tally).await
}

/// Reads all choices to their end, a task for each.
pub(crate) async fn read(completions: Completions, tally: impl Record) -> Answer {
    let mut choices = completions.choices();
    let mut tasks = JoinSet::new();
    while let Some(Ok(choice)) = choices.next().await {
        tasks.spawn(consume(choice, tally.clone()));
    }
    let mut answer = Answer::default();
    while let Some(Ok((choice, part))) = tasks.join_next().await {
        answer.add(choice, part);
    }
    answer
}

/// Reads the text of a choice and the arguments of its calls concurrently.
async fn consume(choice: Choice, tally: impl Record) -> (usize, Part) {
    let (mut content, mut calls) = (choice.content(), choice.tool_calls());
    let texts = async {
        let (mut text, mut items) = (String::new(), 0);
        while let Some(Ok(delta)) = content.next().await {
            tally.record(&delta, &mut text);
            items += 1;
        }
        (text, items)
    };
    let arguments = async {
        let (mut text, mut items) = (String::new(), 0);
        while let Some(Ok(call)) = calls.next().await {
            let mut arguments = call.arguments();
            while let Some(Ok(delta)) = arguments.next().await {
                tally.record(&delta, &mut text);
                items += 1;
            }
        }
        (text, items)
    };
    let ((text, texts), (arguments, fragments)) = join(texts, arguments).await;
    let part = Part {
        text,
        arguments,
        items: texts + fragments,
    };
    (choice.index().0 as usize, part)
}
