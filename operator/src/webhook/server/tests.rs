//! The server as the API server meets it: TLS on loopback, real requests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeSet;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde::Deserialize as _;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::serving::DRAIN;
use crate::webhook::certs::{Callers, Material, Pair, ServeError, make};

struct Fixture {
    address: SocketAddr,
    served: Served,
    material: Material,
    metrics: Metrics,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ServeError>>,
}

fn pair(material: &Material) -> Pair {
    Pair::parse(material.crt.as_bytes(), material.key.as_bytes()).unwrap()
}

async fn fixture() -> Fixture {
    fixture_with(anybody(), None).await
}

/// Everybody may do everything.
fn anybody() -> Rights {
    Rights::new(|_| Box::pin(async { Ok(true) }))
}

async fn fixture_with(rights: Rights, callers: Option<Callers>) -> Fixture {
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
        let routes = router(clock, metrics.clone(), rights);
        tokio::spawn(async move { serve(listener, &served, callers, routes, stop).await })
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
        self.connect_as(None).await.unwrap()
    }

    /// Connects, with a client's certificate if there is one.
    async fn connect_as(&self, own: Option<&Material>) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        for ca in CertificateDer::pem_slice_iter(self.material.ca.as_bytes()) {
            roots.add(ca.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match own {
            None => config.with_no_client_auth(),
            Some(own) => {
                let chain = CertificateDer::pem_slice_iter(own.crt.as_bytes());
                let chain = chain.collect::<Result<_, _>>().unwrap();
                let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(own.key.as_bytes());
                config.with_client_auth_cert(chain, key.unwrap()).unwrap()
            }
        };
        let stream = TcpStream::connect(self.address).await.unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(ServerName::try_from("localhost").unwrap(), stream)
            .await
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
                "metadata": {"name": "shop"}, "spec": {"schedule": schedule, "image": "mine:v1"},
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

/// A review of an update that adds `request` to an object of this kind.
fn asking(group: &str, kind: &str, request: &str, old: bool) -> Vec<u8> {
    let object = |annotations: Value| {
        json!({"apiVersion": format!("{group}/v1"), "kind": kind,
            "metadata": {"name": "shop", "namespace": "app", "annotations": annotations},
            "spec": {"schedule": "0 3 * * *", "image": "mine:v1"}})
    };
    let annotations = json!({"batch.isekiro.com/request-0123456789": request});
    let before = if old { annotations.clone() } else { json!({}) };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "kind": {"group": group, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": format!("{}s", kind.to_lowercase())},
            "operation": "UPDATE", "namespace": "app", "name": "shop",
            "userInfo": {"username": "mallory", "uid": "7", "groups": ["editors"], "extra": {"scopes": ["a"]}},
            "object": object(annotations), "oldObject": object(before),
        },
    })
    .to_string()
    .into_bytes()
}

fn prune(all: bool, dry_run: bool) -> String {
    json!({"action": "Prune", "id": "7", "by": "mallory", "at": "2025-01-15T10:30:00Z",
        "expiresAt": "2025-01-15T10:40:00Z", "options": {"all": all, "dryRun": dry_run}})
    .to_string()
}

