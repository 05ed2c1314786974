//! Tests the operator on a real API server.
//!
//! Every test is a claim about the operator. It runs in a namespace of its own, and the checker judges every event there.
//!
//! The tests need a control plane, which they start for themselves, so a plain `cargo test` leaves them out:
//!
//!     cargo test --test apiserver -- --ignored           all of them
//!     cargo test --test apiserver rollout                those with "rollout" in their name
//!     cargo test --test apiserver big::                  some of the same stories with a multitude of claims
//!     LABS=4 cargo test --test apiserver -- --ignored    all, on four control planes side by side

#![allow(
    clippy::indexing_slicing,
    reason = "JSON indexed where it has nothing gives null, not a panic"
)]

mod accounts;
mod api;
mod check;
mod claimants;
mod cluster;
mod cluster_state;
mod eviction_requests_api;
mod extremes;
mod faults;
mod figures;
mod gate;
mod history;
mod http;
mod interrupt;
mod lab;
mod labs;
mod left_behind;
mod lock;
mod metrics_api;
mod objects;
mod operator;
mod plugin;
mod processor_watch;
mod program;
mod prometheus;
mod rbac;
mod rejections;
mod scene;
mod signal;
mod stories;
mod wait;

use gate::Group;
use libtest_mimic::{Arguments, Trial};
use scene::{BIG, Story, run_story};
use std::collections::VecDeque;
use std::process::ExitCode;

/// Tests at a time, unless the command line says otherwise. They mostly wait.
const AT_ONCE: usize = 3;

/// A test with its name: the path of its function.
macro_rules! named {
    ($($part:ident :: $module:ident :: { $($story:ident),* $(,)? }),* $(,)?) => {
        &[$($((concat!(stringify!($module), "::", stringify!($story)), $part::$module::$story)),*),*]
    };
}

