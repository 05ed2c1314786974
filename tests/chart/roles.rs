//! Checks which rights the roles view, edit and admin gain.

use crate::neighbors::may;
use crate::plane::{CHART, Plane, TEAM};
use crate::wait::{ensure, until};

pub fn view_edit_and_admin_take_in_pools_claims_and_their_templates(plane: &Plane) -> Result<(), String> {
    plane.team()?;
    plane.install(CHART, &["--create-namespace"])?;
    for role in ["view", "edit", "admin"] {
        let (binding, user) = (format!("{role}s"), format!("--user={role}er"));
        let clusterrole = format!("--clusterrole={role}");
        let create = ["-n", TEAM, "create", "rolebinding", &binding, &clusterrole, &user];
        plane.cluster.kubectl(&create, None)?;
    }
    let everybody = ["viewer", "editer", "adminer"];
    let writers = ["editer", "adminer"];
    let (ours, core) = ("warmpool.dev", "");
    let rights: [(&str, &str, &str, &[&str]); 15] = [
        ("get", ours, "pools", &everybody),
        ("watch", ours, "sandboxclaims", &everybody),
        ("get", ours, "pools/status", &everybody),
        ("get", ours, "pools/scale", &everybody),
        ("create", ours, "pools", &writers),
        ("delete", ours, "pools", &writers),
        ("create", ours, "sandboxclaims", &writers),
        ("deletecollection", ours, "sandboxclaims", &writers),
        ("patch", ours, "pools/scale", &writers),
        ("patch", ours, "pools/status", &[]),
        ("update", ours, "sandboxclaims/status", &[]),
        ("list", core, "podtemplates", &everybody),
        ("watch", core, "podtemplates", &everybody),
        ("create", core, "podtemplates", &writers),
        ("delete", core, "podtemplates", &writers),
    ];
    until("the roles were aggregated", 30, || {
        for (verb, group, resource, allowed) in rights {
            for user in everybody {
                let found = may(plane, user, TEAM, verb, group, resource)?;
                ensure(found == allowed.contains(&user), || {
                    format!("{user} may {verb} {resource}: {found}")
                })?;
            }
        }
        Ok(())
    })
}
