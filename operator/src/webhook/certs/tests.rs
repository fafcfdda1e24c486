#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crds::time::parse_rfc3339;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::secret::{Keeper, RoundError, service_names};
use super::*;
use crate::context::Clock;

const NAME: &str = "backup-operator-webhook.backup-system.svc";

fn names() -> Vec<String> {
    service_names("backup-system")
}

fn start() -> DateTime<Utc> {
    // The handshakes below are judged by the machine's own clock.
    Clock::system().now()
}

fn pair(material: &Material) -> Pair {
    Pair::parse(material.crt.as_bytes(), material.key.as_bytes()).unwrap()
}

/// A handshake as the API server makes it: the CA bundle of the configuration, the Service's name.
/// Returns the leaf that was presented.
async fn handshake(served: &Served, bundle: &str, name: &'static str) -> Result<Vec<u8>, String> {
    let mut roots = rustls::RootCertStore::empty();
    for ca in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(ca.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (near, far) = tokio::io::duplex(1 << 16);
    let acceptor = TlsAcceptor::from(Arc::new(served.server_config(None).unwrap()));
    let connector = TlsConnector::from(Arc::new(client));
    let (client, _server) = tokio::join!(
        connector.connect(ServerName::try_from(name).unwrap(), near),
        acceptor.accept(far)
    );
    let client = client.map_err(|e| e.to_string())?;
    Ok(client.get_ref().1.peer_certificates().unwrap()[0].to_vec())
}

#[test]
fn what_is_made_lasts_90_days_and_is_due_after_60() {
    let now = parse_rfc3339("2025-01-15T10:30:00Z").unwrap();
    let pair = pair(&make(&names(), "", now).unwrap());
    assert_eq!(
        pair.not_before,
        parse_rfc3339("2025-01-15T09:30:00Z").unwrap()
    );
    assert_eq!(
        pair.not_after,
        parse_rfc3339("2025-04-15T10:30:00Z").unwrap()
    );
    assert!(pair.names.contains(&NAME.to_owned()));
    let day = TimeDelta::days(1);
    for (at, due) in [
        (now, false),
        (now + day * 59, false),
        (now + day * 61, true),
        (now + day * 200, true),
    ] {
        assert_eq!(pair.is_due(&names(), at), due, "{at}");
    }
    assert!(
        pair.is_due(&service_names("elsewhere"), now),
        "other namespace"
    );
}

#[test]
fn a_bundle_holds_the_cas_that_live_newest_first() {
    let now = parse_rfc3339("2025-01-15T10:30:00Z").unwrap();
    let mut bundles = vec![make(&names(), "", now).unwrap().ca];
    for month in 1..6 {
        let old = bundles.last().unwrap().clone();
        bundles.push(
            make(&names(), &old, now + TimeDelta::days(60) * month)
                .unwrap()
                .ca,
        );
    }
    let count = |text: &str| CertificateDer::pem_slice_iter(text.as_bytes()).count();
    // A CA lives 90 days and is replaced after 60: never more than two at a time.
    assert_eq!(
        bundles.iter().map(|b| count(b)).collect::<Vec<_>>(),
        [1, 2, 2, 2, 2, 2]
    );
    assert!(bundles[1].trim_end().ends_with(bundles[0].trim_end()));
    // Renewed in haste the bundle stays bounded, and rubbish in it is dropped.
    let mut text = format!(
        "rubbish\n{}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        bundles[0]
    );
    for _ in 0..6 {
        text = make(&names(), &text, now).unwrap().ca;
    }
    assert_eq!(count(&text), MAX_BUNDLE);
    assert!(!text.contains("AAAA") && !text.contains("rubbish"));
}

#[test]
fn what_is_no_pair_is_refused_and_no_key_is_shown() {
    let (a, b) = (
        make(&names(), "", start()).unwrap(),
        make(&names(), "", start()).unwrap(),
    );
    let fault = |crt: &str, key: &str| {
        Pair::parse(crt.as_bytes(), key.as_bytes())
            .unwrap_err()
            .to_string()
    };
    assert!(fault(&a.crt, &b.key).contains("not the key of"));
    assert!(fault("", &a.key).contains("no certificate"));
    assert!(fault(&a.crt, "").contains("tls.key"));
    assert!(
        fault(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            &a.key
        )
        .contains("X.509")
    );
    assert!(!format!("{a:?} {:?}", pair(&a)).contains("PRIVATE"));
}

#[tokio::test]
async fn a_replaced_certificate_is_served_without_restart_and_both_are_trusted() {
    let old = make(&names(), "", start()).unwrap();
    let new = make(&names(), &old.ca, start()).unwrap();
    let served = Served::default();
    assert!(
        handshake(&served, &old.ca, NAME).await.is_err(),
        "no certificate yet"
    );
    served.replace(pair(&old));
    let first = handshake(&served, &new.ca, NAME).await.unwrap();
    served.replace(pair(&new));
    let second = handshake(&served, &new.ca, NAME).await.unwrap();
    assert_ne!(first, second);
    // A bundle from before the renewal does not know the new CA: why it is spread first.
    assert!(handshake(&served, &old.ca, NAME).await.is_err());
    assert!(
        handshake(&served, &new.ca, "kubernetes.default.svc")
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn a_directory_is_followed() {
    let directory = std::env::temp_dir().join(format!("webhook-certs-{}", std::process::id()));
    tokio::fs::create_dir_all(&directory).await.unwrap();
    let fault = super::directory::load(&directory).await.unwrap_err();
    assert!(
        fault.contains("tls.crt") && fault.contains("ENABLE_WEBHOOKS=false"),
        "{fault}"
    );
    let write = async |crt: &str, key: &str| {
        tokio::fs::write(directory.join("tls.crt"), crt)
            .await
            .unwrap();
        tokio::fs::write(directory.join("tls.key"), key)
            .await
            .unwrap();
    };
    let served = Served::default();
    let task = tokio::spawn(super::directory::follow(directory.clone(), served.clone()));
    let (a, b) = (
        make(&names(), "", start()).unwrap(),
        make(&names(), "", start()).unwrap(),
    );
    let becomes = async |wanted: Option<Pair>| {
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if served.current() == wanted {
                return;
            }
        }
        panic!("{:?}", served.current());
    };
    write(&a.crt, &a.key).await;
    becomes(Some(pair(&a))).await;
    write(&b.crt, &a.key).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(served.current(), Some(pair(&a)), "half a change is none");
    write(&b.crt, &b.key).await;
    becomes(Some(pair(&b))).await;
    task.abort();
    tokio::fs::remove_dir_all(&directory).await.unwrap();
}

/// An API server that holds the Secret and the two configurations.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<BTreeMap<String, Value>>>);

const SECRET: &str = "/api/v1/namespaces/backup-system/secrets/backup-operator-webhook-cert";
const MUTATING: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/backup-operator";
const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/backup-operator";

impl Server {
    fn installed() -> Self {
        let server = Self::default();
        let configuration = json!({
            "metadata": {"name": "backup-operator", "resourceVersion": "1"},
            "webhooks": [{
                "name": "x.batch.isekiro.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/p"}},
            }],
        });
        let secret = json!({"metadata": {"name": "backup-operator-webhook-cert", "resourceVersion": "1", "labels": {"a": "b"}}});
        let mut objects = server.0.lock().unwrap();
        objects.insert(SECRET.into(), secret);
        objects.insert(MUTATING.into(), configuration.clone());
        objects.insert(VALIDATING.into(), configuration);
        drop(objects);
        server
    }

    fn get(&self, path: &str) -> Value {
        self.0.lock().unwrap()[path].clone()
    }

    fn edit(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut objects = self.0.lock().unwrap();
        let object = objects.get_mut(path).unwrap();
        let version: u64 = object["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        change(object);
        object["metadata"]["resourceVersion"] = json!((version + 1).to_string());
    }

    fn bundle(&self, path: &str) -> String {
        let text = &self.get(path)["webhooks"][0]["clientConfig"]["caBundle"];
        let bytes = STANDARD.decode(text.as_str().unwrap_or_default()).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn stored(&self) -> Material {
        let secret = self.get(SECRET);
        let text = |key: &str| {
            let bytes = STANDARD
                .decode(secret["data"][key].as_str().unwrap())
                .unwrap();
            String::from_utf8(bytes).unwrap()
        };
        Material {
            ca: text("ca.crt"),
            crt: text("tls.crt"),
            key: text("tls.key"),
        }
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "backup-system")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let sent: Value = match request.into_body().collect_bytes().await.unwrap() {
            bytes if bytes.is_empty() => Value::Null,
            bytes => serde_json::from_slice(&bytes).unwrap(),
        };
        let seen = self.0.lock().unwrap().get(&path).cloned();
        let Some(seen) = seen else {
            return reply(
                StatusCode::NOT_FOUND,
                &json!({"reason": "NotFound", "code": 404, "message": "not found", "status": "Failure"}),
            );
        };
        let version = &seen["metadata"]["resourceVersion"];
        let conflict =
            json!({"reason": "Conflict", "code": 409, "message": "conflict", "status": "Failure"});
        if method == Method::PUT {
            if sent["metadata"]["resourceVersion"] != *version {
                return reply(StatusCode::CONFLICT, &conflict);
            }
            self.edit(&path, |object| *object = sent.clone());
        } else if method == Method::PATCH {
            let operations = sent.as_array().unwrap();
            assert_eq!(
                operations[0],
                json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})
            );
            assert_eq!(operations[1]["path"], "/webhooks/0/clientConfig/caBundle");
            let bundle = operations[1]["value"].clone();
            self.edit(&path, |object| {
                object["webhooks"][0]["clientConfig"]["caBundle"] = bundle
            });
        }
        reply(StatusCode::OK, &self.get(&path))
    }
}

