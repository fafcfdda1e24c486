//! The server as the API server meets it: TLS on loopback, real requests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeSet;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::webhook::certs::{Material, Pair, make};

struct Fixture {
    address: SocketAddr,
    served: Served,
    material: Material,
    metrics: Metrics,
    stop: CancellationToken,
    task: JoinHandle<Result<(), rustls::Error>>,
}

fn pair(material: &Material) -> Pair {
    Pair::parse(material.crt.as_bytes(), material.key.as_bytes()).unwrap()
}

async fn fixture() -> Fixture {
    let clock = Clock::system();
    let material = make(&["localhost".to_owned()], "", clock.now()).unwrap();
    let served = Served::default();
    served.replace(pair(&material));
    let metrics = Metrics::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let task = {
        let (served, stop) = (served.clone(), stop.clone());
        let routes = router(clock, metrics.clone());
        tokio::spawn(async move { serve(listener, &served, routes, stop).await })
    };
    Fixture {
        address,
        served,
        material,
        metrics,
        stop,
        task,
    }
}

impl Fixture {
    async fn connect(&self) -> TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        for ca in CertificateDer::pem_slice_iter(self.material.ca.as_bytes()) {
            roots.add(ca.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(ServerName::try_from("localhost").unwrap(), stream)
            .await
            .unwrap()
    }

    async fn post(&self, path: &str, body: &[u8]) -> (u16, Value) {
        let mut stream = self.connect().await;
        ask(&mut stream, path, body).await
    }
}

/// One request on an open connection: the status and the JSON body.
async fn ask(stream: &mut TlsStream<TcpStream>, path: &str, body: &[u8]) -> (u16, Value) {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A refused body is not read to its end.
    let _ = stream.write_all(body).await;
    answer(stream).await
}

async fn answer(stream: &mut TlsStream<TcpStream>) -> (u16, Value) {
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let n = stream.read(&mut chunk).await.unwrap_or(0);
        text.extend_from_slice(&chunk[..n]);
        let all = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = all.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|l| {
                    l.to_ascii_lowercase()
                        .strip_prefix("content-length: ")
                        .map(str::to_owned)
                })
                .map_or(0, |l| l.parse::<usize>().unwrap());
            if body.len() >= length {
                let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                return (status, serde_json::from_str(body).unwrap_or(Value::Null));
            }
        }
        assert!(n > 0, "closed early: {all}");
    }
}

fn review(schedule: &str) -> Vec<u8> {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "batch.isekiro.com", "version": "v1", "kind": "MysqlBackup"},
            "resource": {"group": "batch.isekiro.com", "version": "v1", "resource": "mysqlbackups"},
            "operation": "CREATE", "userInfo": {"username": "alice"},
            "object": {
                "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
                "metadata": {"name": "shop"}, "spec": {"schedule": schedule},
            },
        },
    })
    .to_string()
    .into_bytes()
}

