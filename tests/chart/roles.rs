//! What Kubernetes' own roles let people do with pools and claims.

use crate::neighbours::may;
use crate::plane::{CHART, Plane, TEAM};
use crate::wait::{ensure, until};

pub fn view_edit_and_admin_take_in_pools_and_claims(plane: &Plane) -> Result<(), String> {
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
    let rights: [(&str, &str, &[&str]); 11] = [
        ("get", "pools", &everybody),
        ("watch", "sandboxclaims", &everybody),
        ("get", "pools/status", &everybody),
        ("get", "pools/scale", &everybody),
        ("create", "pools", &writers),
        ("delete", "pools", &writers),
        ("create", "sandboxclaims", &writers),
        ("deletecollection", "sandboxclaims", &writers),
        ("patch", "pools/scale", &writers),
        ("patch", "pools/status", &[]),
        ("update", "sandboxclaims/status", &[]),
    ];
    until("the roles were aggregated", 30, || {
        for (verb, resource, allowed) in rights {
            for user in everybody {
                let found = may(plane, user, TEAM, verb, "warmpool.dev", resource)?;
                ensure(found == allowed.contains(&user), || {
                    format!("{user} may {verb} {resource}: {found}")
                })?;
            }
        }
        Ok(())
    })
}
