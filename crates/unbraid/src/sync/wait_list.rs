//! The wakers of the tasks that wait for a value to change, kept from one wake-up to the next.
//!
//! Taking a waker out in order to wake it would mean cloning it again before the next wait, and that clone costs as much
//! as the wake-up. So a waker stays registered: a wake-up only clears its waiter's flag, and a writer that publishes often
//! keeps clones of its own in a [`WakeList`].
//!
//! Cloning, waking and dropping a waker runs foreign code, which may panic or read the value that is being changed. So all
//! three happen without the lock. The task that registers a waker clones it once into a [`Waiter`]; under the lock only the
//! `Arc` around that is cloned.

use std::{
    hint::black_box,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::AtomicUsize,
    task::Waker,
};

use smallvec::SmallVec;

use super::primitives::{Arc, AtomicBool, Ordering, clone_waker};

/// The parts of a value that a waiter waits for, or that a change concerns: a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interest(u8);

impl Interest {
    pub(crate) const NONE: Self = Self(0);
    /// Content, reasoning and refusal.
    pub(crate) const TEXT: Self = Self(1);
    /// Tool calls and their arguments.
    pub(crate) const CALLS: Self = Self(2);
    /// Everything else, such as the end.
    pub(crate) const OTHER: Self = Self(4);
    pub(crate) const ALL: Self = Self(7);

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A registered waker, what its task waits for, and whether it still waits. All of it is in one allocation, which the cursor, the
/// wait list and the writers share. The flag can be read without the lock of the wait list.
#[derive(Debug)]
pub(crate) struct Waiter {
    interest: Interest,
    /// Whether the waker is registered and has not been woken since. Set under the lock only; the `Release` store and
    /// the `Acquire` load make the change that cleared it visible to a task that reads the flag without the lock.
    waiting: AtomicBool,
    /// The index of its slot in the wait list, so that the slot is found without a search. It is read and written under
    /// the lock only. The lock orders it, so it is not one of loom's types: modelling it would only multiply the orders.
    slot: AtomicUsize,
    waker: Waker,
}

/// The slot index of a waiter that has no slot.
const NO_SLOT: usize = usize::MAX;

impl Waiter {
    /// Must not be called under a lock, because cloning a waker runs foreign code.
    pub(crate) fn new(interest: Interest, waker: &Waker) -> Arc<Self> {
        Arc::new(Self {
            interest,
            waiting: AtomicBool::new(false),
            slot: AtomicUsize::new(NO_SLOT),
            waker: clone_waker(waker),
        })
    }

    fn slot(&self) -> usize {
        self.slot.load(Ordering::Relaxed)
    }

    fn set_slot(&self, slot: usize) {
        self.slot.store(slot, Ordering::Relaxed);
    }

    /// Whether it wakes the same task as this waker.
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        self.waker.will_wake(waker)
    }

    /// Whether its waker is registered and has not been woken since.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Clears the flag: the task will read the value again before it waits.
    pub(crate) fn clear(&self) {
        self.set_waiting(false);
    }

    fn set_waiting(&self, waiting: bool) {
        self.waiting.store(waiting, Ordering::Release);
    }
}

/// The place of a registered waiter.
#[derive(Debug)]
pub(crate) struct WaiterSlot {
    /// That of the waiter, which is not read for a change that does not concern it.
    interest: Interest,
    waiter: Arc<Waiter>,
}

impl WaiterSlot {
    pub(crate) fn new(waiter: &Arc<Waiter>) -> Self {
        waiter.set_waiting(true);
        Self {
            interest: waiter.interest,
            waiter: Arc::clone(waiter),
        }
    }

    /// Registers a waiter in this slot. A replaced one is returned, because it must be dropped without the lock.
    pub(crate) fn register(&mut self, waiter: &Arc<Waiter>) -> Option<Arc<Waiter>> {
        waiter.set_waiting(true);
        let same = Arc::ptr_eq(&self.waiter, waiter);
        (!same).then(|| {
            waiter.set_slot(self.waiter.slot());
            std::mem::replace(&mut self.waiter, Arc::clone(waiter))
        })
    }

    /// Adds the waiter to the wake list if it waits for any part of `changed`.
    pub(crate) fn notify(&mut self, changed: Interest, wake_list: &mut WakeList) {
        // A waiter that was woken and has not read since needs no second wake-up: its read will find this change, too.
        if self.interest.intersects(changed) && self.waiter.is_waiting() {
            self.waiter.set_waiting(false);
            wake_list.add(&self.waiter);
        }
    }
}

/// The waiters of a value. The first two need no allocation: a choice's text and its tool calls.
///
/// Each waiter knows its slot, so registering and removing take constant time however many waiters there are.
#[derive(Debug, Default)]
pub(crate) struct WaitList {
    inline: [Option<WaiterSlot>; INLINE],
    more: Vec<WaiterSlot>,
}

const INLINE: usize = 2;

impl WaitList {
    fn slots(&mut self) -> impl Iterator<Item = &mut WaiterSlot> {
        self.inline.iter_mut().flatten().chain(&mut self.more)
    }

