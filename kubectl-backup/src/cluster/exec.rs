//! A pod of our own, and programs executed in it.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess, DeleteParams, PostParams};

use super::Cluster;
use super::fail::{Call, is_missing_object};
use crate::error::Result;

/// Bytes of output that wait for their reader.
const BUFFER: usize = 1 << 20;

fn call<'a>(verb: &'a str, resource: &'a str, namespace: &'a str) -> Call<'a> {
    Call {
        verb,
        resource,
        kind: None,
        namespace: Some(namespace),
    }
}

impl Cluster {
    /// Creates a pod.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn create_pod(&self, namespace: &str, pod: &Pod) -> Result<Pod> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let params = PostParams {
            field_manager: Some(crds::labels::PLUGIN_MANAGER.to_owned()),
            ..PostParams::default()
        };
        api.create(&params, pod)
            .await
            .map_err(|e| self.explain(&e, call("create", "pods", namespace)))
    }

    /// Removes a pod at once; one that is gone already is as good.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn delete_pod(&self, namespace: &str, name: &str) -> Result<()> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        match api
            .delete(name, &DeleteParams::default().grace_period(0))
            .await
        {
            Ok(_) => Ok(()),
            Err(e) if is_missing_object(&e) => Ok(()),
            Err(e) => Err(self.explain(&e, call("delete", "pods", namespace))),
        }
    }

    /// Starts a program in a container; its stdout and stderr are there to be read.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn execute(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        words: &[String],
    ) -> Result<AttachedProcess> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let params = AttachParams::default()
            .container(container)
            .stdin(false)
            .stdout(true)
            .stderr(true)
            .max_stdout_buf_size(BUFFER);
        api.exec(pod, words, &params)
            .await
            .map_err(|e| self.explain(&e, call("create", "pods/exec", namespace)))
    }

    /// The image the operator gives its runs, where its Deployment may be read.
    pub(crate) async fn runner_image(&self) -> Option<String> {
        let all = self.operators().await.ok()?;
        all.iter().find_map(|deployment| {
            let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
            let env = pod.containers.first()?.env.as_ref()?;
            env.iter().find(|e| e.name == "RUNNER_IMAGE")?.value.clone()
        })
    }
}
