//! Who waits for a value to change: wakers, kept from one wake to the next.
//!
//! A waker that is taken out to be woken has to be cloned anew before each wait, which costs as much as the wake. So it
//! stays where it is, marked as told, and whoever changes the value often keeps copies of its own to wake by.
//!
//! Cloning a waker runs foreign code. The task that brings a waker clones it, under no lock, into an [`Arc`] that all
//! others share. So neither a clone that panics nor one that reads the value reaches anyone else.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::AtomicUsize,
    task::Waker,
};

use super::primitives::{Arc, AtomicBool, Ordering, clone_waker};

/// A waker that is cloned without foreign code.
pub(crate) type SharedWaker = Arc<Waker>;

/// The waker that was left before if it wakes the same task, or else a clone of this one, which is put into `fresh`. Not
/// under a lock: it may run foreign code.
pub(crate) fn share<'w>(
    waker: &Waker,
    left: Option<&'w SharedWaker>,
    fresh: &'w mut Option<SharedWaker>,
) -> &'w SharedWaker {
    match left {
        Some(left) if left.will_wake(waker) => left,
        _ => fresh.insert(Arc::new(clone_waker(waker))),
    }
}

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
    /// Where its place is among those who wait, so that it is found without a search. It is read and written under the
    /// lock alone: the lock orders it, and the model checker need not know of it.
    slot: AtomicUsize,
}

/// The slot of a ticket that has no place.
const NOWHERE: usize = usize::MAX;

impl Ticket {
    pub(crate) fn new(topics: Topics) -> Arc<Self> {
        Arc::new(Self {
            topics,
            waits: AtomicBool::new(false),
            slot: AtomicUsize::new(NOWHERE),
        })
    }

    fn slot(&self) -> usize {
        self.slot.load(Ordering::Relaxed)
    }

    fn set_slot(&self, slot: usize) {
        self.slot.store(slot, Ordering::Relaxed);
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
    waker: SharedWaker,
}

impl Place {
    pub(crate) fn new(ticket: &Arc<Ticket>, waker: &SharedWaker) -> Self {
        ticket.set(true);
        Self {
            ticket: Arc::clone(ticket),
            waker: Arc::clone(waker),
        }
    }

    /// Waits again; a waker that is replaced is for the caller to drop.
    pub(crate) fn leave(&mut self, waker: &SharedWaker) -> Option<SharedWaker> {
        self.ticket.set(true);
        let same = self.waker.will_wake(waker);
        (!same).then(|| std::mem::replace(&mut self.waker, Arc::clone(waker)))
    }

    /// Puts the waker among those to wake, if it waits for any of these.
    pub(crate) fn tell(&mut self, topics: Topics, due: &mut Due) {
        if self.ticket.topics.meets(topics) && self.ticket.waits() {
            self.ticket.set(false);
            due.add(&self.waker);
        }
    }
}

/// Those who look at a value; two find room without an allocation, which is a choice's text and its calls.
///
/// Each ticket knows its slot, so that waiting again and leaving cost the same however many wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    first: [Option<Place>; INLINE],
    more: Vec<Place>,
}

const INLINE: usize = 2;

impl Waiting {
    fn places(&mut self) -> impl Iterator<Item = &mut Place> {
        self.first.iter_mut().flatten().chain(&mut self.more)
    }

    fn place(&mut self, slot: usize) -> Option<&mut Place> {
        match slot.checked_sub(INLINE) {
            None => self.first.get_mut(slot)?.as_mut(),
            Some(at) => self.more.get_mut(at),
        }
    }

    /// As [`Position::leave`], at the place of a ticket.
    pub(crate) fn leave(
        &mut self,
        ticket: &Arc<Ticket>,
        waker: &SharedWaker,
    ) -> Option<SharedWaker> {
        if let Some(place) = self.place(ticket.slot()) {
            return place.leave(waker);
        }
        let new = Place::new(ticket, waker);
        let mut first = self.first.iter_mut().enumerate();
        if let Some((slot, free)) = first.find(|(_, place)| place.is_none()) {
            ticket.set_slot(slot);
            *free = Some(new);
        } else {
            ticket.set_slot(INLINE + self.more.len());
            self.more.push(new);
        }
        None
    }

    /// Gives a ticket's place up; its waker is for the caller to drop.
    pub(crate) fn remove(&mut self, ticket: &Ticket) -> Option<Place> {
        let slot = ticket.slot();
        ticket.set_slot(NOWHERE);
        let Some(at) = slot.checked_sub(INLINE) else {
            return self.first.get_mut(slot)?.take();
        };
        if at >= self.more.len() {
            return None;
        }
        let place = self.more.swap_remove(at);
        if let Some(moved) = self.more.get(at) {
            moved.ticket.set_slot(slot);
        }
        Some(place)
    }

    /// As [`Position::tell`], for all of them; false if nobody was told.
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
///
/// A kept waker outlives the cursor that left it, until the next wake at the latest: so many are kept as were woken last.
/// The reader drops those of a choice that has ended.
#[derive(Debug, Default)]
pub(crate) struct Due {
    wakers: Vec<SharedWaker>,
    /// So many of them, from the first on, are to be woken.
    count: usize,
}

/// How far around the place where it is expected a waker is searched. Those who wait are asked in the same order each
/// time, so a kept waker is found at once; a search through all would cost the square of their number. A task that is
/// not found has its waker added anew, and is at worst woken twice.
const NEAR: usize = 16;

impl Due {
    pub(crate) fn add(&mut self, waker: &SharedWaker) {
        let from = self.count.saturating_sub(NEAR);
        let mut near = self.wakers.iter().skip(from).take(2 * NEAR);
        let known = near.position(|kept| kept.will_wake(waker));
        let at = match known.map(|at| from + at) {
            Some(at) if at < self.count => return,
            Some(at) => at,
            None => {
                self.wakers.push(Arc::clone(waker));
                self.wakers.len() - 1
            }
        };
        self.wakers.swap(self.count, at);
        self.count += 1;
    }

    /// Wakes them. Not under a lock: a waker may run foreign code.
    pub(crate) fn wake(&mut self) {
        let count = std::mem::take(&mut self.count);
        self.wakers.iter().take(count).for_each(|waker| wake(waker));
        if self.wakers.len() > count {
            let behind = self.wakers.drain(count..);
            behind.for_each(release);
        }
    }
}

/// A kept waker may be the last one of its task, and its drop is foreign code like its wake-up.
impl Drop for Due {
    fn drop(&mut self) {
        for waker in std::mem::take(&mut self.wakers) {
            release(waker);
        }
    }
}

/// Wakes a task, whatever its waker does: the others that wait must be woken, too.
pub(crate) fn wake(waker: &Waker) {
    guarded(|| waker.wake_by_ref());
}

/// Drops a waker, whatever its drop does. Not under a lock: it may run foreign code.
pub(crate) fn release<W>(waker: W) {
    guarded(|| drop(waker));
}

/// Runs foreign code. Its panic is not ours: the panic hook has reported it, and nothing here depends on its result.
fn guarded(foreign: impl FnOnce()) {
    let _panicked = catch_unwind(AssertUnwindSafe(foreign));
}
