//! Decides which tests may run at the same time, and in which lab.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// In one lab, tests of one group run side by side, and tests of two groups never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// They share an operator.
    Together,
    /// They share an operator behind the proxy.
    BehindFaults,
    /// Each has the lab to itself.
    Alone,
    /// Each has the lab to itself and takes both processors. No two run at the same time, not even in two labs.
    Busy,
}

impl Group {
    /// Whether each of its tests has a lab to itself.
    pub const fn is_alone(self) -> bool {
        matches!(self, Self::Alone | Self::Busy)
    }
}

/// Lets in one group at a time, into each of several labs.
pub struct Gate {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// The labs, and those who wait for one.
pub struct Queue {
    /// By the number of the lab.
    labs: Vec<Occupancy>,
    waiting: Vec<Group>,
}

/// Who is in a lab.
#[derive(Clone, Default)]
struct Occupancy {
    inside: usize,
    /// The group of those inside, or of those who were there last.
    group: Option<Group>,
}

/// Held by a test while it runs.
pub struct Pass<'a> {
    gate: &'a Gate,
    /// The number of the lab, from 0.
    pub lab: usize,
}

impl Gate {
    /// To that many labs.
    pub fn new(labs: usize) -> Self {
        Self {
            queue: Mutex::new(Queue::new(labs)),
            changed: Condvar::new(),
        }
    }

    /// Waits until a test of that group may run in one of the labs.
    pub fn enter(&self, group: Group) -> Pass<'_> {
        let mut queue = self.lock();
        queue.join(group);
        loop {
            if let Some(lab) = queue.admit(group) {
                return Pass { gate: self, lab };
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// To that many labs, all of them empty.
    pub fn new(labs: usize) -> Self {
        Self {
            labs: vec![Occupancy::default(); labs],
            waiting: Vec::new(),
        }
    }

    /// One more waits.
    pub fn join(&mut self, group: Group) {
        self.waiting.push(group);
    }

    /// Lets in one of that group, if a lab is open to it, and returns the number of the lab.
    pub fn admit(&mut self, group: Group) -> Option<usize> {
        let number = self.lab_for(group)?;
        let lab = self.labs.get_mut(number)?;
        (lab.inside, lab.group) = (lab.inside + 1, Some(group));
        let place = self.waiting.iter().position(|other| *other == group)?;
        self.waiting.swap_remove(place);
        Some(number)
    }

    /// One has left that lab.
    pub fn leave(&mut self, lab: usize) {
        if let Some(lab) = self.labs.get_mut(lab) {
            lab.inside -= 1;
        }
    }

    fn lab_for(&self, group: Group) -> Option<usize> {
        if !self.may_start(group) {
            return None;
        }
        let numbered = || self.labs.iter().enumerate();
        let shared = numbered().filter(|(_, lab)| lab.shares(group));
        if let Some((fullest, _)) = shared.max_by_key(|(_, lab)| lab.inside)
            && self.empty_labs_are_short()
        {
            return Some(fullest);
        }
        let open = numbered().filter(|(_, lab)| lab.inside == 0 || lab.shares(group));
        // A lab whose last group was another one needs another operator.
        let best = open.min_by_key(|(_, lab)| (lab.inside, lab.group != Some(group)));
        best.map(|(number, _)| number)
    }

    /// Whether those who can share a lab have to: there are no more empty ones than others wait for.
    fn empty_labs_are_short(&self) -> bool {
        let waiting = self
            .waiting
            .iter()
            .filter(|group| self.needs_empty_lab(**group))
            .count();
        let empty = self.labs.iter().filter(|lab| lab.inside == 0).count();
        waiting > 0 && waiting >= empty
    }

    fn needs_empty_lab(&self, group: Group) -> bool {
        self.may_start(group) && !self.labs.iter().any(|lab| lab.shares(group))
    }

    fn may_start(&self, group: Group) -> bool {
        group != Group::Busy || !self.labs.iter().any(Occupancy::is_busy)
    }
}

impl Occupancy {
    /// Whether one more test of that group may join those inside.
    fn shares(&self, group: Group) -> bool {
        self.inside > 0 && !group.is_alone() && self.group == Some(group)
    }

    fn is_busy(&self) -> bool {
        self.inside > 0 && self.group == Some(Group::Busy)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.gate.lock().leave(self.lab);
        self.gate.changed.notify_all();
    }
}
