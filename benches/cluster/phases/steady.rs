//! Measures claims at a steady rate, and the operator's writes for them.
//!
//! Each claim is deleted after a while and its sandbox replaced, or all are kept. Without refill they are served from stock,
//! which leaves the machine to the bindings alone.

use super::beside_floor;
use crate::Outcome;
use crate::audit::{AuditLog, LOAD, OPERATOR};
use crate::by_hand::Hand;
use crate::figures::{brief, milliseconds, writes};
use crate::lab::Lab;
use crate::load;
use crate::rate::{Rate, rate};
use crate::report::Side;
use crate::scene::{Scene, without_budgets};
use crate::served::Served;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

pub const SLOW: Rate = rate("rate5", "rate5_writes", 5, 20);
pub const BUSY: Rate = rate("rate20", "rate20_writes", 20, 20);
/// [`BUSY`] for a bare client. Its writes and processor time are the floor of the operator's.
pub const BARE: Rate = rate("bare20", BUSY.writes, BUSY.claims_a_second, BUSY.seconds);
/// [`BUSY`] without PodDisruptionBudgets. It shows what their statuses cost, which kube-controller-manager writes.
pub const UNPROTECTED: Rate = Rate {
    protected: false,
    ..rate("unprotected20", "unprotected20_writes", 20, 20)
};
/// The pool has enough sandboxes for all claims, as it has by hand. The `fill` phase measures how fast a pool is refilled.
pub const HEAVY: Rate = Rate {
    warm: 800,
    ..rate("rate50", "rate50_writes", 50, 15)
};
/// The load of a goal: claims are kept, and the refill goes on meanwhile.
pub const WARM: Rate = Rate {
    warm: 500,
    held: None,
    ..rate("warm50", "warm50_writes", 50, 4)
};
/// [`WARM`] for a bare client.
pub const BARE_WARM: Rate = Rate {
    times: "bare50",
    ..WARM
};
/// What bindings take where no refill goes on. No goal is judged by it.
pub const STOCK: Rate = Rate {
    warm: 500,
    refilled: false,
    held: None,
    ..rate("stock50", "stock50_writes", 50, 10)
};

pub async fn run(lab: &Lab<'_>, rate: &Rate) -> Outcome<()> {
    beside_floor::measure(lab, || by_hand(lab, rate), by_operator(lab, rate)).await
}

/// Serves the same load by hand. By hand no pool has PodDisruptionBudgets.
async fn by_hand(lab: &Lab<'_>, rate: &Rate) -> Outcome<()> {
    let mut scene = Scene::open(lab, &format!("{}-floor", rate.times)).await?;
    let hand = Hand::new(&mut scene).await?;
    hand.fill(rate.warm).await?;
    hand.rest(&scene).await?;
    let audit = lab.audit()?;
    let served = load::steady(&scene, rate, hand.submit(rate.refilled)).await?;
    let times = milliseconds(&served)?;
    println!("  by hand, in ms: {}", brief(&times));
    lab.record(rate.times, Side::Floor, times);
    record_spans(lab, &scene, &audit, rate, Side::Floor, LOAD)?;
    scene.close().await
}

async fn by_operator(lab: &Lab<'_>, rate: &Rate) -> Outcome<()> {
    let mut scene = Scene::at_rest(lab, rate.times, rate.warm).await?;
    if !rate.refilled {
        scene
            .change_pool(json!({"capacity": {"maxTotal": rate.warm}}))
            .await?;
        scene.rest().await?;
    }
    if !rate.protected {
        scene.change_pool(without_budgets()).await?;
        scene.rest().await?;
    }
    by_process(lab, &mut scene, rate, Side::Ours).await?;
    scene.close().await
}

/// Has a bare client serve the claims in place of the operator, from whose account it sends its requests.
pub async fn run_bare(lab: &Lab<'_>, rate: &Rate) -> Outcome<()> {
    let client = lab.start_bare_client(rate.times)?;
    let mut scene = Scene::served_by(client, lab, rate.times, rate.warm).await?;
    by_process(lab, &mut scene, rate, Side::Floor).await?;
    scene.close().await
}

/// Has the operator of a scene serve the load, or the bare client that is in its place, and records the figures.
pub async fn by_process(lab: &Lab<'_>, scene: &mut Scene, rate: &Rate, side: Side) -> Outcome<()> {
    let (times, figures, audit) = measure(lab, scene, rate).await?;
    record_spans(lab, scene, &audit, rate, side, OPERATOR)?;
    lab.record(rate.times, side, times);
    lab.record(rate.writes, side, figures);
    Ok(())
}

/// Records what the client of `user` took of the latencies since the mark of `audit`.
fn record_spans(
    lab: &Lab<'_>,
    scene: &Scene,
    audit: &AuditLog,
    rate: &Rate,
    side: Side,
    user: &str,
) -> Outcome<()> {
    let bound = scene.claims.state.with(|claims| claims.bound.clone());
    let spans = audit.spans(user, &bound)?;
    for (latencies, figure) in [(spans.to_binding, "to_binding"), (spans.to_status, "to_status")] {
        let served = Served {
            latencies,
            ..Served::default()
        };
        let times = milliseconds(&served)?;
        println!("  {}, {figure} in ms: {}", rate.times, brief(&times));
        lab.record(&format!("{}_{figure}", rate.times), side, times);
    }
    Ok(())
}

/// Latencies, the writes and the processor time for them, and the log that has these writes.
async fn measure(lab: &Lab<'_>, scene: &mut Scene, rate: &Rate) -> Outcome<(Value, Value, AuditLog)> {
    let recording = lab.record_stacks(scene.operator()?, rate.times).await?;
    let (audit, cpu_before) = (lab.audit()?, scene.operator()?.cpu_seconds()?);
    let served = load::steady(scene, rate, load::submit(scene)).await?;
    if rate.refilled {
        if rate.held.is_none() {
            load::claims(scene)
                .delete_collection(&DeleteParams::default(), &ListParams::default())
                .await?;
        }
        // The refill and the last status are also writes for the claims.
        scene.rest().await?;
    }
    drop(recording);
    let (count, written, cpu) = (
        served.latencies.len(),
        audit.writes_of(OPERATOR)?,
        scene.operator()?.cpu_seconds()? - cpu_before,
    );
    let times = milliseconds(&served)?;
    println!("  {count} claims in ms: {}", brief(&times));
    let figures = writes(&written, count, cpu);
    println!("  writes {figures}\n    {written}");
    Ok((times, figures, audit))
}
