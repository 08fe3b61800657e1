//! The first choices that are good enough, and the end of all others.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use unbraid_core::{ChoiceEnd, ChoiceIndex, ChoiceOutcome, Transcript};

use super::{choice::Choice, completions::Completions};
use crate::{
    control::Request,
    state::choice_log::{Log, Record},
    state::completion::Listing,
    sync::shared::{Look, Watcher},
};

impl Completions {
    /// Waits until `k` choices have finished, cancels the others, and gives the winners in the order in which they ended.
    ///
    /// Only the end `finished` counts, whatever the reason (`length` too), so that fewer may come: then it returns when
    /// the stream is over, and nothing was cancelled. Otherwise it is [`first_where`](Self::first_where) with that condition; `k` = 0 wins at once
    /// and cancels nobody.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing and cancels nobody.
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
        let finished = |choice: &Transcript| matches!(choice.end(), Some(ChoiceEnd::Finished(_)));
        let mut winners = Vec::new();
        for choice in self.first_where(k, finished).await {
            winners.push(choice.outcome().await);
        }
        winners
    }

    /// Waits until `k` choices win, cancels the others, and gives the winners in the order in which they won.
    ///
    /// A choice wins as soon as `wins` says so of what has come of it. It is asked once a batch, of each choice in turn, also when the
    /// choice has ended. It runs under no lock, and may call any handle. While it runs the choice goes on, at the price of
    /// one copy of what has come. A winner that is still being written goes on. The others end as `cancelled`, those too that have not appeared yet, with the usage of
    /// what they had; a source that has no winner is closed at once, another one when its winners have ended.
    ///
    /// If fewer than `k` win it returns when the stream is over. `k` = 0 returns at once and cancels nobody.
    ///
    /// # Panics
    ///
    /// If `wins` does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing and cancels nobody.
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
    /// let willing = completions.first_where(1, |choice| choice.content().next().is_some_and(|delta| !delta.starts_with("I cannot"))).await;
    /// assert_eq!(willing[0].text().await.unwrap(), "Sure: 42");
    /// # }
    /// ```
    pub async fn first_where<F>(&self, k: usize, mut wins: F) -> Vec<Choice>
    where
        F: FnMut(&Transcript) -> bool,
    {
        let mut race = Race {
            board: Watcher::new(&self.board),
            runners: Vec::new(),
            seen: 0,
            winners: Vec::new(),
        };
        let decided = poll_fn(|cx| race.poll(cx, k, &mut wins)).await;
        let winners: Vec<Choice> = race
            .winners
            .into_iter()
            .map(|log| self.choice_of(log))
            .collect();
        if decided && k > 0 {
            let mut indices: Vec<ChoiceIndex> = winners.iter().map(Choice::index).collect();
            indices.sort_unstable();
            self.guard.controls.ask(Request::Keep(indices.into()));
        }
        winners
    }
}

struct Race {
    board: Watcher<Listing>,
    runners: Vec<Runner>,
    /// Choices of the board that have joined the runners.
    seen: usize,
    winners: Vec<Log>,
}

/// A choice that has neither won nor lost.
struct Runner {
    log: Log,
    watcher: Watcher<Record>,
    /// Events that were there when it was last asked about.
    asked: Option<usize>,
}

/// What becomes of a choice that was asked about.
enum Verdict {
    Wins,
    /// It has ended without a win.
    Out,
}

impl Race {
    /// Ready with `true` once there are winners enough, with `false` once there can be no more.
    fn poll(
        &mut self,
        cx: &Context<'_>,
        k: usize,
        wins: &mut impl FnMut(&Transcript) -> bool,
    ) -> Poll<bool> {
        let closed = self.poll_board(cx);
        let winners = &mut self.winners;
        self.runners.retain_mut(|runner| {
            if winners.len() >= k {
                return true;
            }
            let verdict = runner.poll(cx, wins);
            if let Poll::Ready(Verdict::Wins) = verdict {
                winners.push(runner.log.clone());
            }
            verdict.is_pending()
        });
        if self.winners.len() >= k {
            Poll::Ready(true)
        } else if closed && self.runners.is_empty() {
            Poll::Ready(false)
        } else {
            Poll::Pending
        }
    }

    /// Lets new choices run; true if there will be no more.
    fn poll_board(&mut self, cx: &Context<'_>) -> bool {
        let Self {
            board,
            runners,
            seen,
            ..
        } = self;
        let look = board.poll(cx, |listing| {
            let new = listing.choices.iter().skip(*seen);
            runners.extend(new.map(|log| Runner {
                log: log.clone(),
                watcher: Watcher::new(log),
                asked: None,
            }));
            *seen = listing.choices.len();
            match listing.closed {
                Some(_) => Poll::Ready(()),
                None => Poll::Pending,
            }
        });
        look.is_ready()
    }
}

impl Runner {
    /// The predicate is foreign code, which may call any handle: it is given a shared transcript once the lock is free.
    fn poll(
        &mut self,
        cx: &Context<'_>,
        wins: &mut impl FnMut(&Transcript) -> bool,
    ) -> Poll<Verdict> {
        let Self { watcher, asked, .. } = self;
        let found = watcher.poll_look(cx, |record| {
            let transcript = &record.transcript;
            let over = transcript.end().is_some();
            if *asked != Some(transcript.event_count()) {
                *asked = Some(transcript.event_count());
                let new = Some(transcript.share());
                return if over {
                    Look::Some((new, over))
                } else {
                    Look::All((new, over))
                };
            }
            if over {
                Look::Some((None, over))
            } else {
                Look::Nothing
            }
        });
        let Poll::Ready((new, over)) = found else {
            return Poll::Pending;
        };
        if new.is_some_and(|transcript| wins(&transcript)) {
            Poll::Ready(Verdict::Wins)
        } else if over {
            Poll::Ready(Verdict::Out)
        } else {
            Poll::Pending
        }
    }
}
