//! Who waits for a value to change: wakers, kept from one wake to the next.
//!
//! A waker that is taken out to be woken has to be cloned anew before each wait, which costs as much as the wake. So it
//! stays where it is, marked as told, and whoever changes the value often keeps copies of its own to wake by.

use std::task::Waker;

use crate::sync::{Arc, AtomicBool, Ordering};

/// What of a value somebody waits for, or what of it has changed: a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Topics(u8);

impl Topics {
    /// Content, reasoning, refusal.
    pub(crate) const TEXTS: Self = Self(1);
    /// Calls and their arguments.
    pub(crate) const CALLS: Self = Self(2);
    /// All else, such as the end.
    pub(crate) const REST: Self = Self(4);
    pub(crate) const ALL: Self = Self(7);

    fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Who waits, and for what. Whether it still does may be looked at without the lock that the wakers are behind.
#[derive(Debug)]
pub(crate) struct Ticket {
    topics: Topics,
    /// Written under the lock alone.
    waits: AtomicBool,
}

impl Ticket {
    pub(crate) fn new(topics: Topics) -> Arc<Self> {
        Arc::new(Self {
            topics,
            waits: AtomicBool::new(false),
        })
    }

    pub(crate) fn topics(&self) -> Topics {
        self.topics
    }

    /// Whether its waker is left and was not told since.
    pub(crate) fn waits(&self) -> bool {
        self.waits.load(Ordering::Acquire)
    }

    /// It will look again before it waits.
    pub(crate) fn withdraw(&self) {
        self.set(false);
    }

    fn set(&self, waits: bool) {
        self.waits.store(waits, Ordering::Release);
    }
}

/// Where somebody leaves a waker.
#[derive(Debug)]
pub(crate) struct Place {
    ticket: Arc<Ticket>,
    waker: Waker,
}

impl Place {
    pub(crate) fn new(ticket: &Arc<Ticket>, waker: &Waker) -> Self {
        ticket.set(true);
        Self {
            ticket: Arc::clone(ticket),
            waker: waker.clone(),
        }
    }

    /// Waits again; a waker that is replaced is for the caller to drop.
    pub(crate) fn leave(&mut self, waker: &Waker) -> Option<Waker> {
        self.ticket.set(true);
        let same = self.waker.will_wake(waker);
        (!same).then(|| std::mem::replace(&mut self.waker, waker.clone()))
    }

    /// Puts the waker among those to wake, if it waits for any of these.
    pub(crate) fn tell(&mut self, topics: Topics, due: &mut Due) {
        if self.ticket.topics.meets(topics) && self.ticket.waits() {
            self.ticket.set(false);
            due.add(&self.waker);
        }
    }

    fn is_of(&self, ticket: &Arc<Ticket>) -> bool {
        Arc::ptr_eq(&self.ticket, ticket)
    }
}

/// Those who look at a value; two find room without an allocation, which is a choice's text and its calls.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    first: [Option<Place>; 2],
    more: Vec<Place>,
}

impl Waiting {
    fn places(&mut self) -> impl Iterator<Item = &mut Place> {
        self.first.iter_mut().flatten().chain(&mut self.more)
    }

    /// As [`Place::leave`], at the place of a ticket.
    pub(crate) fn leave(&mut self, ticket: &Arc<Ticket>, waker: &Waker) -> Option<Waker> {
        if let Some(place) = self.places().find(|place| place.is_of(ticket)) {
            return place.leave(waker);
        }
        let new = Place::new(ticket, waker);
        match self.first.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(new),
            None => self.more.push(new),
        }
        None
    }

    /// Gives a ticket's place up; its waker is for the caller to drop.
    pub(crate) fn remove(&mut self, ticket: &Arc<Ticket>) -> Option<Place> {
        let own = |place: &Place| place.is_of(ticket);
        let mut first = self.first.iter_mut();
        if let Some(place) = first.find(|place| place.as_ref().is_some_and(own)) {
            return place.take();
        }
        let own = self.more.iter().position(own)?;
        Some(self.more.swap_remove(own))
    }

    /// As [`Place::tell`], for all of them; false if nobody was told.
    pub(crate) fn tell(&mut self, topics: Topics, due: &mut Due) -> bool {
        let before = due.count;
        for place in self.places() {
            place.tell(topics, due);
        }
        due.count > before
    }

    #[cfg(test)]
    pub(crate) fn len(&mut self) -> usize {
        self.places().count()
    }
}

/// Wakers to wake as soon as the lock is free, each task's once; they are kept for the next time.
#[derive(Debug, Default)]
pub(crate) struct Due {
    wakers: Vec<Waker>,
    /// So many of them, from the first on, are to be woken.
    count: usize,
}

impl Due {
    pub(crate) fn add(&mut self, waker: &Waker) {
        let known = self.wakers.iter().position(|kept| kept.will_wake(waker));
        let at = match known {
            Some(at) if at < self.count => return,
            Some(at) => at,
            None => {
                self.wakers.push(waker.clone());
                self.wakers.len() - 1
            }
        };
        self.wakers.swap(self.count, at);
        self.count += 1;
    }

    /// Wakes them. Not under a lock: a waker may run foreign code.
    pub(crate) fn wake(&mut self) {
        self.wakers.truncate(self.count);
        self.count = 0;
        self.wakers.iter().for_each(Waker::wake_by_ref);
    }
}
