//! The driver against a fake API server that keeps one Lease, on tokio's paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{advance, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::*;

/// How the fake answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Weather {
    Fair,
    /// Answers 500.
    Broken,
    /// Takes no effect and never answers.
    Silent,
    /// Takes effect, then never answers.
    Mute,
    Forbidden,
}

#[derive(Default)]
struct Stored {
    lease: Option<Value>,
    version: u64,
    writes: u64,
}

/// An API server with optimistic concurrency for one Lease.
#[derive(Clone)]
struct Server {
    stored: Arc<Mutex<Stored>>,
    weather: Arc<Mutex<Weather>>,
}

impl Server {
    fn new() -> Self {
        Self {
            stored: Arc::default(),
            weather: Arc::new(Mutex::new(Weather::Fair)),
        }
    }

    /// A candidate's own view of the server, whose weather can be changed alone.
    fn path(&self) -> Self {
        Self {
            stored: self.stored.clone(),
            weather: Arc::new(Mutex::new(Weather::Fair)),
        }
    }

    fn set(&self, weather: Weather) {
        *self.weather.lock().unwrap() = weather;
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
        let weather = *self.weather.lock().unwrap();
        match weather {
            Weather::Silent => std::future::pending().await,
            Weather::Broken => return status(StatusCode::INTERNAL_SERVER_ERROR),
            Weather::Forbidden => return status(StatusCode::FORBIDDEN),
            Weather::Fair | Weather::Mute => {}
        }
        let method = request.method().clone();
        let body = request.into_body().collect_bytes().await.unwrap();
        let response = self.serve(&method, &body);
        if weather == Weather::Mute {
            std::future::pending::<()>().await;
        }
        response
    }

    fn serve(&self, method: &Method, body: &[u8]) -> Response<Body> {
        let mut stored = self.stored.lock().unwrap();
        if *method == Method::GET {
            return match &stored.lease {
                Some(lease) => reply(lease),
                None => status(StatusCode::NOT_FOUND),
            };
        }
        let mut lease: Value = serde_json::from_slice(body).unwrap();
        let sent = lease["metadata"]["resourceVersion"].as_str();
        let expected = stored.lease.is_some().then(|| stored.version.to_string());
        match *method {
            Method::POST if stored.lease.is_some() => return status(StatusCode::CONFLICT),
            Method::PUT if expected.is_none() => return status(StatusCode::NOT_FOUND),
            Method::PUT if sent != expected.as_deref() => return status(StatusCode::CONFLICT),
            _ => {}
        }
        stored.version += 1;
        stored.writes += 1;
        lease["metadata"]["resourceVersion"] = json!(stored.version.to_string());
        stored.lease = Some(lease.clone());
        reply(&lease)
    }

    fn spec(&self) -> Value {
        let stored = self.stored.lock().unwrap();
        stored
            .lease
            .as_ref()
            .map_or(Value::Null, |l| l["spec"].clone())
    }

    fn holder(&self) -> String {
        self.spec()["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Another candidate, not of this test's clock.
    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut stored = self.stored.lock().unwrap();
        stored.version += 1;
        let version = stored.version.to_string();
        let lease = stored.lease.get_or_insert_with(
            || json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "backup-operator"}, "spec": {}}),
        );
        change(lease);
        lease["metadata"]["resourceVersion"] = json!(version);
    }
}

fn reply(value: &Value) -> Response<Body> {
    Response::new(Body::from(serde_json::to_vec(value).unwrap()))
}

fn status(code: StatusCode) -> Response<Body> {
    let reason = match code {
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::CONFLICT => "Conflict",
        StatusCode::FORBIDDEN => "Forbidden",
        _ => "InternalError",
    };
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code.as_u16(), "reason": reason, "message": "from the test"});
    let mut response = reply(&body);
    *response.status_mut() = code;
    response
}

/// The wall clock of the tests: as wrong as can be, and running with the paused clock.
fn wall() -> DateTime<Utc> {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed();
    DateTime::from_timestamp(1_000_000_000, 0).unwrap() + since
}

/// A wall clock that stands still: its renewals all carry one time.
fn frozen() -> DateTime<Utc> {
    DateTime::from_timestamp(4_000_000_000, 0).unwrap()
}

