//! Connections of the operator's ports, bounded whoever calls: how many there are in all and of one
//! peer, how long a handshake, a head and a request may take. Where there are too many, the oldest one
//! that does nothing makes room for a new one, so that half-open connections keep nobody out.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

/// Bytes of a request's head; none that is meant for us has more.
const HEAD_BYTES: usize = 32 * 1024;
/// Time for requests under way when the process stops.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// What a port puts up with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections in all.
    pub(crate) connections: usize,
    /// Connections of one address.
    pub(crate) of_a_peer: usize,
    /// Time for a TLS handshake.
    pub(crate) handshake: Duration,
    /// Time for the head of a request; an idle connection is closed after it.
    pub(crate) head: Duration,
    /// Time for a whole request, its body and its answer's beginning.
    pub(crate) request: Duration,
    /// Time for the answer to be taken.
    pub(crate) answer: Duration,
}

/// Accepts connections until `stop`, then ends those there are.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    routes: Router,
    limits: Limits,
    stop: CancellationToken,
) {
    let guests = Guests::new(limits);
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of files, or a peer that went away: neither may spin nor end the server.
                debug!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(guest) = guests.admit(peer.ip()) else {
            debug!(%peer, "too many connections are at work; a new one was refused");
            continue;
        };
        let (tls, routes, stop) = (tls.clone(), routes.clone(), stop.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = guest.evicted.cancelled() => debug!(%peer, "an idle connection made room for another"),
                () = connection(stream, peer, tls, routes, limits, &guest, stop) => {}
            }
        });
    }
    tasks.close();
    // What is not done by then is cut off with the process.
    let _ = timeout(DRAIN, tasks.wait()).await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    routes: Router,
    limits: Limits,
    guest: &Guest,
    stop: CancellationToken,
) {
    let Some(tls) = tls else {
        guest.set(State::Idle);
        return requests(stream, peer, routes, limits, guest, stop).await;
    };
    match timeout(limits.handshake, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            guest.set(State::Idle);
            requests(stream, peer, routes, limits, guest, stop).await;
        }
        Ok(Err(error)) => debug!(%peer, %error, "TLS handshake failed"),
        Err(_) => {
            let error = io::Error::from(io::ErrorKind::TimedOut);
            debug!(%peer, %error, "TLS handshake failed");
        }
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    routes: Router,
    limits: Limits,
    guest: &Guest,
    stop: CancellationToken,
) {
    let work = guest.work.clone();
    let routes = routes.layer(middleware::from_fn(move |request: Request, next: Next| {
        let work = work.clone();
        async move {
            let _working = work.begin(limits.answer);
            match timeout(limits.request, next.run(request)).await {
                Ok(response) => response,
                Err(_) => StatusCode::REQUEST_TIMEOUT.into_response() as Response,
            }
        }
    }));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = guest.work.overdue() => {
            debug!(%peer, "an answer was not taken in time");
            return;
        }
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%peer, %error, "connection ended");
    }
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// It has not said anything yet.
    Handshake,
    /// It waits for a request's head.
    Idle,
    /// A request is being answered.
    Working,
}

#[derive(Debug)]
struct Seat {
    peer: IpAddr,
    state: State,
    evicted: CancellationToken,
}

/// Who is connected. Seats are numbered in the order of their coming.
#[derive(Clone, Debug)]
struct Guests {
    seats: Arc<Mutex<Seats>>,
    limits: Limits,
}

#[derive(Debug, Default)]
struct Seats {
    next: u64,
    taken: HashMap<u64, Seat>,
}

/// One connection; its seat is free when it is dropped.
#[derive(Debug)]
struct Guest {
    seats: Arc<Mutex<Seats>>,
    number: u64,
    evicted: CancellationToken,
    work: Work,
}