    fn slot(&mut self, index: usize) -> Option<&mut WaiterSlot> {
        match index.checked_sub(INLINE) {
            None => self.inline.get_mut(index)?.as_mut(),
            Some(index) => self.more.get_mut(index),
        }
    }

    /// Registers a waiter, in the slot of the `former` one of the same cursor if there is such a slot. A replaced waiter is
    /// returned, because it must be dropped without the lock.
    pub(crate) fn register(
        &mut self,
        waiter: &Arc<Waiter>,
        former: Option<&Waiter>,
    ) -> Option<Arc<Waiter>> {
        // The slot with this number is always the own one: `remove` clears the number, and corrects that of the slot it moves.
        if let Some(slot) = self.slot(former.unwrap_or(waiter).slot()) {
            return slot.register(waiter);
        }
        let new = WaiterSlot::new(waiter);
        let mut inline = self.inline.iter_mut().enumerate();
        if let Some((index, free)) = inline.find(|(_, slot)| slot.is_none()) {
            waiter.set_slot(index);
            *free = Some(new);
        } else {
            waiter.set_slot(INLINE + self.more.len());
            self.more.push(new);
        }
        None
    }

    /// Removes a waiter. Its slot is returned, because it must be dropped without the lock.
    pub(crate) fn remove(&mut self, waiter: &Waiter) -> Option<WaiterSlot> {
        let index = waiter.slot();
        waiter.set_slot(NO_SLOT);
        let Some(at) = index.checked_sub(INLINE) else {
            return self.inline.get_mut(index)?.take();
        };
        if at >= self.more.len() {
            return None;
        }
        let removed = self.more.swap_remove(at);
        if let Some(moved) = self.more.get(at) {
            moved.waiter.set_slot(index);
        }
        Some(removed)
    }

    /// Notifies every waiter that waits for any part of `changed`; returns false if there was none.
    pub(crate) fn notify(&mut self, changed: Interest, wake_list: &mut WakeList) -> bool {
        let before = wake_list.pending;
        for slot in self.slots() {
            slot.notify(changed, wake_list);
        }
        wake_list.pending > before
    }

    #[cfg(test)]
    pub(crate) fn len(&mut self) -> usize {
        self.slots().count()
    }
}

/// The wakers to wake once the lock is released, one per task. The list keeps them for its next use.
///
/// A kept waker outlives the cursor that registered it, but only until the next wake-up: the list keeps no more wakers than
/// it woke last. The reader drops the list of a choice that has ended.
#[derive(Debug, Default)]
pub(crate) struct WakeList {
    wakers: SmallVec<[Arc<Waiter>; 2]>,
    /// How many of them are to be woken, counted from the start.
    pending: usize,
}

/// How far around its expected index a waker is searched for. Waiters are visited in the same order each time, so a kept
/// waker is usually found at once; searching the whole list would cost the square of the number of waiters. A waker that
/// is not found is added again, and in the worst case its task is woken twice.
const SEARCH_DISTANCE: usize = 16;

impl WakeList {
    /// Loads the waiter that is most likely woken next.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(waiter) = self.wakers.first() {
            black_box(waiter.is_waiting());
        }
    }

    pub(crate) fn add(&mut self, waiter: &Arc<Waiter>) {
        let from = self.pending.saturating_sub(SEARCH_DISTANCE);
        let mut nearby = self.wakers.iter().skip(from).take(2 * SEARCH_DISTANCE);
        let found = nearby.position(|kept| kept.will_wake(&waiter.waker));
        let index = match found.map(|offset| from + offset) {
            Some(index) if index < self.pending => return,
            Some(index) => index,
            None => {
                self.wakers.push(Arc::clone(waiter));
                self.wakers.len() - 1
            }
        };
        // Those to wake come first, in the order of the waiters, so that the next round finds each at the same index.
        self.wakers.swap(self.pending, index);
        self.pending += 1;
    }

    /// Wakes the pending wakers. Must not be called under a lock, because a waker may run foreign code.
    pub(crate) fn wake(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.wakers
            .iter()
            .take(pending)
            .for_each(|waiter| wake(&waiter.waker));
        if self.wakers.len() > pending {
            self.wakers.drain(pending..).for_each(drop_waker);
        }
    }
}

/// A kept waker may be the last reference to its task, and dropping it runs foreign code just as waking it does.
impl Drop for WakeList {
    fn drop(&mut self) {
        for waker in std::mem::take(&mut self.wakers) {
            drop_waker(waker);
        }
    }
}

/// Wakes a task. A panic of its waker is caught, because the other waiters must be woken, too.
pub(crate) fn wake(waker: &Waker) {
    catch_panic(|| waker.wake_by_ref());
}

/// Drops a waker, and catches a panic of its drop. Must not be called under a lock, because the drop runs foreign code.
pub(crate) fn drop_waker<W>(waker: W) {
    catch_panic(|| drop(waker));
}

/// Runs foreign code. Its panic is ignored: the panic hook has reported it, and nothing here depends on its result.
fn catch_panic(foreign: impl FnOnce()) {
    let _panicked = catch_unwind(AssertUnwindSafe(foreign));
}