struct Candidate {
    leadership: Leadership,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Candidate {
    fn start(server: &Server, identity: &str, clock: fn() -> DateTime<Utc>) -> Self {
        Self::start_if(server, identity, clock, || true)
    }

    fn start_if(
        server: &Server,
        identity: &str,
        clock: fn() -> DateTime<Utc>,
        eligible: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let leadership = Leadership::none();
        let elector = Elector::new(
            server.client(),
            Settings {
                identity: identity.into(),
                namespace: "backup-system".into(),
                name: LEASE_NAME.into(),
                timing: Timing::default(),
                eligible: Arc::new(eligible),
                clock: Clock::new(clock),
            },
            leadership.clone(),
        );
        let stop = CancellationToken::new();
        let task = tokio::spawn(elector.run(stop.clone().cancelled_owned()));
        Self {
            leadership,
            stop,
            task,
        }
    }

    fn leads(&self) -> bool {
        self.leadership.is_leader_now()
    }

    async fn gained_within(&mut self, limit: Duration) -> Duration {
        let start = Instant::now();
        timeout(limit, self.leadership.gained())
            .await
            .expect("gained");
        start.elapsed()
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_first_candidate_creates_the_lease_and_keeps_it() {
    let server = Server::new();
    let mut a = Candidate::start(&server, "a", wall);
    a.gained_within(SECOND).await;
    let spec = server.spec();
    assert_eq!(spec["holderIdentity"], "a");
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 0);
    let writes = server.stored.lock().unwrap().writes;
    sleep(60 * SECOND).await;
    assert!(a.leads());
    let renewals = server.stored.lock().unwrap().writes - writes;
    assert!((29..=31).contains(&renewals), "{renewals} renewals in 60 s");
    assert_eq!(server.spec()["acquireTime"], spec["acquireTime"]);
    assert_ne!(server.spec()["renewTime"], spec["renewTime"]);
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_followed_within_17_seconds() {
    for phase in [0, 300, 900, 1500, 1999] {
        let server = Server::new();
        let mut a = Candidate::start(&server, "a", wall);
        a.gained_within(SECOND).await;
        sleep(10 * SECOND).await;
        let mut b = Candidate::start(&server, "b", wall);
        sleep(20 * SECOND + Duration::from_millis(phase)).await;
        assert!(a.leads() && !b.leads());
        a.task.abort();
        let until = a.leadership.clone();
        let took = b.gained_within(18 * SECOND).await;
        assert!(took <= 17 * SECOND, "{took:?} at phase {phase}");
        assert!(took >= 13 * SECOND, "{took:?} at phase {phase}");
        assert!(!until.is_leader_now(), "two leaders");
        assert_eq!(server.spec()["leaseTransitions"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_leader_hands_over_at_once() {
    let server = Server::new();
    let mut a = Candidate::start(&server, "a", wall);
    a.gained_within(SECOND).await;
    let mut b = Candidate::start(&server, "b", wall);
    sleep(7 * SECOND).await;
    a.stop.cancel();
    let took = b.gained_within(3 * SECOND).await;
    assert!(took <= 2 * SECOND, "{took:?}");
    a.task.await.unwrap();
    assert!(!a.leadership.is_leader_now());
    assert_eq!(server.holder(), "b");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_cut_off_by_the_stop_does_not_keep_the_lease() {
    let server = Server::new();
    let path = server.path();
    let mut a = Candidate::start(&path, "a", wall);
    a.gained_within(SECOND).await;
    path.set(Weather::Mute);
    // A renewal takes effect and is not answered; the stop comes while it is waited for.
    sleep(3 * SECOND).await;
    path.set(Weather::Fair);
    a.stop.cancel();
    a.task.await.unwrap();
    assert_eq!(server.holder(), "");
}

#[tokio::test(start_paused = true)]
async fn a_leader_cut_off_stops_before_another_may_begin() {
    for weather in [Weather::Broken, Weather::Silent, Weather::Mute] {
        let server = Server::new();
        let path = server.path();
        let mut a = Candidate::start(&path, "a", wall);
        a.gained_within(SECOND).await;
        let mut b = Candidate::start(&server, "b", wall);
        sleep(5 * SECOND).await;
        path.set(weather);
        let cut = Instant::now();
        a.leadership.lost().await;
        assert!(!a.leads());
        assert!(
            cut.elapsed() <= 10 * SECOND,
            "{weather:?}: {:?}",
            cut.elapsed()
        );
        assert!(!b.leads(), "{weather:?}");
        // A follower again, not dead: it comes back when the road is clear and the lease is free.
        b.gained_within(25 * SECOND).await;
        assert!(!a.leads());
        path.set(Weather::Fair);
        sleep(10 * SECOND).await;
        assert!(!a.leads() && b.leads());
        b.task.abort();
        a.gained_within(20 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_that_hangs_at_the_end_of_a_lease_costs_no_time() {
    for silence in [8, 10, 12] {
        let server = Server::new();
        let path = server.path();
        let mut a = Candidate::start(&server, "a", wall);
        a.gained_within(SECOND).await;
        let mut b = Candidate::start(&path, "b", wall);
        sleep(5 * SECOND).await;
        a.task.abort();
        let dead = Instant::now();
        sleep(silence * SECOND).await;
        path.set(Weather::Silent);
        sleep((13 - silence) * SECOND - SECOND / 2).await;
        path.set(Weather::Fair);
        b.gained_within(10 * SECOND).await;
        assert!(dead.elapsed() <= 17 * SECOND, "{:?}", dead.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_trouble_costs_no_leadership() {
    let server = Server::new();
    let mut a = Candidate::start(&server, "a", wall);
    a.gained_within(SECOND).await;
    server.set(Weather::Broken);
    sleep(7 * SECOND).await;
    server.set(Weather::Fair);
    let lost = timeout(30 * SECOND, a.leadership.lost()).await;
    assert!(lost.is_err(), "lost");
    assert_eq!(server.spec()["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_process_is_no_leader_the_moment_it_thaws() {
    let server = Server::new();
    let mut a = Candidate::start(&server, "a", wall);
    a.gained_within(SECOND).await;
    let before = a.leadership.clone();
    assert!(before.is_leader_now());
    // The clock moves on, no task runs: SIGSTOP and SIGCONT.
    let frozen = advance(16 * SECOND);
    tokio::pin!(frozen);
    assert!(futures::poll!(&mut frozen).is_pending());
    assert!(!before.is_leader_now());
}

#[tokio::test(start_paused = true)]
async fn wall_clocks_decide_nothing() {
    // The leader's clock stands still in the year 2096, the follower's is in 2001: neither the
    // follower's haste nor its patience may come from that.
    let server = Server::new();
    let mut a = Candidate::start(&server, "a", frozen);
    a.gained_within(SECOND).await;
    let mut b = Candidate::start(&server, "b", wall);
    a.stop.cancel();
    b.gained_within(2 * SECOND).await;
    let mut c = Candidate::start(&server, "c", frozen);
    assert!(timeout(60 * SECOND, c.leadership.gained()).await.is_err());
    b.task.abort();
    let took = c.gained_within(17 * SECOND).await;
    assert!(took > 10 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_edit_by_another_program_neither_loses_nor_prolongs_the_lease() {
    let server = Server::new();
    let mut a = Candidate::start(&server, "a", wall);
    a.gained_within(SECOND).await;
    sleep(5 * SECOND).await;
    server.edit(|l| l["metadata"]["labels"] = json!({"x": "y"}));
    let lost = timeout(30 * SECOND, a.leadership.lost()).await;
    assert!(lost.is_err(), "lost");
    let lease = server.stored.lock().unwrap().lease.clone().unwrap();
    assert_eq!(
        lease["metadata"]["labels"]["x"], "y",
        "a renewal keeps what others wrote"
    );

    let b = Candidate::start(&server, "b", wall);
    sleep(5 * SECOND).await;
    a.task.abort();
    let dead = Instant::now();
    while !b.leads() && dead.elapsed() < 30 * SECOND {
        server.edit(|l| l["metadata"]["labels"] = json!({"x": format!("{:?}", Instant::now())}));
        let _ = timeout(SECOND, b.leadership.gained()).await;
    }
    assert!(dead.elapsed() <= 17 * SECOND, "{:?}", dead.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lease_taken_over_by_force_ends_leadership_at_the_next_renewal() {
    let server = Server::new();
    let mut a = Candidate::start(&server, "a", wall);
    a.gained_within(SECOND).await;
    server.edit(|l| l["spec"]["holderIdentity"] = json!("somebody"));
    let start = Instant::now();
    a.leadership.lost().await;
    assert!(start.elapsed() <= 2 * SECOND, "{:?}", start.elapsed());
    // Nobody renews it: it expires.
    a.gained_within(16 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again() {
    let server = Server::new();
    let mut a = Candidate::start(&server, "a", wall);
    a.gained_within(SECOND).await;
    server.stored.lock().unwrap().lease = None;
    assert!(timeout(10 * SECOND, a.leadership.lost()).await.is_err());
    assert_eq!(server.holder(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_not_ready_looks_on_and_waits_no_longer_than_it_must() {
    let ready = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let server = Server::new();
    let mut a = Candidate::start(&server, "a", wall);
    a.gained_within(SECOND).await;
    let mut b = {
        let ready = ready.clone();
        let eligible = move || ready.load(std::sync::atomic::Ordering::Relaxed);
        Candidate::start_if(&server, "b", wall, eligible)
    };
    sleep(5 * SECOND).await;
    a.task.abort();
    assert!(timeout(60 * SECOND, b.leadership.gained()).await.is_err());
    assert_eq!(server.holder(), "a");
    // The lease ran out while it looked on.
    ready.store(true, std::sync::atomic::Ordering::Relaxed);
    b.gained_within(SECOND).await;
    // Once it leads, it goes on leading.
    ready.store(false, std::sync::atomic::Ordering::Relaxed);
    assert!(timeout(60 * SECOND, b.leadership.lost()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn without_rights_nobody_leads() {
    let server = Server::new();
    server.set(Weather::Forbidden);
    let mut a = Candidate::start(&server, "a", wall);
    assert!(timeout(120 * SECOND, a.leadership.gained()).await.is_err());
    server.set(Weather::Fair);
    a.gained_within(3 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_same_pod_does_not_wait_for_itself() {
    let server = Server::new();
    let mut a = Candidate::start(&server, "pod-1", wall);
    a.gained_within(SECOND).await;
    a.task.abort();
    let mut again = Candidate::start(&server, "pod-1", wall);
    again.gained_within(SECOND).await;
    assert_eq!(server.spec()["leaseTransitions"], 0);
    assert_eq!(identity(Some("pod-1")), "pod-1");
    assert_ne!(identity(None), identity(None));
    assert!(identity(Some("")).starts_with("backup-operator_"));
}

#[tokio::test(start_paused = true)]
async fn never_two_leaders_whatever_the_weather() {
    // A fixed walk through all weathers for three candidates; at every tick at most one leads.
    let server = Server::new();
    let paths = [server.path(), server.path(), server.path()];
    let mut all: Vec<Candidate> = ["a", "b", "c"]
        .iter()
        .zip(&paths)
        .map(|(name, path)| Candidate::start(path, name, wall))
        .collect();
    let kinds = [
        Weather::Fair,
        Weather::Fair,
        Weather::Broken,
        Weather::Silent,
        Weather::Mute,
    ];
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut led = [0u32; 3];
    for _ in 0..20_000 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        if seed.is_multiple_of(40) {
            let (who, what) = ((seed >> 8) % 3, (seed >> 16) % 5);
            paths[who as usize].set(kinds[what as usize]);
        }
        sleep(Duration::from_millis(50 + (seed >> 24) % 300)).await;
        let leaders: Vec<usize> = (0..3).filter(|i| all[*i].leads()).collect();
        assert!(leaders.len() <= 1, "{leaders:?}");
        for i in leaders {
            led[i] += 1;
        }
    }
    assert!(
        led.iter().all(|ticks| *ticks > 1_000),
        "each led for a time: {led:?}"
    );
    for candidate in &mut all {
        candidate.task.abort();
    }
}

#[tokio::test]
async fn without_election_a_process_always_leads() {
    let always = Leadership::always(frozen());
    assert!(always.is_leader_now());
    always.gained().await;
    assert!(
        timeout(Duration::from_millis(5), always.lost())
            .await
            .is_err()
    );
}
