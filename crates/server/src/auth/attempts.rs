//! Wrong guesses: who makes too many is not even told that they are wrong.
//!
//! What is right is never held up by it, or anybody on this machine could lock its owner out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many wrong guesses are answered, and in what time.
const MAX_WRONG: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// How many addresses are remembered; beyond, the one that began first is forgotten.
const MAX_PEERS: usize = 1024;

/// From where a guess came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    /// From an address; of a network of IPv6, all are one.
    Address(IpAddr),
    /// From this machine, over Ward's socket or from Ward itself.
    Local,
}

impl Peer {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self::Address(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => v4.into(),
                None => {
                    let [a, b, c, d, ..] = v6.segments();
                    IpAddr::from([a, b, c, d, 0, 0, 0, 0])
                }
            },
        })
    }
}

/// The wrong guesses of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<Peer, Wrong>>);

#[derive(Debug, Clone, Copy)]
struct Wrong {
    since: Instant,
    count: u32,
}

impl Attempts {
    /// Counts a wrong guess. Where there were too many, it answers how long to wait.
    pub(crate) fn wrong(&self, peer: Peer, now: Instant) -> Result<(), Duration> {
        let mut peers = self.peers();
        if peers.len() >= MAX_PEERS && !peers.contains_key(&peer) {
            peers.retain(|_, wrong| now.duration_since(wrong.since) < WINDOW);
            let oldest = peers.iter().min_by_key(|(_, wrong)| wrong.since);
            if let Some((oldest, _)) = oldest
                && peers.len() >= MAX_PEERS
            {
                let oldest = *oldest;
                peers.remove(&oldest);
            }
        }
        let fresh = Wrong {
            since: now,
            count: 0,
        };
        let wrong = peers.entry(peer).or_insert(fresh);
        let passed = now.duration_since(wrong.since);
        if passed >= WINDOW {
            *wrong = fresh;
        }
        if wrong.count >= MAX_WRONG {
            return Err(WINDOW.saturating_sub(passed));
        }
        wrong.count += 1;
        Ok(())
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<Peer, Wrong>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_guesses_a_minute_are_answered_from_each_address() {
        let attempts = Attempts::default();
        let (start, one, other) = (
            Instant::now(),
            Peer::of([127, 0, 0, 1].into()),
            Peer::of([127, 0, 0, 2].into()),
        );
        for _ in 0..10 {
            assert_eq!(attempts.wrong(one, start), Ok(()));
        }
        let later = start + Duration::from_secs(20);
        assert_eq!(attempts.wrong(one, later), Err(Duration::from_secs(40)));
        assert_eq!(attempts.wrong(other, later), Ok(()));
        assert_eq!(attempts.wrong(one, start + WINDOW), Ok(()));
    }

    #[test]
    fn only_so_many_addresses_are_remembered() {
        let attempts = Attempts::default();
        let now = Instant::now();
        for number in 0..5000_u32 {
            let _ = attempts.wrong(Peer::of(std::net::Ipv4Addr::from(number).into()), now);
        }
        assert_eq!(attempts.peers().len(), MAX_PEERS);
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let of = |text: &str| Peer::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
