//! Decides which tests may run at the same time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Tests of one group run side by side. Tests of two groups never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// They share an operator.
    Together,
    /// They share an operator behind the proxy.
    BehindFaults,
    /// Each has the lab to itself.
    Alone,
}

/// Lets in one group at a time.
#[derive(Default)]
pub struct Gate {
    /// Who is in, and how many of them.
    inside: Mutex<Option<(Group, usize)>>,
    left: Condvar,
}

/// Held by a test while it runs.
pub struct Pass<'a>(&'a Gate);

impl Gate {
    /// Waits until a test of that group may run.
    pub fn enter(&self, group: Group) -> Pass<'_> {
        let must_wait = |inside: &mut Option<(Group, usize)>| {
            inside.is_some_and(|(others, _)| group == Group::Alone || others != group)
        };
        let mut inside = self
            .left
            .wait_while(self.lock(), must_wait)
            .unwrap_or_else(PoisonError::into_inner);
        let already = inside.map_or(0, |(_, count)| count);
        *inside = Some((group, already + 1));
        Pass(self)
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Group, usize)>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut inside = self.0.lock();
        *inside = inside.and_then(|(group, count)| (count > 1).then(|| (group, count - 1)));
        drop(inside);
        self.0.left.notify_all();
    }
}
