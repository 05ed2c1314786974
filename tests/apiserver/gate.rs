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
    /// By the number of the lab.
    labs: Mutex<Vec<Occupancy>>,
    left: Condvar,
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
            labs: Mutex::new(vec![Occupancy::default(); labs]),
            left: Condvar::new(),
        }
    }

    /// Waits until a test of that group may run in one of the labs.
    pub fn enter(&self, group: Group) -> Pass<'_> {
        let mut labs = self.lock();
        loop {
            let may_enter = group != Group::Busy || !labs.iter().any(Occupancy::is_busy);
            let numbered = labs.iter_mut().enumerate();
            let open = numbered.filter(|(_, lab)| may_enter && lab.admits(group));
            // A lab whose last group was another one needs another operator.
            if let Some((number, lab)) = open.min_by_key(|(_, lab)| (lab.inside, lab.group != Some(group))) {
                (lab.inside, lab.group) = (lab.inside + 1, Some(group));
                return Pass {
                    gate: self,
                    lab: number,
                };
            }
            labs = self.left.wait(labs).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Occupancy>> {
        self.labs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Occupancy {
    fn admits(&self, group: Group) -> bool {
        self.inside == 0 || (!group.is_alone() && self.group == Some(group))
    }

    fn is_busy(&self) -> bool {
        self.inside > 0 && self.group == Some(Group::Busy)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Some(lab) = self.gate.lock().get_mut(self.lab) {
            lab.inside -= 1;
        }
        self.gate.left.notify_all();
    }
}
