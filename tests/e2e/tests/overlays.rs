//! Every overlay against the API server's own schemas.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;

use e2e::cluster;

#[test]
fn the_api_server_takes_each_object_of_each_overlay_and_knows_each_field() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/overlays");
    let mut tried = 0;
    for overlay in std::fs::read_dir(root).unwrap() {
        let path = overlay.unwrap().path();
        let rendered = cluster().kubectl(&["kustomize", path.to_str().unwrap()]);
        let text = rendered.ok().stdout;
        // A namespace that a dry run only says it makes is not there for what comes after it; the
        // kinds of cert-manager are not installed here, tests/manifests/check reads them.
        let text = text.replace("gobackup-operator-system", "backup-system");
        let known = text
            .split("\n---\n")
            .filter(|one| !one.contains("apiVersion: cert-manager.io/"));
        let known: Vec<&str> = known.collect();
        let apply = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            "-",
        ];
        let said = cluster().kubectl_with(&apply, &known.join("\n---\n"));
        assert_eq!(said.code, 0, "{}: {}", path.display(), said.stderr);
        assert_eq!(said.stdout.lines().count(), known.len(), "{said:?}");
        tried += 1;
    }
    assert!(tried >= 7, "{tried} overlays");
}