/// Who may patch may not remove everything: the right to delete is asked for, of the very object, in the
/// caller's name.
#[tokio::test]
async fn o11_to_remove_everything_takes_the_right_to_delete() {
    use std::sync::Mutex;

    use k8s_openapi::api::authorization::v1::SubjectAccessReviewSpec;

    let asked: Arc<Mutex<Vec<SubjectAccessReviewSpec>>> = Arc::default();
    let answer: Arc<Mutex<Result<bool, String>>> = Arc::new(Mutex::new(Ok(false)));
    let rights = {
        let (asked, answer) = (asked.clone(), answer.clone());
        Rights::new(move |spec| {
            asked.lock().unwrap().push(spec);
            let answer = answer.lock().unwrap().clone();
            Box::pin(async move { answer })
        })
    };
    let fixture = fixture_with(rights, None).await;
    let kinds = [
        ("batch.isekiro.com", "MysqlBackup", VALIDATE),
        ("gobackup.io", "Backup", VALIDATE_GOBACKUP),
        ("gobackup.io", "CronBackup", VALIDATE_GOBACKUP),
    ];
    for (group, kind, path) in kinds {
        let (status, body) = fixture
            .post(path, &asking(group, kind, &prune(true, false), false))
            .await;
        let response = &body["response"];
        assert_eq!(
            (status, &response["allowed"]),
            (200, &json!(false)),
            "{kind}"
        );
        assert_eq!(response["status"]["code"], 403);
        let message = response["status"]["message"].as_str().unwrap();
        assert!(
            message.contains("mallory") && message.contains("delete"),
            "{message}"
        );
        let spec = asked.lock().unwrap().pop().unwrap();
        let of = spec.resource_attributes.unwrap();
        assert_eq!(of.verb.as_deref(), Some("delete"));
        assert_eq!(
            (
                of.group.as_deref(),
                of.name.as_deref(),
                of.namespace.as_deref()
            ),
            (Some(group), Some("shop"), Some("app"))
        );
        assert_eq!(of.resource.unwrap(), format!("{}s", kind.to_lowercase()));
        assert_eq!(
            (spec.user.as_deref(), spec.uid.as_deref()),
            (Some("mallory"), Some("7"))
        );
        assert_eq!(
            (spec.groups.unwrap(), spec.extra.unwrap()["scopes"].clone()),
            (vec!["editors".to_owned()], vec!["a".to_owned()])
        );
        // What asks for less, and what stood there before, is not asked about.
        for (request, old) in [
            (prune(false, false), false),
            (prune(true, true), false),
            (prune(true, false), true),
            ("nonsense".to_owned(), false),
        ] {
            let (_, body) = fixture
                .post(path, &asking(group, kind, &request, old))
                .await;
            assert_eq!(body["response"]["allowed"], true, "{kind} {request}");
        }
        assert!(asked.lock().unwrap().is_empty());
    }
    let all = asking(
        "batch.isekiro.com",
        "MysqlBackup",
        &prune(true, false),
        false,
    );
    *answer.lock().unwrap() = Err("no route".to_owned());
    let (_, body) = fixture.post(VALIDATE, &all).await;
    assert_eq!(body["response"]["allowed"], false);
    assert!(
        body["response"]["status"]["message"]
            .as_str()
            .unwrap()
            .contains("no route")
    );
    *answer.lock().unwrap() = Ok(true);
    let (_, body) = fixture.post(VALIDATE, &all).await;
    assert_eq!(body["response"]["allowed"], true);
}

