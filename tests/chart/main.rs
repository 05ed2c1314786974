//! Tests the chart and the manifests in config/.
//!
//! A plain `cargo test` only reads the files. The other tests need Helm and a control plane, which they start:
//!
//!     cargo test --test chart -- --ignored

#![allow(
    clippy::indexing_slicing,
    reason = "JSON indexed where it has nothing gives null, not a panic"
)]
#![allow(
    dead_code,
    reason = "the harness's other user, the stories of the operator, uses the rest"
)]

#[path = "../apiserver/api.rs"]
mod api;
#[path = "../apiserver/check/mod.rs"]
mod check;
#[path = "../apiserver/cluster.rs"]
mod cluster;
#[path = "../apiserver/history.rs"]
mod history;
#[path = "../apiserver/interrupt.rs"]
mod interrupt;
#[path = "../apiserver/left_behind.rs"]
mod left_behind;
#[path = "../apiserver/lock.rs"]
mod lock;
#[path = "../apiserver/objects.rs"]
mod objects;
#[path = "../apiserver/operator.rs"]
mod operator;
#[path = "../apiserver/rbac.rs"]
mod rbac;
#[path = "../apiserver/signal.rs"]
mod signal;
#[path = "../apiserver/wait.rs"]
mod wait;

mod accepted;
mod files;
mod flow_control;
mod install;
mod kustomize;
mod neighbors;
mod plane;
mod policies;
mod release;
mod rendered;
mod roles;
mod shown_commands;
mod ten_minutes;
mod upgrade;

use libtest_mimic::{Arguments, Trial};
use plane::{Kind, NARROW, Plane, USUAL};
use std::process::ExitCode;

/// Tests with their names: the paths of their functions.
macro_rules! named {
    ($($module:ident :: { $($test:ident),* $(,)? }),* $(,)?) => {
        &[$($((concat!(stringify!($module), "::", stringify!($test)), $module::$test)),*),*]
    };
}

type Check = fn() -> Result<(), String>;
type Story = fn(&Plane) -> Result<(), String>;

/// They read files of the repository.
const FILES: &[(&str, Check)] = named![
    files::{
        every_value_is_in_the_table_and_in_the_schema,
        each_value_has_above_it_what_the_table_says_of_it,
        the_charts_metadata_names_the_kinds_it_installs,
        every_object_of_the_schema_refuses_what_it_does_not_know,
        chart_and_image_carry_the_version_of_the_binary,
        the_chart_logs_what_the_binary_logs_by_itself,
        a_function_is_known_by_its_whole_name,
        every_right_of_the_roles_is_told_with_the_function_that_needs_it,
    },
    plane::{ a_forbidden_request_is_found_in_any_namespace },
    release::{ a_release_of_another_version_is_refused, the_workflow_calls_what_is_there },
    shown_commands::{ the_commands_of_a_page_are_found },
    ten_minutes::{ a_block_that_cannot_run_says_why },
];

/// They run Helm and kubectl without a cluster.
const RENDERED: &[(&str, Check)] = named![
    rendered::{
        helm_finds_nothing_to_complain_of,
        a_value_that_is_misspelt_or_cannot_be_is_refused_by_its_name,
        either_port_can_be_set_alone,
        the_crds_are_those_of_the_repository,
        kustomize_gives_what_the_chart_gives,
        the_manifests_are_what_make_config_writes,
        crds_can_be_left_out_and_need_not_be_kept,
        a_service_account_that_is_neither_made_nor_named_is_refused,
        a_service_monitor_without_a_service_is_refused,
        names_that_are_digits_stay_names,
        rendering_says_nothing_beside_the_objects,
        what_is_added_to_the_operator_is_in_its_pod,
        each_shard_has_a_deployment_and_a_lease_of_its_own,
        monitors_go_where_they_are_asked_for_with_their_relabelings,
    },
    release::{ a_release_is_whole_and_its_sums_hold },
];

/// They have the control plane to themselves, one after the other, and find nothing of the chart on it.
const STORIES: &[(&str, Story)] = named![
    accepted::{ every_object_is_accepted_under_every_set_of_values },
    install::{
        the_chart_runs_where_only_restricted_pods_may,
        the_notes_name_the_deployment_of_each_shard,
        without_its_crds_the_chart_says_what_is_missing,
        helm_test_plans_with_the_rights_of_the_operator,
        helm_test_plans_in_the_one_namespace_that_the_operator_watches,
    },
    upgrade::{
        claims_live_through_upgrade_rollback_and_uninstall,
        crds_that_are_not_kept_go_with_the_release,
    },
    neighbors::{
        a_second_release_is_told_of_the_first,
        crds_of_somebody_else_are_not_touched_and_can_be_taken_over,
        two_operators_share_a_cluster_by_namespaces,
    },
    policies::{
        a_claim_cannot_leave_its_sandboxes_behind,
        a_protected_pool_with_claims_cannot_be_deleted,
        nobody_but_the_operator_writes_the_labels_of_sandboxes,
    },
    roles::{ view_edit_and_admin_take_in_pools_claims_and_their_templates },
    kustomize::{ kubectl_apply_k_installs_it },
    shown_commands::{ every_command_of_readme_and_docs_works },
    ten_minutes::{ every_command_of_the_first_ten_minutes_works },
];

/// Likewise, on a control plane whose API server runs few requests at a time.
const NARROW_STORIES: &[(&str, Story)] = named![
    flow_control::{ bindings_stay_fast_while_another_client_floods_the_server },
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // To name a test is to ask for it.
    arguments.include_ignored |= arguments.filter.is_some();
    arguments.test_threads = Some(1);
    let check = |(name, check): &(&'static str, Check)| {
        let check = *check;
        Trial::test(*name, move || check().map_err(Into::into))
    };
    let story_on = |kind: &'static Kind| {
        move |(name, story): &(&'static str, Story)| {
            let story = *story;
            Trial::test(*name, move || plane::run_story(kind, story).map_err(Into::into))
                .with_ignored_flag(true)
        }
    };
    let trials = FILES
        .iter()
        .map(check)
        .chain(RENDERED.iter().map(|c| check(c).with_ignored_flag(true)))
        .chain(STORIES.iter().map(story_on(&USUAL)))
        .chain(NARROW_STORIES.iter().map(story_on(&NARROW)));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    plane::close();
    conclusion.exit_code()
}
