//! Measures how long a lab's processes wait for a processor, as the kernel counts it, and how long the whole machine stands still.

use crate::check::processor_waits::{ProcessorWaits, Sample};
use crate::cluster::Cluster;
use crate::lock::lock;
use crate::operator::living;
use jiff::{SignedDuration, Timestamp};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// Looks at the operators, the API server and etcd of a lab, until it is dropped.
pub struct ProcessorWatch {
    waits: Arc<Mutex<ProcessorWaits>>,
    ended: Arc<AtomicBool>,
}

impl ProcessorWatch {
    pub fn start(cluster: &Cluster) -> Self {
        let watch = Self {
            waits: Arc::default(),
            ended: Arc::default(),
        };
        let (waits, ended) = (Arc::clone(&watch.waits), Arc::clone(&watch.ended));
        let cluster = cluster.clone();
        std::thread::spawn(move || {
            let (mut from, mut before) = (Timestamp::now(), counts(&cluster));
            let mut stolen_before = stolen();
            while !ended.load(Ordering::SeqCst) {
                sleep(PAUSE);
                let (to, now) = (Timestamp::now(), counts(&cluster));
                let stolen_now = stolen();
                let length = to.duration_since(from);
                let waited = longest_wait(&before, &now, length)
                    .max(longest_wait_of_a_thread(&before, &now))
                    .max(stolen_now - stolen_before)
                    .max(overslept(length));
                stolen_before = stolen_now;
                let operators: HashSet<u32> = living(&cluster).collect();
                let ran = run_time(&before, &now, &operators);
                lock(&waits).add(Sample {
                    from,
                    to,
                    waited,
                    ran,
                });
                (from, before) = (to, now);
            }
        });
        watch
    }

    /// What has been measured so far.
    pub fn so_far(&self) -> ProcessorWaits {
        lock(&self.waits).clone()
    }
}

impl Drop for ProcessorWatch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

/// What the kernel has counted of a thread since it began.
#[derive(Clone, Copy, Default)]
struct Count {
    ran: SignedDuration,
    waited: SignedDuration,
}

/// By process and thread.
type Counts = HashMap<(u32, String), Count>;

fn counts(cluster: &Cluster) -> Counts {
    let parts = ["apiserver", "etcd"]
        .into_iter()
        .filter_map(|part| cluster.pid_of(part));
    let processes = parts.chain(living(cluster));
    processes.flat_map(threads).collect()
}

fn threads(pid: u32) -> impl Iterator<Item = ((u32, String), Count)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    tasks.into_iter().flatten().flatten().filter_map(move |task| {
        let count = count(&fs::read_to_string(task.path().join("schedstat")).ok()?)?;
        Some(((pid, task.file_name().to_string_lossy().into_owned()), count))
    })
}

/// The first two numbers of `schedstat`, in nanoseconds.
fn count(schedstat: &str) -> Option<Count> {
    let mut numbers = schedstat.split_whitespace().map(str::parse);
    let mut next = || Some(SignedDuration::from_nanos(numbers.next()?.ok()?));
    Some(Count {
        ran: next()?,
        waited: next()?,
    })
}

/// How long these processes ran on processors, in all.
fn run_time(before: &Counts, now: &Counts, of: &HashSet<u32>) -> SignedDuration {
    let theirs = now.iter().filter(|((pid, _), _)| of.contains(pid));
    let ran = theirs.map(|(thread, count)| {
        let earlier = before.get(thread).copied().unwrap_or_default();
        count.ran - earlier.ran
    });
    ran.sum()
}

/// The longest wait of one thread that ended in a piece of time. The kernel counts a wait when it ends, so it may have begun
/// earlier.
fn longest_wait_of_a_thread(before: &Counts, now: &Counts) -> SignedDuration {
    let waits = now
        .iter()
        .filter_map(|(thread, count)| Some(count.waited - before.get(thread)?.waited));
    waits.max().unwrap_or_default()
}

/// How much longer than it had to a piece of time took. This process, which notes when an event comes, stood still so long, or the
/// whole machine did.
fn overslept(length: SignedDuration) -> SignedDuration {
    let pause = SignedDuration::try_from(PAUSE).unwrap_or_default();
    let more = length - pause;
    if more > pause { more } else { SignedDuration::ZERO }
}

/// How long one of the machine's processors has been somebody else's, the one that was so longest: the column `steal` of
/// `/proc/stat`, in hundredths of a second.
fn stolen() -> SignedDuration {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let processors = stat
        .lines()
        .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    let hundredths = processors.filter_map(|line| line.split_whitespace().nth(8)?.parse::<i64>().ok());
    SignedDuration::from_millis(10 * hundredths.max().unwrap_or_default())
}

/// The wait of the process that waited most in a piece of time. Threads that could run at the same time share it.
fn longest_wait(before: &Counts, now: &Counts, length: SignedDuration) -> SignedDuration {
    let mut of_processes: HashMap<u32, Count> = HashMap::new();
    for (thread, count) in now {
        // A thread that was not there has begun meanwhile.
        let earlier = before.get(thread).copied().unwrap_or_default();
        let sum = of_processes.entry(thread.0).or_default();
        sum.ran += count.ran - earlier.ran;
        sum.waited += count.waited - earlier.waited;
    }
    let waits = of_processes.values().map(|sum| {
        let could_run = sum.ran + sum.waited;
        let share = length.as_secs_f64() / could_run.max(length).as_secs_f64();
        sum.waited.mul_f64(share)
    });
    waits.max().unwrap_or_default()
}
