//! Injects one disruption at a time, and restores what it took away.

use super::POOLS;
use crate::api::CLAIMS;
use crate::check::event::{items, text};
use crate::faults::{Fault, Faults, Rule, WRITES_THAT_MATTER};
use crate::operator::Operator;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// A part of the whole that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disruption {
    Operator,
    BadNetwork,
    ApiServer,
    Clock,
    Etcd,
    NoNetwork,
    ApiServerRestart,
    EtcdAndOperator,
}

impl Disruption {
    /// In the order in which they fall.
    pub const ALL: [Self; 8] = [
        Self::Operator,
        Self::BadNetwork,
        Self::ApiServer,
        Self::Clock,
        Self::Etcd,
        Self::NoNetwork,
        Self::ApiServerRestart,
        Self::EtcdAndOperator,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Operator => "the operator was killed",
            Self::BadNetwork => "the network lost and delayed requests",
            Self::ApiServer => "the API server crashed",
            Self::Clock => "the operator's clock was set forward and back",
            Self::Etcd => "etcd crashed",
            Self::NoNetwork => "the network was cut",
            Self::ApiServerRestart => "the API server was restarted",
            Self::EtcdAndOperator => "operator and etcd crashed at once",
        }
    }
}

const EVERY_VERB: &[&str] = &["get", "list", "watch", "create", "patch", "update", "delete"];
const WATCH: &[&str] = &["watch"];

/// What the blows fall on.
pub struct Target<'a> {
    scene: &'a Scene,
    operator: Option<Operator>,
    clock: Clock,
}

/// The operator's own idea of the time of day: libfaketime reads it from a file.
struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    fn find(folder: &Path) -> Result<Self, String> {
        let folders = fs::read_dir("/usr/lib").map_err(|e| e.to_string())?.flatten();
        let library = folders
            .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"))
            .find(|path| path.exists())
            .ok_or("libfaketime is missing; install it with: apt-get install faketime")?;
        let file = folder.join("operator-clock");
        let clock = Self { library, file };
        clock.set("+0")?;
        Ok(clock)
    }

    /// `+90` is 90 s ahead of the true time.
    fn set(&self, offset: &str) -> Result<(), String> {
        fs::write(&self.file, offset).map_err(|e| format!("{}: {e}", self.file.display()))
    }

    /// Only the time of day is set: no clock step touches the monotonic clock.
    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
    }
}

impl<'a> Target<'a> {
    pub fn new(scene: &'a Scene) -> Result<Self, String> {
        let clock = Clock::find(&scene.lab.cluster.dir)?;
        let mut target = Self {
            scene,
            operator: None,
            clock,
        };
        target.start_operator()?;
        Ok(target)
    }

    pub fn operator_lives(&mut self) -> Result<(), String> {
        self.operator.as_mut().map_or(Ok(()), Operator::lives)
    }

    pub fn stop_operator(mut self) -> Result<(), String> {
        self.operator.take().map_or(Ok(()), Operator::stop)
    }

    pub fn inject(&mut self, disruption: Disruption) -> Result<(), String> {
        match disruption {
            Disruption::Operator => self.kill_operator(),
            Disruption::BadNetwork => self.bad_network(),
            Disruption::ApiServer => self.crash_api_server(),
            Disruption::Clock => self.set_clock(),
            Disruption::Etcd => self.crash_etcd(),
            Disruption::NoNetwork => self.no_network(),
            Disruption::ApiServerRestart => self.restart_api_server(),
            Disruption::EtcdAndOperator => self.crash_both(),
        }
    }

    fn start_operator(&mut self) -> Result<(), String> {
        let mut operator = self
            .scene
            .lab
            .start_operator_behind_faults(&self.clock.environment())?;
        operator.server_restarts = true;
        self.operator = Some(operator);
        Ok(())
    }

    fn kill_operator(&mut self) -> Result<(), String> {
        let scene = self.scene;
        scene.while_operator_is_down(|| {
            self.operator.take().map_or(Ok(()), Operator::kill)?;
            sleep(Duration::from_secs(1));
            self.start_operator()
        })
    }

    fn end(&self, how: &str, part: &str) -> Result<(), String> {
        self.scene.lab.cluster.tool(&[how, part])
    }

    fn bring_back(&self, part: &str) -> Result<(), String> {
        self.scene.lab.cluster.tool(&["start", part])?;
        self.scene.wake_pods()
    }

    fn crash_api_server(&mut self) -> Result<(), String> {
        self.end("kill", "apiserver")?;
        sleep(Duration::from_secs(2));
        self.bring_back("apiserver")
    }

    fn restart_api_server(&mut self) -> Result<(), String> {
        self.end("stop", "apiserver")?;
        self.bring_back("apiserver")
    }