/// Bodies of the largest size that nobody vouches for: of eight, four are in memory at a time.
#[tokio::test]
async fn o5_four_large_bodies_are_read_at_a_time() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let large = Arc::new(Semaphore::new(LARGE_AT_ONCE));
    let pulled: Vec<Arc<AtomicUsize>> = (0..8).map(|_| Arc::default()).collect();
    let mut readers = vec![];
    for count in &pulled {
        let count = count.clone();
        let parts = futures::stream::repeat(Bytes::from(vec![b' '; 16 * 1024])).take(7 * 64 - 1);
        let parts = parts.map(move |part| {
            count.fetch_add(part.len(), Ordering::Relaxed);
            Ok::<_, std::convert::Infallible>(part)
        });
        // The last part never comes.
        let body = Body::from_stream(parts.chain(futures::stream::pending()));
        let large = large.clone();
        readers.push(tokio::spawn(async move {
            super::body(Request::new(body), &large).await
        }));
    }
    let whole = |n: usize| n > 6 << 20;
    let sizes = || pulled.iter().map(|p| p.load(Ordering::Relaxed));
    timeout(Duration::from_secs(20), async {
        while sizes().filter(|n| whole(*n)).count() < LARGE_AT_ONCE {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(sizes().filter(|n| whole(*n)).count(), LARGE_AT_ONCE);
    assert!(
        sizes()
            .filter(|n| !whole(*n))
            .all(|n| n <= LARGE + 16 * 1024)
    );
    // One that is given up makes room for the next.
    let first = pulled
        .iter()
        .position(|p| whole(p.load(Ordering::Relaxed)))
        .unwrap();
    readers[first].abort();
    timeout(Duration::from_secs(20), async {
        while sizes().filter(|n| whole(*n)).count() <= LARGE_AT_ONCE {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

/// Peers that open and say nothing, that stop in their head, and that send large bodies: one address,
/// many more than there is room for. Admission answers in time all the same.
#[tokio::test]
async fn o5_half_open_connections_keep_nobody_out() {
    let fixture = fixture().await;
    let mut mute = vec![];
    for n in 0..300 {
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        if n % 3 == 0 {
            // The beginning of a TLS record.
            stream.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
        }
        mute.push(stream);
    }
    let mut slow = vec![];
    for _ in 0..20 {
        let mut stream = fixture.connect().await;
        stream
            .write_all(b"POST / HTTP/1.1\r\nHost: x\r\nX-")
            .await
            .unwrap();
        slow.push(stream);
    }
    let mut large = vec![];
    for _ in 0..4 {
        let mut stream = fixture.connect().await;
        let head =
            format!("POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Length: {MAX_BODY}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b' '; 100 * 1024]).await.unwrap();
        large.push(stream);
    }
    let answered = timeout(
        Duration::from_secs(4),
        fixture.post(VALIDATE, &review("0 3 * * *")),
    )
    .await;
    assert_eq!(answered.unwrap().0, 200);
    drop((mute, slow, large));
}

/// True if a client with this certificate gets no answer.
async fn refuses(fixture: &Fixture, own: Option<&Material>) -> bool {
    // TLS 1.3 tells a client of its refusal with the first answer.
    let Ok(mut stream) = fixture.connect_as(own).await else {
        return true;
    };
    let head = format!("POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    let sent = stream.write_all(head.as_bytes()).await;
    let mut chunk = [0; 16];
    sent.is_err() || !matches!(stream.read(&mut chunk).await, Ok(n) if n > 0)
}

/// Without a certificate of the CA nobody gets as far as HTTP.
#[tokio::test]
async fn o5_callers_show_a_certificate_where_it_is_demanded() {
    let now = Clock::system().now();
    let material = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        crate::webhook::certs::tests_client(&names, now)
    };
    let (caller, unknown) = (material(&["api"]), material(&["api"]));
    let name = format!("webhook-callers-{}.crt", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, &caller.ca).unwrap();
    let callers = Callers::open(&file).unwrap();
    let fixture = fixture_with(anybody(), Some(callers.clone())).await;
    for own in [None, Some(&unknown)] {
        assert!(refuses(&fixture, own).await, "{}", own.is_some());
    }
    let mut stream = fixture.connect_as(Some(&caller)).await.unwrap();
    assert_eq!(
        ask(&mut stream, VALIDATE, &review("0 3 * * *")).await.0,
        200
    );
    // The CA is rotated: both for a while, then the new one alone. What is no CA changes nothing.
    std::fs::write(&file, format!("{}{}", caller.ca, unknown.ca)).unwrap();
    assert_eq!(callers.look(), Ok(true));
    assert_eq!(callers.look(), Ok(false));
    for own in [&caller, &unknown] {
        assert!(!refuses(&fixture, Some(own)).await);
    }
    std::fs::write(&file, &unknown.ca).unwrap();
    assert_eq!(callers.look(), Ok(true));
    std::fs::write(&file, "half").unwrap();
    assert!(callers.look().is_err());
    assert!(refuses(&fixture, Some(&caller)).await);
    assert!(!refuses(&fixture, Some(&unknown)).await);
    std::fs::remove_file(&file).unwrap();
    assert!(crate::webhook::certs::callers(b"").is_err());
    assert!(
        crate::webhook::certs::callers(
            b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
        )
        .is_err()
    );
}
