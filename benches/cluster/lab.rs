//! Holds what all phases share.

use crate::Outcome;
use crate::audit::{AuditLog, OPERATOR};
use crate::control_plane::ControlPlane;
use crate::operator::{Begins, Election, Operator};
use crate::report::{Report, Side};
use crate::stacks::Recording;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use warmpool::api::{Pool, SandboxClaim};

/// Interval of polls for states that no watch shows.
pub const POLL: Duration = Duration::from_millis(200);
/// How long a pool must not change to count as at rest. Its status is written at most once a second.
pub const REST: Duration = Duration::from_secs(3);

pub struct Lab<'a> {
    pub client: Client,
    plane: &'a ControlPlane,
    operator: PathBuf,
    filter: String,
    stacks: Option<PathBuf>,
    /// Whether pools and their claims have PodDisruptionBudgets, as they do by default.
    pub protects: bool,
    report: Mutex<Report>,
}

impl<'a> Lab<'a> {
    /// `tries` says how often a phase is measured at most.
    pub async fn open(
        plane: &'a ControlPlane,
        operator: &Path,
        filter: &str,
        stacks: Option<PathBuf>,
        protects: bool,
        tries: usize,
    ) -> Outcome<Self> {
        let client = plane.load_client().await?;
        are_served::<Pool>(&client).await?;
        are_served::<SandboxClaim>(&client).await?;
        Ok(Self {
            client,
            plane,
            operator: operator.to_path_buf(),
            filter: filter.to_string(),
            stacks,
            protects,
            report: Mutex::new(Report::with_tries(tries)),
        })
    }

    /// Starts the operator of a phase. Memory and connections of an earlier operator would change the figures.
    pub fn start_operator(&self, phase: &str) -> Outcome<Operator> {
        self.start(&self.operator, phase, Election::Off, Begins::AtOnce)
    }

    /// Starts another program in place of the operator.
    pub fn start_other(&self, program: &Path, phase: &str) -> Outcome<Operator> {
        self.start(program, phase, Election::Off, Begins::AtOnce)
    }

    /// Starts an operator that takes part in leader election. The one before it must have been stopped.
    pub fn start_elected(&self, phase: &str) -> Outcome<Operator> {
        self.start(&self.operator, phase, Election::On, Begins::AtOnce)
    }

    /// The same, recorded until the recording is dropped if stacks were asked for. Returns when the operator began, too. A later
    /// recording of the phase replaces an earlier one.
    pub async fn start_recorded(&self, phase: &str) -> Outcome<(Operator, Option<Recording>, Instant)> {
        if self.stacks.is_none() {
            let began = Instant::now();
            return Ok((self.start_elected(phase)?, None, began));
        }
        let mut operator = self.start(&self.operator, phase, Election::On, Begins::WhenTold)?;
        let recording = self.record_stacks(&operator, phase).await?;
        let began = Instant::now();
        operator.begin();
        Ok((operator, recording, began))
    }

    /// Starts the bare client in place of the operator.
    pub fn start_bare_client(&self, phase: &str) -> Outcome<Operator> {
        self.start(&std::env::current_exe()?, phase, Election::Off, Begins::AtOnce)
    }

    fn start(&self, program: &Path, phase: &str, election: Election, begins: Begins) -> Outcome<Operator> {
        let kubeconfig = self.plane.operator_kubeconfig();
        let log = self.operator_log(phase);
        Operator::start(program, &kubeconfig, &self.filter, election, begins, &log)
    }

    /// Whether stacks of the operator were asked for, and no figures.
    pub fn records_stacks(&self) -> bool {
        self.stacks.is_some()
    }

    /// Records the operator of a phase until the recording is dropped, if that was asked for.
    pub async fn record_stacks(&self, operator: &Operator, phase: &str) -> Outcome<Option<Recording>> {
        let Some(folder) = &self.stacks else {
            return Ok(None);
        };
        fs::create_dir_all(folder)?;
        let file = folder.join(format!("{phase}.data"));
        Ok(Some(Recording::start(operator, &file).await?))
    }

    pub fn operator_log(&self, phase: &str) -> PathBuf {
        self.plane.log(&format!("operator-{phase}"))
    }

    /// The directory of the control plane.
    pub fn dir(&self) -> &Path {
        &self.plane.dir
    }

    /// Starts counting writes.
    pub fn audit(&self) -> Outcome<AuditLog> {
        AuditLog::mark(self.plane.audit_log())
    }

    /// Waits until the operator neither writes nor uses the processor for a while.
    pub async fn until_idle(&self, operator: &Operator) -> Outcome<()> {
        loop {
            let (audit, cpu) = (self.audit()?, operator.cpu_seconds()?);
            tokio::time::sleep(REST).await;
            let no_writes = audit.writes_of(OPERATOR)?.total() == 0;
            if no_writes && operator.cpu_seconds()? - cpu < POLL.as_secs_f64() {
                return Ok(());
            }
        }
    }

    pub fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn record(&self, figure: &str, side: Side, value: Value) {
        self.report().record(figure, side, value);
    }
}

/// Waits until the API server serves a kind. This takes a moment after the CRD was applied.
async fn are_served<K>(client: &Client) -> Outcome<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    loop {
        match api.list(&ListParams::default().limit(1)).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => tokio::time::sleep(POLL).await,
            Err(error) => return Err(error.into()),
        }
    }
}