    fn crash_etcd(&mut self) -> Result<(), String> {
        let before = self.bound()?;
        self.end("kill", "etcd")?;
        sleep(Duration::from_secs(2));
        self.bring_back("etcd")?;
        self.is_still_bound(&before)
    }

    fn crash_both(&mut self) -> Result<(), String> {
        let before = self.bound()?;
        let scene = self.scene;
        scene.while_operator_is_down(|| {
            self.end("kill", "etcd")?;
            self.operator.take().map_or(Ok(()), Operator::kill)?;
            self.bring_back("etcd")?;
            self.start_operator()
        })?;
        self.is_still_bound(&before)
    }

    fn bad_network(&mut self) -> Result<(), String> {
        let writes = [
            (Fault::Dropped, 0.1),
            (Fault::ReplyLost, 0.1),
            (Fault::ReplyHangs, 0.02),
            (Fault::Late(Duration::from_millis(300)), 0.3),
            (Fault::Late(Duration::from_secs(2)), 0.1),
        ];
        let rule = |(fault, chance)| Rule::of(fault, chance, EVERY_VERB).and_first(WRITES_THAT_MATTER);
        let mut rules = writes.map(rule).to_vec();
        rules.push(Rule::of(Fault::Broken, 0.02, WATCH));
        let serving = &["create pods", "patch pods", "update sandboxclaims/status"];
        self.while_faults(8, rules, |faults| {
            faults.has_struck("", Fault::Broken)?;
            let mut each = writes.into_iter();
            each.try_for_each(|(fault, _)| faults.has_struck_each(&self.scene.namespace, fault, serving))
        })
    }

    fn no_network(&mut self) -> Result<(), String> {
        let faults = &self.scene.lab.proxy()?.faults;
        faults.silence();
        let rules = vec![Rule::of(Fault::Hangs, 1.0, EVERY_VERB)];
        self.while_faults(10, rules, |faults| faults.has_struck("", Fault::Hangs))
    }

    /// Whatever the clock says, an edit is followed at once: no moment that the operator remembers is waited for.
    fn set_clock(&mut self) -> Result<(), String> {
        for offset in ["+90", "-90", "+0"] {
            self.clock.set(offset)?;
            sleep(Duration::from_secs(6));
            for pool in POOLS {
                self.follows_edits(pool)?;
            }
        }
        Ok(())
    }

    fn follows_edits(&self, pool: &str) -> Result<(), String> {
        let history =
            json!({"spec": {"revisionHistoryLimit": self.scene.pool(pool)?["metadata"]["generation"]}});
        self.scene.patch_pool(pool, &history)?;
        wait::until("the status was about the latest spec", 20, || {
            let pool = self.scene.pool(pool)?;
            let seen = pool["status"]["observedGeneration"] == pool["metadata"]["generation"];
            wait::ensure(seen, || pool["status"].to_string())
        })
    }

    /// Injects faults for so many seconds, and longer where not all `have_struck` by then.
    fn while_faults(
        &self,
        seconds: u64,
        rules: Vec<Rule>,
        have_struck: impl Fn(&Faults) -> Result<(), String>,
    ) -> Result<(), String> {
        let faults = &self.scene.lab.proxy()?.faults;
        faults.add(rules);
        sleep(Duration::from_secs(seconds));
        let outcome = wait::until("each fault had struck", 30, || have_struck(faults));
        faults.stop(None);
        outcome
    }

    /// The sandboxes of bound claims, by the UID of the claim, as the API server has acknowledged them.
    fn bound(&self) -> Result<BTreeMap<String, String>, String> {
        let claims = self.scene.claims()?;
        let bound = claims.iter().filter(|c| text(c, "/status/phase") == "Bound");
        Ok(bound
            .map(|c| (text(c, "/metadata/uid").into(), sandboxes(c)))
            .collect())
    }

    /// After a crash of etcd every claim has the sandboxes that it had before. Claims released meanwhile are gone.
    fn is_still_bound(&self, before: &BTreeMap<String, String>) -> Result<(), String> {
        let claims = wait::until("claims could be listed after the crash", 60, || {
            Ok(self.scene.lab.api.list(CLAIMS, &self.scene.namespace)?)
        })?;
        for claim in &claims {
            let was = before.get(text(claim, "/metadata/uid"));
            wait::ensure(was.is_none_or(|was| *was == sandboxes(claim)), || {
                format!("before etcd crashed the claim had {was:?}, and now it is {claim}")
            })?;
        }
        Ok(())
    }
}

fn sandboxes(claim: &Value) -> String {
    let all = items(claim, "/status/sandboxes").iter();
    all.map(|s| text(s, "/uid")).collect::<Vec<_>>().join(",")
}