fn lock(seats: &Mutex<Seats>) -> MutexGuard<'_, Seats> {
    seats.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guests {
    fn new(limits: Limits) -> Self {
        Self {
            seats: Arc::default(),
            limits,
        }
    }

    /// A seat for a connection of `peer`. Where there is none, the oldest one that does nothing loses
    /// its own: of the same peer if that has too many, else of the peer that has most. `None`: all
    /// are at work.
    fn admit(&self, peer: IpAddr) -> Option<Guest> {
        let mut seats = lock(&self.seats);
        let mut of = HashMap::<IpAddr, usize>::new();
        for seat in seats.taken.values() {
            *of.entry(seat.peer).or_default() += 1;
        }
        let own = of.get(&peer).copied().unwrap_or_default();
        let crowd = if own >= self.limits.of_a_peer {
            Some(peer)
        } else if seats.taken.len() >= self.limits.connections {
            of.into_iter().max_by_key(|(_, n)| *n).map(|(peer, _)| peer)
        } else {
            None
        };
        if let Some(crowd) = crowd {
            let idle = seats
                .taken
                .iter()
                .filter(|(_, s)| s.peer == crowd && s.state != State::Working);
            let (_, number) = idle.map(|(number, s)| (s.state, *number)).min()?;
            if let Some(seat) = seats.taken.remove(&number) {
                seat.evicted.cancel();
            }
        }
        let number = seats.next;
        seats.next += 1;
        let evicted = CancellationToken::new();
        seats.taken.insert(
            number,
            Seat {
                peer,
                state: State::Handshake,
                evicted: evicted.clone(),
            },
        );
        let seats = self.seats.clone();
        Some(Guest {
            work: Work {
                seats: seats.clone(),
                number,
                until: Arc::default(),
                changed: Arc::default(),
            },
            seats,
            number,
            evicted,
        })
    }

    #[cfg(test)]
    fn taken(&self) -> usize {
        lock(&self.seats).taken.len()
    }
}

impl Guest {
    fn set(&self, state: State) {
        if let Some(seat) = lock(&self.seats).taken.get_mut(&self.number) {
            seat.state = state;
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        lock(&self.seats).taken.remove(&self.number);
    }
}

/// The requests of one connection, as they begin and end.
#[derive(Clone, Debug)]
struct Work {
    seats: Arc<Mutex<Seats>>,
    number: u64,
    until: Arc<Mutex<Option<tokio::time::Instant>>>,
    changed: Arc<tokio::sync::Notify>,
}

/// A request is being answered as long as this lives.
struct Working(Work);

impl Work {
    /// A request begins; its answer has to be taken within `answer`.
    fn begin(&self, answer: Duration) -> Working {
        self.set(State::Working);
        let until = tokio::time::Instant::now() + answer;
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        self.changed.notify_one();
        Working(self.clone())
    }

    fn set(&self, state: State) {
        if let Some(seat) = lock(&self.seats).taken.get_mut(&self.number) {
            seat.state = state;
        }
    }

    /// Waits until the time of the newest request's answer has run out. An idle connection has been
    /// closed by then: the time for a head is shorter.
    async fn overdue(&self) {
        loop {
            let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = self.changed.notified();
            match until {
                None => changed.await,
                Some(until) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(until) => return,
                },
            }
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        // Its answer may still be on its way: a connection that does not take it is idle.
        self.0.set(State::Idle);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    const LIMITS: Limits = Limits {
        connections: 6,
        of_a_peer: 4,
        handshake: Duration::from_secs(1),
        head: Duration::from_secs(1),
        request: Duration::from_secs(1),
        answer: Duration::from_secs(1),
    };

    fn peer(n: u8) -> IpAddr {
        [127, 0, 0, n].into()
    }

    #[test]
    fn o5_the_oldest_that_does_nothing_makes_room() {
        let guests = Guests::new(LIMITS);
        let mut old: Vec<Guest> = (0..4).map(|_| guests.admit(peer(1)).unwrap()).collect();
        old[0].set(State::Working);
        old[1].set(State::Idle);
        // Of its own: first one in its handshake, then an idle one, never one at work.
        let fifth = guests.admit(peer(1)).unwrap();
        assert!(old[2].evicted.is_cancelled() && !old[3].evicted.is_cancelled());
        fifth.set(State::Working);
        old[3].set(State::Working);
        let sixth = guests.admit(peer(1)).unwrap();
        assert!(old[1].evicted.is_cancelled());
        sixth.set(State::Working);
        assert!(guests.admit(peer(1)).is_none());
        // Others are not held up, and when all is full the largest crowd makes room.
        let others = [
            guests.admit(peer(2)).unwrap(),
            guests.admit(peer(3)).unwrap(),
        ];
        assert_eq!(guests.taken(), 6);
        assert!(guests.admit(peer(4)).is_none());
        sixth.set(State::Idle);
        let newest = guests.admit(peer(4)).unwrap();
        assert!(sixth.evicted.is_cancelled());
        assert!(others.iter().all(|g| !g.evicted.is_cancelled()));
        old.clear();
        drop((fifth, sixth, others));
        assert_eq!(guests.taken(), 1);
        drop(newest);
        assert_eq!(guests.taken(), 0);
    }
}
