//! Who waits for a value to change: wakers, kept from one wake to the next.
//!
//! A waker that is taken out to be woken has to be cloned anew before each wait, which costs as much as the wake. So it
//! stays where it is, marked as told, and whoever changes the value often keeps copies of its own to wake by.

use std::task::Waker;

/// Where somebody leaves a waker.
#[derive(Debug)]
pub(crate) struct Place {
    key: u64,
    waker: Waker,
    /// Whether it is still to be woken.
    waits: bool,
}

impl Place {
    pub(crate) fn new(key: u64, waker: &Waker) -> Self {
        Self {
            key,
            waker: waker.clone(),
            waits: true,
        }
    }

    /// Waits again; a waker that is replaced is for the caller to drop.
    pub(crate) fn leave(&mut self, waker: &Waker) -> Option<Waker> {
        self.waits = true;
        let same = self.waker.will_wake(waker);
        (!same).then(|| std::mem::replace(&mut self.waker, waker.clone()))
    }

    /// Puts the waker among those to wake, if anybody waits.
    pub(crate) fn tell(&mut self, due: &mut Due) {
        if std::mem::take(&mut self.waits) {
            due.add(&self.waker);
        }
    }
}

/// Those who look at a value, by their keys; two find room without an allocation, which is a choice's text and its calls.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    first: [Option<Place>; 2],
    more: Vec<Place>,
}

impl Waiting {
    fn places(&mut self) -> impl Iterator<Item = &mut Place> {
        self.first.iter_mut().flatten().chain(&mut self.more)
    }

    /// As [`Place::leave`], at the place of a key.
    pub(crate) fn leave(&mut self, key: u64, waker: &Waker) -> Option<Waker> {
        if let Some(place) = self.places().find(|place| place.key == key) {
            return place.leave(waker);
        }
        let new = Place::new(key, waker);
        match self.first.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(new),
            None => self.more.push(new),
        }
        None
    }

    /// Gives a key's place up; its waker is for the caller to drop.
    pub(crate) fn remove(&mut self, key: u64) -> Option<Place> {
        let own = |place: &Place| place.key == key;
        let mut first = self.first.iter_mut();
        if let Some(place) = first.find(|place| place.as_ref().is_some_and(own)) {
            return place.take();
        }
        let own = self.more.iter().position(own)?;
        Some(self.more.swap_remove(own))
    }

    /// As [`Place::tell`], for all of them; false if nobody waits.
    pub(crate) fn tell(&mut self, due: &mut Due) -> bool {
        let before = due.count;
        for place in self.places() {
            place.tell(due);
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
