//! The first choices that are good enough, and the end of all others.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use unbraid_core::{ChoiceEnd, ChoiceIndex, ChoiceOutcome, Transcript};

use super::{choice::Choice, completions::Completions};
use crate::{
    control::Command,
    state::{
        choice_log::{ChoiceLog, LogState},
        completion::CompletionState,
    },
    sync::shared::{Read, Watcher},
};

impl Completions {
    /// Waits until `k` choices have finished, cancels the rest, and returns the winners in the order in which they ended.
    ///
    /// Only the end `finished` counts, for any reason (`length`, too). The others end as `cancelled`, or as `finished` if their
    /// finish reason has arrived, and a source is closed as by [`first_where`](Self::first_where). If fewer choices finish, it
    /// returns when the stream is over, and cancels nothing; with `k` = 0 it returns at once and cancels nothing.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing and cancels nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::{StreamExt, stream};
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let chunk = |choice| format!("data: {{\"choices\":[{choice}]}}\n\n");
    /// # let body = chunk(r#"{"index":0,"delta":{"content":"slow"}},{"index":1,"delta":{"content":"quick"},"finish_reason":"stop"}"#)
    /// #     + &chunk(r#"{"index":0,"delta":{"content":"er"}}"#);
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::pending());
    /// let completions = Completions::from_byte_stream(bytes);
    /// let first = completions.first_finished(1).await;
    /// assert_eq!(first[0].message.content, "quick");
    /// let slow = completions.choice(0).await.unwrap().finished().await.unwrap_err();
    /// assert_eq!((slow.end().as_str(), &*slow.partial().message.content), ("cancelled", "slower"));
    /// # }
    /// ```
    pub async fn first_finished(&self, k: usize) -> Vec<ChoiceOutcome> {
        let mut outcomes = self.outcomes();
        let mut winners = Vec::new();
        while winners.len() < k {
            // An error comes after the last outcome.
            let Some(Ok(outcome)) = outcomes.next().await else {
                return winners;
            };
            if matches!(outcome.end, ChoiceEnd::Finished(_)) {
                winners.push(outcome);
            }
        }
        if k > 0 {
            self.send_keep_only(winners.iter().map(|winner| winner.choice).collect());
        }
        winners
    }

    /// Waits until `accept` has accepted `k` choices, cancels the rest, and returns the winners in the order in which they
    /// were accepted.
    ///
    /// `accept` is called once per batch of each choice, also when the choice has ended, with everything that has arrived of
    /// it. It is called without a lock and may use any handle. Meanwhile the choice goes on, at the price of one copy of what
    /// has arrived. To judge with an async function, see [`outcomes`](Self::outcomes) and
    /// [`keep_only`](Self::keep_only).
    ///
    /// A winner that is still being written goes on. The others end as `cancelled`, including those that have not appeared
    /// yet, with the usage of what they had, or as `finished` if their finish reason has arrived. A source that has no winner is
    /// closed at once, any other when its winners have ended.
    ///
    /// If fewer than `k` are accepted, it returns when the stream is over. With `k` = 0 it returns at once and cancels
    /// nothing.
    ///
    /// # Panics
    ///
    /// If `accept` does.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing and cancels nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::{StreamExt, stream};
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let chunk = |choice| format!("data: {{\"choices\":[{choice}]}}\n\n");
    /// # let body = chunk(r#"{"index":0,"delta":{"content":"I cannot"}},{"index":1,"delta":{"content":"Sure: "}}"#)
    /// #     + &chunk(r#"{"index":1,"delta":{"content":"42"},"finish_reason":"stop"}"#);
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::pending());
    /// let completions = Completions::from_byte_stream(bytes);
    /// // The first answer that does not begin with a refusal.
    /// let answers = completions.first_where(1, |choice| choice.content().next().is_some_and(|delta| !delta.starts_with("I cannot"))).await;
    /// assert_eq!(answers[0].text().await.unwrap(), "Sure: 42");
    /// # }
    /// ```
    pub async fn first_where<F>(&self, k: usize, mut accept: F) -> Vec<Choice>
    where
        F: FnMut(&Transcript) -> bool,
    {
        let mut race = Race {
            completion: Watcher::new(&self.completion),
            candidates: Vec::new(),
            seen: 0,
            winners: Vec::new(),
        };
        let decided = poll_fn(|cx| race.poll(cx, k, &mut accept)).await;
        let winners: Vec<Choice> = race
            .winners
            .into_iter()
            .map(|log| self.choice_of(log))
            .collect();
        if decided && k > 0 {
            self.send_keep_only(winners.iter().map(Choice::index).collect());
        }
        winners
    }

    /// Ends every open choice but these as `cancelled`, or as `finished` if its finish reason has arrived. What has arrived stays.
    /// Those that have not appeared yet are cancelled, too.
    ///
    /// It is for a caller that has judged the choices itself, with an async function or by what their tools did; where a
    /// synchronous function can judge, [`first_where`](Self::first_where) waits and cancels in one call. It returns at once,
    /// and does nothing if the stream has closed.
    ///
    /// A choice that is kept and still being written goes on. Only one that has appeared can be kept: any other is ended when
    /// it appears. A second call keeps those choices that both name, and with no choice at all, all end. A source that has
    /// none of the kept choices is closed at once, any other when its kept choices have ended, unless nothing was cancelled:
    /// then it is read to its end, for its usage. No source can be added afterwards.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::{StreamExt, stream};
    /// use unbraid::{Completions, Message};
    ///
    /// async fn is_polite(message: Message) -> bool {
    ///     tokio::task::yield_now().await; // ask another model
    ///     message.content.starts_with("Dear")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let chunk = |choice| format!("data: {{\"choices\":[{choice}]}}\n\n");
    /// # let body = chunk(r#"{"index":0,"delta":{"content":"Hey, what"}},{"index":1,"delta":{"content":"Dear "}}"#);
    /// # let rest = chunk(r#"{"index":0,"delta":{"content":"'s up"}},{"index":1,"delta":{"content":"reader"},"finish_reason":"stop"}"#);
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::once(async {
    /// #     tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    /// #     Ok(rest)
    /// # })).chain(stream::pending());
    /// let completions = Completions::from_byte_stream(bytes);
    /// let mut choices = completions.choices();
    /// while let Some(choice) = choices.next().await {
    ///     let choice = choice?;
    ///     if is_polite(choice.snapshot()).await {
    ///         completions.keep_only([choice.index()]);
    ///         assert_eq!(choice.text().await?, "Dear reader");
    ///     }
    /// }
    /// let other = completions.choice(0).await.unwrap().outcome().await;
    /// assert_eq!((other.end.as_str(), &*other.message.content), ("cancelled", "Hey, what"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_only<I>(&self, choices: I)
    where
        I: IntoIterator,
        I::Item: Into<ChoiceIndex>,
    {
        let mut kept: Vec<ChoiceIndex> = choices.into_iter().map(Into::into).collect();
        // A reader does not know whether it is the one that a choice will come from, so it cannot wait for one.
        self.completion.read(|state| {
            kept.retain(|index| state.choices.iter().any(|log| log.index() == *index));
        });
        self.send_keep_only(kept);
    }

    fn send_keep_only(&self, mut choices: Vec<ChoiceIndex>) {
        choices.sort_unstable();
        self.guard.controls.send(Command::KeepOnly(choices.into()));
    }
}

struct Race {
    completion: Watcher<CompletionState>,
    candidates: Vec<Candidate>,
    /// How many choices of the completion have become candidates.
    seen: usize,
    winners: Vec<ChoiceLog>,
}

/// A choice that has been neither accepted nor ruled out.
struct Candidate {
    log: ChoiceLog,
    watcher: Watcher<LogState>,
    /// The number of events when it was last judged.
    judged: Option<usize>,
}

/// The result of judging a choice.
enum Verdict {
    Accepted,
    /// It has ended without being accepted.
    RuledOut,
}

impl Race {
    /// Ready with `true` once there are enough winners, and with `false` once there cannot be.
    fn poll(
        &mut self,
        cx: &Context<'_>,
        k: usize,
        accept: &mut impl FnMut(&Transcript) -> bool,
    ) -> Poll<bool> {
        let closed = self.poll_completion(cx);
        let winners = &mut self.winners;
        self.candidates.retain_mut(|candidate| {
            if winners.len() >= k {
                return true;
            }
            let verdict = candidate.poll(cx, accept);
            if let Poll::Ready(Verdict::Accepted) = verdict {
                winners.push(candidate.log.clone());
            }
            verdict.is_pending()
        });
        if self.winners.len() >= k {
            Poll::Ready(true)
        } else if closed && self.candidates.is_empty() {
            Poll::Ready(false)
        } else {
            Poll::Pending
        }
    }

    /// Adds new choices; returns true if there will be no more.
    fn poll_completion(&mut self, cx: &Context<'_>) -> bool {
        let Self {
            completion,
            candidates,
            seen,
            ..
        } = self;
        let closed = completion.poll(cx, |state| {
            let new = state.choices.iter().skip(*seen);
            candidates.extend(new.map(Candidate::new));
            *seen = state.choices.len();
            match state.closed {
                Some(_) => Poll::Ready(()),
                None => Poll::Pending,
            }
        });
        closed.is_ready()
    }
}

impl Candidate {
    fn new(log: &ChoiceLog) -> Self {
        Self {
            log: log.clone(),
            watcher: Watcher::new(log),
            judged: None,
        }
    }

    /// `accept` is foreign code, which may use any handle, so it gets a snapshot of the transcript and runs without the lock.
    fn poll(
        &mut self,
        cx: &Context<'_>,
        accept: &mut impl FnMut(&Transcript) -> bool,
    ) -> Poll<Verdict> {
        let Self {
            watcher, judged, ..
        } = self;
        let found = watcher.poll_read(cx, |state| {
            let transcript = &mut state.transcript;
            let ended = transcript.end().is_some();
            let is_new = *judged != Some(transcript.event_count());
            *judged = Some(transcript.event_count());
            let snapshot = is_new.then(|| transcript.snapshot());
            match (is_new, ended) {
                (_, true) => Read::Partial((snapshot, ended)),
                (true, false) => Read::CaughtUp((snapshot, ended)),
                (false, false) => Read::Pending,
            }
        });
        let Poll::Ready((snapshot, ended)) = found else {
            return Poll::Pending;
        };
        if snapshot.is_some_and(|transcript| accept(&transcript)) {
            Poll::Ready(Verdict::Accepted)
        } else if ended {
            Poll::Ready(Verdict::RuledOut)
        } else {
            Poll::Pending
        }
    }
}
