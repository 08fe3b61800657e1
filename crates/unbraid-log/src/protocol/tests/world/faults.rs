//! What fails.

use super::{Broken, LEASE, RENEW_EVERY, Source, Steps, World, new_reader};

impl World {
    pub(super) fn fault_steps(&self, steps: &mut Steps) {
        let mut add = |name: &str, change: &dyn Fn(&mut Self)| {
            let mut next = self.clone();
            change(&mut next);
            steps.add(format_args!("{name}"), next);
        };
        if let Some(producer) = &self.producer {
            if let (Some(request), true) = (producer.call, self.left.timeouts > 0) {
                let clock = self.clock;
                let give_up = move |next: &mut Self| {
                    next.left.timeouts -= 1;
                    next.has_timed_out = true;
                    next.producer.as_mut().unwrap().answer(request, None, clock);
                };
                add("the answer is lost", &give_up);
                if producer.reply.is_none() && self.late.is_none() {
                    add("the request is late", &|next: &mut Self| {
                        give_up(next);
                        next.late = Some(request);
                    });
                }
            }
            if self.left.crashes > 0 {
                add("the producer's gateway dies", &|next: &mut Self| {
                    next.left.crashes -= 1;
                    let producer = next.producer.take().unwrap();
                    if producer.reply.is_none() {
                        next.late = next.late.or(producer.call);
                    }
                    next.may_be_lost = true;
                    let reader = &mut next.readers[0];
                    if reader.end.is_none() {
                        reader.source = Source::Log(Box::new(new_reader(reader.seen)));
                    }
                });
            }
            if self.left.sleeps > 0 && !producer.is_done() {
                let sleep = |next: &mut Self| {
                    next.left.sleeps -= 1;
                    next.clock += LEASE;
                    next.broker.is_lease_over = true;
                    next.may_be_lost = true;
                    let clock = next.clock;
                    if next.broken != Some(Broken::TrustsSleep) {
                        next.producer.as_mut().unwrap().machine.slept(LEASE, clock);
                    }
                };
                add("the producer sleeps", &sleep);
                if let Some(request) = producer.call {
                    // The end of the call's time is noticed before its answer.
                    add("the producer sleeps through a call", &|next: &mut Self| {
                        sleep(next);
                        let clock = next.clock;
                        let producer = next.producer.as_mut().unwrap();
                        if producer.reply.is_none() {
                            next.late = next.late.or(Some(request));
                        }
                        producer.answer(request, None, clock);
                    });
                }
            }
            if self.left.ticks > 0 && producer.call.is_none() && !producer.is_done() {
                add("a renewal is due", &|next: &mut Self| {
                    next.left.ticks -= 1;
                    next.clock += 2 * RENEW_EVERY;
                });
            }
        }
        let may_expire = self.left.expiries > 0 || self.producer.is_none();
        if may_expire && !self.broker.is_lease_over {
            add("the lease is over", &|next: &mut Self| {
                next.left.expiries = next.left.expiries.saturating_sub(1);
                next.broker.is_lease_over = true;
                next.may_be_lost = true;
            });
        }
        // What the log loses after it has confirmed the end is lost: the producer has nothing to repair it from.
        let is_kept = self
            .producer
            .as_ref()
            .is_some_and(|producer| !producer.has_confirmed_end());
        if self.left.losses > 0 && self.broker.exists && is_kept {
            for records in [Some(0), Some(1), Some(2), None] {
                add(&format!("the log loses {records:?}"), &|next: &mut Self| {
                    next.left.losses -= 1;
                    next.has_lost = true;
                    next.broker.lose(records);
                });
            }
        }
    }
}