fn reply(code: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(serde_json::to_vec(value).unwrap()));
    *response.status_mut() = code;
    response
}

/// A clock that is set by hand.
#[derive(Clone)]
struct Hands(Arc<Mutex<DateTime<Utc>>>);

impl Hands {
    fn clock(&self) -> Clock {
        let hands = self.0.clone();
        Clock::new(move || *hands.lock().unwrap())
    }

    fn pass(&self, time: TimeDelta) {
        *self.0.lock().unwrap() += time;
    }
}

fn keeper(server: &Server, hands: &Hands) -> (Keeper, Served) {
    let served = Served::default();
    let keeper = Keeper::new(
        server.client(),
        "backup-system",
        hands.clock(),
        served.clone(),
    );
    (keeper, served)
}

#[tokio::test(start_paused = true)]
async fn the_first_round_makes_stores_injects_and_serves() {
    let (server, hands) = (Server::installed(), Hands(Arc::new(Mutex::new(start()))));
    let (mut keeper, served) = keeper(&server, &hands);
    keeper.round().await.unwrap();
    let stored = server.stored();
    assert_eq!(served.current(), Some(pair(&stored)));
    assert_eq!(server.get(SECRET)["metadata"]["labels"]["a"], "b");
    for configuration in [MUTATING, VALIDATING] {
        assert_eq!(server.bundle(configuration), stored.ca);
        assert_eq!(
            server.get(configuration)["webhooks"][0]["clientConfig"]["service"]["path"],
            "/p"
        );
    }
    handshake(&served, &server.bundle(MUTATING), NAME)
        .await
        .unwrap();
    // A second replica, and a second round, change nothing.
    let before = server.0.lock().unwrap().clone();
    let (mut other, same) = self::keeper(&server, &hands);
    other.round().await.unwrap();
    keeper.round().await.unwrap();
    assert_eq!(*server.0.lock().unwrap(), before);
    assert_eq!(same.current(), served.current());
    // Someone applies the configuration anew: the bundle comes back.
    server.edit(MUTATING, |c| {
        c["webhooks"][0]["clientConfig"]
            .as_object_mut()
            .unwrap()
            .remove("caBundle");
    });
    keeper.round().await.unwrap();
    assert_eq!(server.bundle(MUTATING), stored.ca);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_is_trusted_before_it_is_served_by_any_replica() {
    // The renewal is today, because the handshakes are judged by today's clock.
    let past = start() - TimeDelta::days(61);
    let (server, hands) = (Server::installed(), Hands(Arc::new(Mutex::new(past))));
    let (mut a, a_serves) = keeper(&server, &hands);
    let (mut b, b_serves) = keeper(&server, &hands);
    a.round().await.unwrap();
    b.round().await.unwrap();
    let old = server.stored();
    hands.pass(TimeDelta::days(61));
    let mut switched = [false, false];
    for _ in 0..20 {
        a.round().await.unwrap();
        b.round().await.unwrap();
        for (i, served) in [&a_serves, &b_serves].into_iter().enumerate() {
            let now = served.current().unwrap();
            switched[i] |= now != pair(&old);
            // Whatever is served, the configuration as it stands trusts it.
            handshake(served, &server.bundle(VALIDATING), NAME)
                .await
                .unwrap();
        }
        if switched == [true, true] {
            break;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(switched, [true, true]);
    assert!(
        server.bundle(MUTATING).ends_with(&old.ca),
        "the old CA stays trusted"
    );
    assert_eq!(a_serves.current(), b_serves.current());
}

#[tokio::test(start_paused = true)]
async fn the_new_certificate_waits_30_seconds_an_expired_one_is_replaced_at_once() {
    let (server, hands) = (Server::installed(), Hands(Arc::new(Mutex::new(start()))));
    let (mut keeper, served) = keeper(&server, &hands);
    keeper.round().await.unwrap();
    let first = served.current();
    hands.pass(TimeDelta::days(61));
    let pause = keeper.round().await.unwrap();
    assert_eq!(
        (served.current(), pause),
        (first.clone(), Duration::from_secs(30))
    );
    tokio::time::sleep(pause).await;
    keeper.round().await.unwrap();
    let second = served.current();
    assert_ne!(second, first);
    hands.pass(TimeDelta::days(365));
    keeper.round().await.unwrap();
    assert_ne!(served.current(), second);
    assert_eq!(
        CertificateDer::pem_slice_iter(server.stored().ca.as_bytes()).count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_spoilt_is_made_again_and_what_is_missing_is_named() {
    let (server, hands) = (Server::installed(), Hands(Arc::new(Mutex::new(start()))));
    let (mut keeper, served) = keeper(&server, &hands);
    server.edit(SECRET, |s| {
        s["data"] = json!({"tls.crt": "AAAA", "tls.key": "/w==", "ca.crt": ""})
    });
    keeper.round().await.unwrap();
    assert!(served.current().is_some());

    server.0.lock().unwrap().remove(VALIDATING);
    let fault = keeper.round().await.unwrap_err().to_string();
    assert!(
        fault.contains("ValidatingWebhookConfiguration backup-operator"),
        "{fault}"
    );
    assert!(fault.contains("apply deploy/webhook"), "{fault}");
    server.0.lock().unwrap().remove(SECRET);
    let fault = keeper.round().await.unwrap_err().to_string();
    assert!(
        fault.contains("Secret backup-system/backup-operator-webhook-cert"),
        "{fault}"
    );
}

#[tokio::test(start_paused = true)]
async fn two_replicas_that_start_together_agree() {
    let (server, hands) = (Server::installed(), Hands(Arc::new(Mutex::new(start()))));
    let (mut a, a_serves) = keeper(&server, &hands);
    let (mut b, b_serves) = keeper(&server, &hands);
    let (first, second) = tokio::join!(a.round(), b.round());
    let lost: Vec<_> = [first, second]
        .into_iter()
        .filter_map(Result::err)
        .collect();
    assert!(
        lost.iter().all(|e| matches!(e, RoundError::Conflict)),
        "{lost:?}"
    );
    a.round().await.unwrap();
    b.round().await.unwrap();
    assert_eq!(a_serves.current(), b_serves.current());
    handshake(&a_serves, &server.bundle(MUTATING), NAME)
        .await
        .unwrap();
}