type Named = (&'static str, Story);

/// They share one operator and run side by side.
const TOGETHER: &[Named] = named![
    stories::idle::{ at_rest_nothing_is_written },
    stories::rollouts::{
        a_rollout_keeps_its_budget_while_claims_keep_coming,
        a_revision_that_never_gets_ready_takes_no_more_than_the_budget,
        claims_are_served_in_the_middle_of_a_broken_rollout,
        a_template_changed_again_in_mid_rollout_ends_at_the_latest,
        a_change_outside_the_template_rolls_nothing,
        old_revisions_are_kept_up_to_the_limit,
        a_claim_for_the_latest_revision_waits_rather_than_take_an_old_one,
    },
    stories::revisions::{
        without_history_a_rollout_still_refills_from_the_old_revision,
        without_history_an_old_template_is_written_anew_and_rolls,
        a_revision_whose_name_is_taken_gets_another,
        a_revision_gets_back_the_label_that_was_taken_off,
        a_template_flipped_ten_times_costs_a_bounded_number_of_writes,
        pools_of_one_name_in_two_namespaces_do_not_touch_each_other,
    },
    stories::autoscaling::{ scaling_an_autoscaled_pool_moves_its_floor },
    stories::strategies::{
        with_a_surge_none_is_ever_missing,
        a_partition_keeps_that_many_on_the_old_revision,
        a_canary_that_is_undone_leaves_the_others_alone,
        another_strategy_takes_over_in_mid_rollout,
        a_paused_rollout_stands_still_and_claims_go_on,
        a_rollout_paused_half_way_keeps_its_split_under_claims,
        recreate_replaces_all_at_once,
        on_replenish_replaces_only_what_claims_take,
    },
    stories::tenants::{
        a_claim_reaches_no_pod_outside_the_pools_of_its_namespace,
        metadata_that_no_pod_can_have_fails_its_claim_alone,
        a_claim_made_anew_under_its_name_gets_another_sandbox,
    },
    stories::deadlines::{
        sandboxes_that_do_not_come_up_are_replaced_ever_more_slowly,
        sandboxes_that_die_at_once_are_replaced_ever_more_slowly,
        a_rollout_that_gets_nowhere_says_so_and_ends_when_it_is_undone,
    },
    stories::drains::{
        a_pool_of_one_keeps_one_available_while_its_node_is_drained,
        nodes_drained_one_after_the_other_under_claims_miss_no_more_than_the_budget,
        a_node_drained_during_a_rollout_shares_its_budget,
        a_node_cordoned_and_uncordoned_each_second_costs_no_sandbox_that_is_missed,
        all_nodes_tainted_at_once_cost_nothing_before_the_deadline,
        a_drain_of_a_full_pool_waits_says_why_and_breaks_at_its_deadline,
        a_claim_on_a_drained_node_says_so,
    },
    stories::hooks::{
        a_sandbox_is_available_only_with_every_pre_normal_handler,
        a_held_sandbox_drains_until_it_is_let_go,
        a_rollout_of_held_sandboxes_goes_on_as_they_are_let_go,
    },
    stories::templates::{
        a_changed_template_rolls_every_pool_that_uses_it_and_no_other,
        a_missing_template_stops_the_pool_until_it_appears,
        a_template_with_labels_of_ours_stops_the_pool_until_it_is_mended,
        a_template_deleted_in_mid_rollout_stops_the_rollout,
    },
    stories::events::{
        a_rollout_is_told_in_events_and_nothing_else_is,
        what_stops_a_pool_is_told_in_a_warning,
        a_pool_exhausted_by_one_claim_after_another_does_not_say_so_for_each,
        what_befalls_a_claim_is_told_once,
    },
    stories::visible::{ a_pool_that_no_node_can_take_says_so_wherever_people_look },
    stories::busy::{
        a_busy_rollout_misses_no_more_than_its_budget_and_the_claims,
        a_busy_rollout_with_a_surge_misses_only_what_claims_took,
        a_busy_pool_is_recreated_all_at_once_and_no_claim_is_lost,
        a_busy_pool_on_replenish_changes_only_by_what_claims_take,
        a_busy_partition_keeps_its_share_and_then_lets_go,
    },
    stories::interrupted_rollouts::{
        a_busy_rollout_is_paused_and_the_pool_scaled_and_drained_meanwhile,
        a_busy_rollout_that_never_gets_ready_is_taken_back,
    },
    stories::batches::{
        a_batch_is_bound_all_together_and_younger_claims_wait_for_it,
        two_hundred_sandboxes_in_one_claim,
        what_a_pool_says_for_its_claims_holds_where_they_say_nothing,
        a_batch_given_up_leaves_nothing_behind,
    },
    stories::selectors::{
        a_selector_takes_from_the_pool_with_the_most,
        a_selector_moves_to_the_pool_that_can_serve_first,
        a_selector_that_fits_no_pool_says_so_until_one_comes,
        a_waiting_claim_goes_to_another_pool_when_its_own_is_deleted,
    },
    stories::lost::{
        a_claimed_sandbox_whose_node_is_gone_is_lost,
        a_claimed_sandbox_that_is_evicted_is_lost,
        a_claimed_sandbox_that_fails_is_lost,
    },
    stories::removals::{
        a_pool_deleted_under_its_claims_leaves_the_bound_ones_theirs,
        a_claim_deleted_in_any_phase_takes_what_it_has_along,
    },
    stories::forged::{
        a_status_that_names_anothers_sandbox_is_never_believed,
        a_sandbox_labelled_as_a_claims_is_not_the_claims,
    },
    stories::lifetimes::{
        a_claim_expires_and_its_sandbox_goes_unless_it_is_retained,
        the_lifetime_of_a_bound_claim_may_be_changed_and_nothing_else,
        new_defaults_of_a_pool_touch_no_claim_that_was_bound,
        an_ended_claim_is_deleted_in_its_time,
        a_lost_sandbox_is_replaced_where_the_claim_asks_for_it,
        a_claim_whose_end_is_past_gets_nothing,
    },
    stories::queue::{
        waiting_claims_are_served_oldest_first,
        a_higher_priority_goes_first_and_age_decides_among_equals,
    },
    stories::fill::{
        a_pool_fills_and_says_so_truly,
        a_scaled_pool_has_exactly_what_is_asked,
        the_cheapest_sandbox_goes_first_and_the_dearest_is_claimed,
        unclaimed_sandboxes_are_trimmed_only_above_max_warm,
        min_total_is_kept_whatever_replicas_says,
        no_more_warm_up_at_once_than_the_ceiling,
        a_sandbox_counts_only_after_min_ready_seconds,
        two_pools_do_not_touch_each_other,
        a_pool_made_smaller_while_it_fills_gets_no_more_than_it_wants,
    },
    stories::claims::{
        a_claim_on_a_warm_pool_is_bound_to_a_warm_sandbox,
        a_claim_on_an_empty_pool_gets_a_sandbox_made_for_it,
        a_claim_that_only_waits_gets_no_sandbox_made_for_it,
        a_claim_that_must_not_wait_fails_on_an_empty_pool,
        a_claim_not_bound_in_time_fails_for_good,
        a_released_claim_takes_its_sandbox_along,
        the_claims_metadata_comes_with_the_binding,
        a_claim_for_a_missing_pool_waits_and_is_served_when_it_appears,
        a_bound_claim_tells_what_becomes_of_its_sandbox,
        a_full_pool_says_exhausted_and_serves_on_as_claims_go,
    },
    stories::columns::{
        every_column_of_a_pool_has_its_own_value,
        every_column_of_a_claim_has_its_own_value, the_wide_table_names_all_sandboxes_of_a_claim,
        a_claim_that_has_ended_shows_no_address_that_answers_no_more,
    },
    stories::writes::{
        a_claim_on_a_warm_pool_costs_three_writes,
        a_claim_that_waits_costs_four_writes_and_two_events,
    },
    stories::rejected_bindings::{ a_claim_that_a_policy_refuses_stops_no_other },
    stories::harm::{
        failed_sandboxes_are_replaced,
        finished_sandboxes_are_replaced,
        sandboxes_deleted_by_hand_are_replaced,
        sandboxes_evicted_by_the_api_are_replaced,
        an_unready_sandbox_is_not_handed_out_and_comes_back,
        a_namespace_deleted_under_it_hurts_no_other,
    },
    stories::budgets::{
        budgets_follow_the_spec_and_the_size_of_the_pool,
        budgets_are_written_once_and_not_for_each_claim,
        an_eviction_passes_within_the_budget_and_a_single_sandbox_is_kept,
        a_drain_is_refused_by_a_claim_that_blocks_and_passes_one_that_allows,
        a_plain_drain_of_a_pool_of_one_waits_for_its_replacement,
        a_descheduler_evicts_the_sandbox_of_a_pool_of_one_once_its_cordon_has_it_replaced,
        a_notified_claim_keeps_its_sandbox_for_its_grace_and_then_lets_it_go,
        a_budget_of_a_user_takes_the_place_of_ours_and_evictions_go_by_it,
        a_claim_that_outlives_its_pool_is_guarded_until_it_ends_or_a_pool_is_there_again,
    },
    stories::edits::{
        a_sandbox_said_to_be_claimed_by_hand_is_left_alone_and_replaced,
        a_sandbox_in_a_state_nobody_knows_is_left_alone_and_replaced,
        a_sandbox_without_its_state_is_left_alone_and_replaced,
        a_sandbox_without_its_pool_label_is_left_alone_and_replaced,
        a_label_set_right_again_brings_the_sandbox_back,
        labels_of_others_are_nobodys_business,
    },
    stories::plugin::{
        a_rollout_is_followed_to_its_end,
        a_rollout_that_does_not_end_is_given_up_and_undone,
        history_lists_what_undo_goes_back_to,
        an_undo_that_changes_nothing_writes_nothing,
        a_paused_pool_is_not_restarted_nor_undone_before_it_is_resumed,
        a_restart_replaces_every_sandbox_once,
        a_pinned_revision_is_followed_and_no_other,
        a_deleted_pool_ends_the_following,
        what_the_server_refuses_reads_as_from_kubectl,
    },
    stories::verbs::{
        a_claim_says_why_it_waits_and_which_sandbox_it_got,
        a_claim_without_a_name_gets_one_and_can_be_printed,
        a_claim_that_is_not_served_says_so_and_stays_unless_it_is_to_be_removed,
        a_claim_on_a_pool_that_is_not_there_is_not_made,
        a_command_in_the_sandbox_decides_the_exit_code_and_the_claim_goes_after_it,
        a_call_ended_by_a_signal_takes_its_claim_along,
        why_tells_what_a_claim_waits_for_and_what_it_got,
        why_tells_what_holds_a_paused_pool,
        why_tells_what_a_gated_sandbox_lacks,
        why_of_what_is_not_there_reads_as_from_kubectl,
    },
    stories::documents::{ every_object_of_readme_and_docs_is_accepted },
    stories::examples::{
        the_go_example_claims_times_out_and_releases,
        the_go_example_leaves_no_claim_when_it_is_interrupted,
        the_python_example_claims_times_out_and_releases,
        the_python_example_leaves_no_claim_when_it_is_interrupted,
        the_rust_example_claims_times_out_and_releases,
        the_rust_example_leaves_no_claim_when_it_is_interrupted,
    },
    stories::more_verbs::{
        a_pool_is_shown_on_one_screen_and_its_claims_are_counted,
        a_claim_is_released_and_an_image_rolled_out,
        labels_select_and_each_format_is_printed,
        every_missing_right_is_named,
        sentences_fit_a_terminal_of_sixty_columns_and_stay_whole_in_a_pipe,
        a_namespace_that_is_not_there_has_no_pools,
    },
    stories::metrics::{ every_alert_is_tested_and_explained },
    stories::breach::{
        a_breach_by_the_operator_is_accused,
        what_others_delete_is_not_laid_to_the_operator,
    },
    rejections::creation::{
        a_quota_is_reported_and_the_pool_fills_when_it_is_lifted,
        a_missing_service_account_is_reported_and_hurts_no_other_pool,
        a_pod_that_the_server_cannot_take_is_reported,
        a_rollout_to_a_refused_template_keeps_what_works,
        a_budget_of_nothing_is_a_surge_of_one,
    },
    rejections::rules::{
        every_bad_pool_is_refused_with_its_sentence,
        every_bad_claim_is_refused_with_its_sentence,
        every_rule_of_the_crds_has_a_case,
        a_bound_claims_spec_cannot_be_changed,
        what_is_good_is_accepted,
    },
    rejections::install::{
        the_crd_files_take_plain_kubectl_apply,
        every_sample_is_accepted,
        kubectl_explain_reads_like_documentation,
        a_misspelt_field_is_refused_by_kubectl,
        two_appliers_can_own_parts_of_one_template,
    },
];

/// They share one operator whose requests go through the proxy; each has faults in its own namespace.
const BEHIND_FAULTS: &[Named] = named![
    stories::faults::{
        requests_that_hang_or_are_late_are_given_up_or_waited_for,
        a_claim_whose_binding_is_late_is_given_no_second_sandbox,
        a_request_carried_out_after_it_was_given_up_gives_no_claim_a_second_sandbox,
        a_fault_that_strikes_nothing_any_more_is_told,
        refusals_and_errors_leave_no_trace,
        a_server_that_asks_to_wait_is_waited_for,
        writes_whose_outcome_is_unknown_are_not_made_twice,
        a_creation_that_conflicts_is_told_of_in_the_api_servers_words,
    },
    stories::watches::{ watches_that_break_expire_and_have_no_bookmarks_miss_nothing },
];

/// The same with one fault each: only when their module is named.
const ONE_FAULT: &[Named] = named![
    stories::faults::{
        conflicts_leave_no_trace,
        failed_conditions_leave_no_trace,
        errors_of_the_server_leave_no_trace,
        a_write_said_to_have_timed_out_is_not_made_twice,
        a_write_whose_reply_is_lost_is_not_made_twice,
        a_request_that_hangs_is_given_up_and_repeated,
        a_write_that_hangs_after_it_was_made_is_not_made_twice,
        a_server_slow_by_seconds_delays_and_no_more,
    },
];

/// They start, kill and double the operator or restart the API server, so each has the lab to itself.
const ALONE: &[Named] = named![
    stories::crashes::{
        killed_while_it_fills_a_pool,
        killed_in_the_middle_of_a_rollout,
        changes_made_while_it_was_down_are_caught_up_with,
        a_template_missing_over_a_restart_changes_nothing,
        a_second_operator_takes_over_from_a_killed_one,
    },
    stories::autoscaling::{
        a_pool_at_its_floor_follows_ten_claims_a_second_through_a_kill,
        a_horizontal_pod_autoscaler_moves_the_size_of_a_pool_and_the_floor_of_one_that_sizes_itself,
    },
    stories::drains::{
        an_operator_killed_between_a_replacement_and_the_deletion_makes_no_second_one,
        a_replacement_deleted_while_the_operator_is_away_is_made_again_before_the_sandbox_goes,
    },
    stories::eviction_requests::{ a_sandbox_that_an_eviction_request_names_goes_once_its_replacement_is_available },
    stories::metrics::{ every_query_of_the_dashboard_and_every_alert_has_data_under_load },
    stories::selectors::{ pools_with_a_claim_for_each_other_are_looked_at_no_more_than_need_be },
    stories::logs::{ the_log_has_a_line_for_each_change_and_none_at_rest },
    stories::tenants::{ metadata_that_cannot_be_read_stops_no_operator_that_runs_or_starts },
    stories::half::{
        a_batch_whose_operator_dies_half_way_is_finished,
        a_batch_whose_operator_dies_half_way_and_whose_time_ends_is_given_up_whole,
    },
    stories::election::{
        after_a_kill_the_standby_binds_within_the_lease_time_and_a_second,
        after_a_kill_the_standby_keeps_the_size_that_claims_called_for,
        after_sigterm_in_a_burst_the_standby_binds_without_waiting_for_the_lease,
        a_leader_that_stood_still_past_its_deadline_ends_and_harms_nothing,
    },
    stories::least::{ the_role_allows_what_it_does_and_nothing_that_it_never_does },
    stories::budgets::{ without_the_right_to_budgets_it_keeps_none_and_says_so_once },
    stories::namespaced::{ with_a_role_it_serves_its_namespace_and_leaves_others_alone },
    stories::shards::{
        two_operators_serve_a_shard_each_and_the_other_goes_on_when_one_is_killed,
        a_pool_in_no_shard_has_its_claims_told_so_until_a_label_puts_it_into_one,
    },
    stories::starts::{
        without_an_api_server_it_waits_and_says_so_once,
        without_its_types_it_says_how_to_install_them,
        types_of_another_version_are_named_with_their_fields,
        types_of_its_own_version_are_no_news,
        each_missing_right_is_named_once,
    },
    stories::events::{ a_claim_bound_at_once_is_told_only_where_that_is_asked_for },
    stories::watches::{
        a_watch_that_fails_for_half_a_minute_fails_readiness_by_name,
        watches_gone_silent_are_noticed_and_opened_anew,
        watches_refused_as_expired_list_anew,
    },
    stories::faults::{ a_creation_is_made_although_a_later_try_is_refused },
    stories::rejected_bindings::{ a_binding_is_made_although_a_later_try_is_refused },
    stories::queue::{ those_that_came_while_nobody_was_at_work_are_served_oldest_first },
    stories::lifetimes::{
        lifetimes_survive_a_restart_of_the_operator,
        waiting_and_finished_claims_keep_their_time_over_a_restart,
    },
    rejections::stored::{
        objects_it_cannot_read_are_skipped_with_a_warning,
        a_working_pool_spoilt_later_is_frozen_until_it_is_mended,
        a_stored_partition_that_is_none_stops_the_rollout_and_never_widens_it,
    },
];

/// The same with so many claims or objects that the processors have nothing left for another such test.
const BUSY: &[Named] = named![
    stories::crashes::{
        killed_in_a_burst_of_claims,
        told_to_end_in_a_burst_of_claims,
        two_operators_at_once_do_no_harm,
        the_api_server_restarts_in_a_burst_of_claims,
        the_api_server_crashes_in_a_burst_of_claims,
    },
    stories::logs::{ a_burst_of_claims_that_wait_is_logged_in_few_lines },
    stories::interrupted_rollouts::{ killed_in_the_middle_of_a_busy_rollout },
    stories::fairness::{ an_urgent_claim_passes_those_of_a_burst_that_are_not_bound_yet },
    stories::storm::{ whatever_happens_it_comes_to_rest },
    rejections::drawn::{ objects_drawn_from_the_schemas_hurt_no_other_pool },
];

/// The same, and with larger numbers as `big::`.
const SIZED: &[Named] = named![
    stories::fairness::{
        a_burst_is_served_in_order_and_each_claim_once,
        a_burst_is_served_while_the_operator_is_killed_again_and_again,
        two_operators_share_a_burst,
        claims_given_up_at_once_leave_nothing,
        a_steady_stream_is_served_as_it_comes,
    },
    stories::drains::{ a_node_with_many_sandboxes_is_drained_in_little_more_than_its_rounds },
    stories::across::{ claims_keep_coming_through_a_rollout_a_scale_to_zero_and_a_pool_made_anew },
];

/// They last for minutes and only run when their module is named: `make chaos`, `make churn`.
const LONG: &[Named] = named![
    stories::chaos::{ nothing_is_lost_while_everything_fails_in_turn },
    stories::churn::{ memory_threads_and_files_do_not_grow_with_claims },
    stories::watches::{ lists_and_watches_that_hang_are_given_up_and_repeated },
];

fn run_test(name: &str, story: Story, group: Group) -> Result<(), String> {
    let (lab, _pass) = labs::enter(group)?;
    if group.is_alone() {
        lab.end_shared_operator()?;
    } else {
        lab.share_operator(group)?;
    }
    let outcome = run_story(lab, name, story);
    if group.is_alone() {
        lab.end_faults();
    }
    // The next test neither shares the processors nor the API server with what this one leaves to be deleted.
    let cleared = if group == Group::Busy {
        lab.wait_until_cleared()
    } else {
        Ok(())
    };
    outcome.and(cleared.inspect_err(|why| lab.note_failure(format!("{name} failed: {why}"))))
}

/// Trials for the harness, with names after `prefix`. Tests left out are listed as ignored.
fn trials(
    tests: &'static [Named],
    prefix: &'static str,
    group: Group,
    left_out: bool,
) -> impl ExactSizeIterator<Item = Trial> {
    tests.iter().map(move |(name, story)| {
        let (name, story) = (format!("{prefix}{name}"), *story);
        let shown = name.clone();
        Trial::test(shown, move || run_test(&name, story, group).map_err(Into::into))
            .with_ignored_flag(left_out)
    })
}

/// Puts the busy ones evenly among the others, so that few threads wait for the turn of theirs.
fn spread(busy: impl Iterator<Item = Trial>, others: impl ExactSizeIterator<Item = Trial>) -> Vec<Trial> {
    let mut busy: VecDeque<_> = busy.collect();
    let between = (others.len() / busy.len().max(1)).max(1);
    let mut all = Vec::new();
    for (n, other) in others.enumerate() {
        if n % between == 0 {
            all.extend(busy.pop_front());
        }
        all.push(other);
    }
    all.extend(busy);
    all
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // A filter selects tests that are ignored otherwise. The big tests need the filter `big::`.
    let by_name = arguments.filter.clone().unwrap_or_default();
    let asked = arguments.ignored || arguments.include_ignored || arguments.filter.is_some();
    let big_asked = by_name.starts_with(BIG);
    (arguments.ignored, arguments.include_ignored) = (false, false);
    arguments.test_threads.get_or_insert(AT_ONCE);
    let named = |test: &Trial| !by_name.is_empty() && test.name().starts_with(&by_name);
    let busy = trials(BUSY, "", Group::Busy, !asked).chain(trials(SIZED, "", Group::Busy, !asked));
    let tests = trials(TOGETHER, "", Group::Together, !asked)
        .chain(trials(BEHIND_FAULTS, "", Group::BehindFaults, !asked))
        .chain(trials(ONE_FAULT, "", Group::BehindFaults, false).filter(named))
        .chain(spread(busy, trials(ALONE, "", Group::Alone, !asked)))
        .chain(trials(SIZED, BIG, Group::Busy, !big_asked))
        .chain(trials(LONG, "", Group::Busy, false).filter(named));
    let conclusion = libtest_mimic::run(&arguments, tests.collect());
    if labs::close() {
        conclusion.exit_code()
    } else {
        ExitCode::FAILURE
    }
}