#[tokio::test]
async fn both_paths_of_the_original_answer() {
    let fixture = fixture().await;
    let (status, body) = fixture.post(MUTATE, &review("0 3 * * *")).await;
    assert_eq!((status, &body["response"]["uid"]), (200, &json!("u-1")));
    assert_eq!(body["response"]["patchType"], "JSONPatch");
    let (status, body) = fixture.post(VALIDATE, &review("nonsense")).await;
    assert_eq!((status, &body["response"]["allowed"]), (200, &json!(false)));
    assert_eq!(body["response"]["status"]["code"], 422);
    let mut registry = prometheus_client::registry::Registry::default();
    fixture.metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(
        text.contains(r#"backup_operator_admissions_total{webhook="validate",result="denied"} 1"#),
        "{text}"
    );
}

#[tokio::test]
async fn every_configured_path_answers_every_kind_is_configured_and_nobody_waits() {
    let fixture = fixture().await;
    let text = include_str!("../../../../deploy/webhook/configurations.yaml");
    let mut validated = BTreeSet::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let configuration = Value::deserialize(document).unwrap();
        for webhook in configuration["webhooks"].as_array().unwrap() {
            let name = &webhook["name"];
            assert_eq!(webhook["failurePolicy"], "Ignore", "{name}");
            assert_eq!(webhook["timeoutSeconds"], REQUEST.as_secs(), "{name}");
            let path = &webhook["clientConfig"]["service"]["path"];
            let (status, body) = fixture
                .post(path.as_str().unwrap(), &review("0 3 * * *"))
                .await;
            assert_eq!((status, &body["response"]["allowed"]), (200, &json!(true)));
            for rule in webhook["rules"].as_array().unwrap() {
                let group = rule["apiGroups"][0].as_str().unwrap().to_owned();
                let resources = rule["resources"].as_array().unwrap();
                validated.extend(
                    resources
                        .iter()
                        .map(|r| (group.clone(), r.as_str().unwrap().to_owned())),
                );
            }
        }
    }
    let names = crds::gobackup::definition::all()
        .into_iter()
        .map(|crd| (crd.spec.group, crd.spec.names.plural));
    let ours = ["mysqlbackups", "restores"].map(|r| (crds::GROUP.to_owned(), r.to_owned()));
    assert_eq!(validated, names.chain(ours).collect());
}

#[tokio::test]
async fn what_is_no_review_is_refused_and_the_next_one_served() {
    let fixture = fixture().await;
    assert_eq!(fixture.post(VALIDATE, b"{").await.0, 400);
    assert_eq!(fixture.post(VALIDATE, b"").await.0, 400);
    assert_eq!(fixture.post("/validate", b"{}").await.0, 404);
    let deep = "[".repeat(100_000);
    assert_eq!(fixture.post(MUTATE, deep.as_bytes()).await.0, 400);
    let huge = vec![b' '; MAX_BODY + 1];
    assert_eq!(fixture.post(MUTATE, &huge).await.0, 413);
    assert_eq!(fixture.post(MUTATE, &review("0 3 * * *")).await.0, 200);
}

#[tokio::test]
async fn an_open_connection_outlives_a_new_certificate() {
    let mut fixture = fixture().await;
    let mut open = fixture.connect().await;
    assert_eq!(ask(&mut open, VALIDATE, &review("0 3 * * *")).await.0, 200);
    let new = make(
        &["localhost".to_owned()],
        &fixture.material.ca,
        Clock::system().now(),
    )
    .unwrap();
    fixture.served.replace(pair(&new));
    assert_eq!(ask(&mut open, VALIDATE, &review("0 3 * * *")).await.0, 200);
    fixture.material = new;
    let fresh = fixture.connect().await;
    assert_ne!(
        fresh.get_ref().1.peer_certificates(),
        open.get_ref().1.peer_certificates()
    );
}

#[tokio::test]
async fn silent_and_talkative_peers_stop_nobody() {
    let fixture = fixture().await;
    let mut mute = vec![];
    for _ in 0..20 {
        mute.push(TcpStream::connect(fixture.address).await.unwrap());
    }
    let mut plain = TcpStream::connect(fixture.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    // A body that never comes.
    let mut half = fixture.connect().await;
    let head = format!("POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{");
    half.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(fixture.post(VALIDATE, &review("0 3 * * *")).await.0, 200);
    assert_eq!(
        timeout(2 * REQUEST, answer(&mut half)).await.unwrap().0,
        408
    );
}

#[tokio::test]
async fn a_stop_ends_idle_connections_at_once() {
    let fixture = fixture().await;
    let mut open = fixture.connect().await;
    assert_eq!(ask(&mut open, VALIDATE, &review("0 3 * * *")).await.0, 200);
    fixture.stop.cancel();
    timeout(DRAIN / 2, fixture.task)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(TcpStream::connect(fixture.address).await.is_err());
}
