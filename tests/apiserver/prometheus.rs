//! Runs a Prometheus server that scrapes one operator.

use crate::cluster::{Cluster, output_of, repository};
use crate::http;
use crate::operator::start_noted;
use crate::wait;
use serde_json::Value;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The rules that are shipped, from the repository's root.
pub const RULES: &str = "charts/warmpool/rules/warmpool.yaml";

pub struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    /// Starts a server that scrapes the operator at `target` every second.
    pub fn start(cluster: &Cluster, target: &str) -> Result<Self, String> {
        let folder = cluster.dir.join("prometheus");
        fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let config = folder.join("prometheus.yml");
        let rules = repository().join(RULES);
        // `honor_labels` keeps the operator's own labels namespace and pool.
        let text = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: ['{}']\n\
             scrape_configs:\n\
             - {{job_name: warmpool, honor_labels: true, static_configs: [{{targets: ['{target}']}}]}}\n",
            rules.display()
        );
        fs::write(&config, text).map_err(|e| e.to_string())?;
        let log = cluster.dir.join("log").join("prometheus.log");
        let file = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let mut command = Command::new(program("prometheus")?);
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file);
        let mut prometheus = Self {
            child: start_noted(cluster, "prometheus", &mut command)?,
            address: String::new(),
        };
        prometheus.address = wait::until("prometheus listened", 30, || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            http::address_after(&text, "Listening on").ok_or(text)
        })?;
        Ok(prometheus)
    }

    /// The series of the expression now.
    pub fn query(&self, expression: &str) -> Result<Vec<Value>, String> {
        let answer = self.get(&format!("/api/v1/query?query={}", encoded(expression)))?;
        let series = answer["data"]["result"].as_array().cloned();
        series.ok_or_else(|| format!("{expression} gave {answer}"))
    }

    /// The number of the expression now.
    pub fn number(&self, expression: &str) -> Result<f64, String> {
        let series = self.query(expression)?;
        let value = series.first().and_then(|sample| sample["value"][1].as_str());
        let number = value.and_then(|value| value.parse().ok());
        number.ok_or_else(|| format!("{expression} gave {series:?}"))
    }

    /// The rules as they were evaluated last.
    pub fn rules(&self) -> Result<Vec<Value>, String> {
        let answer = self.get("/api/v1/rules")?;
        let groups = answer["data"]["groups"].as_array().cloned().unwrap_or_default();
        let rules = groups.iter().filter_map(|group| group["rules"].as_array());
        Ok(rules.flatten().cloned().collect())
    }

    fn get(&self, path: &str) -> Result<Value, String> {
        let (code, body) = http::get(&self.address, path)?;
        wait::ensure(code == 200, || format!("{path}: {code} {body}"))?;
        serde_json::from_str(&body).map_err(|e| format!("{path}: {e}: {body}"))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The path of prometheus or promtool, which is got if it is not there.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let folder = output_of(Command::new(repository().join("e2e/prometheus.sh")), None)?;
    Ok(PathBuf::from(folder.trim()).join(name))
}

/// Percent-encoding (RFC 3986) of everything but letters and digits.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
