//! From a target to a connection: the verdict, the addresses, the check of each, the connection
//! to the very address that was checked.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::addresses::AddressKind;
use super::judge::{Judge, Verdict};
use super::resolve::Resolve;
use super::target::{Host, Target};

/// How many addresses of one name are tried.
const MAX_ADDRESSES: usize = 8;
/// How long one address may take while another is left to try.
const PER_ADDRESS: Duration = Duration::from_secs(4);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoConnection {
    /// The wall stopped it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0} could not be looked up: {1}.")]
    Unresolved(Target, io::Error),
    #[error("{0} could not be reached: {1}.")]
    Unreachable(Target, io::Error),
    #[error("{0} did not answer in time.")]
    TimedOut(Target),
}

/// What the wall stopped, in a sentence that says how to allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error(
        "Ward stopped the connection to {0}: it is not among the hosts that may be reached from here. To allow it: --net {0}"
    )]
    NotListed(Target),
    #[error("Ward stopped the connection to {0}: {1}.")]
    Denied(Target, String),
    #[error(
        "Ward stopped the connection to {target}: the name leads to {address}, {kind}. To allow it, name the address as well: --net {target},{address}",
        kind = kind.as_words()
    )]
    NotPublic {
        target: Target,
        address: Target,
        kind: AddressKind,
    },
    #[error(
        "Ward stopped the connection to {target}: the name leads to {address}, {kind}, and that is never let through",
        kind = kind.as_words()
    )]
    NoHost {
        target: Target,
        address: IpAddr,
        kind: AddressKind,
    },
    #[error(
        "Ward stopped the connection to {target}: the name leads to {address}, this very machine. To allow it, name the address as well: --net {target},{address}"
    )]
    ThisMachine { target: Target, address: Target },
}

impl Refusal {
    /// What was asked for.
    pub(super) fn target(&self) -> &Target {
        match self {
            Self::NotListed(target)
            | Self::Denied(target, _)
            | Self::NotPublic { target, .. }
            | Self::NoHost { target, .. }
            | Self::ThisMachine { target, .. } => target,
        }
    }
}

/// Connects to `target` if it may be reached.
///
/// A name is judged before it is looked up, so that a refused one says nothing to any name server.
pub(super) async fn reach(
    target: &Target,
    judge: &dyn Judge,
    resolver: &dyn Resolve,
    deadline: Duration,
) -> Result<TcpStream, NoConnection> {
    match judge.judge(target).await {
        Verdict::Allowed => {}
        Verdict::NotListed => return Err(Refusal::NotListed(target.clone()).into()),
        Verdict::Denied(why) => return Err(Refusal::Denied(target.clone(), why).into()),
    }
    let name = match &target.host {
        // Judged as the address that it is: nothing is left to check.
        Host::Ip(address) => {
            return connect(target, &[*address], deadline).await;
        }
        Host::Name(name) => name,
    };
    let addresses = match timeout(deadline, resolver.resolve(name)).await {
        Ok(Ok(addresses)) if addresses.is_empty() => {
            let why = io::Error::other("the name has no address");
            return Err(NoConnection::Unresolved(target.clone(), why));
        }
        Ok(Ok(addresses)) => addresses,
        Ok(Err(why)) => return Err(NoConnection::Unresolved(target.clone(), why)),
        Err(_) => return Err(NoConnection::TimedOut(target.clone())),
    };
    let addresses = &addresses[..addresses.len().min(MAX_ADDRESSES)];
    let checked = reachable(target, name.is_localhost(), addresses, judge).await?;
    let stream = connect(target, &checked, deadline).await?;
    refuse_this_machine(target, &stream, judge).await?;
    Ok(stream)
}

/// Those of a name's addresses that a connection may go to: the public ones, else such as were
/// themselves allowed.
async fn reachable(
    target: &Target,
    is_localhost: bool,
    addresses: &[IpAddr],
    judge: &dyn Judge,
) -> Result<Vec<IpAddr>, Refusal> {
    let open = |address: &IpAddr| match AddressKind::of(*address) {
        AddressKind::Public => true,
        AddressKind::Loopback => is_localhost,
        AddressKind::Private
        | AddressKind::LinkLocal
        | AddressKind::Shared
        | AddressKind::Tunnelled
        | AddressKind::Reserved
        | AddressKind::Multicast
        | AddressKind::Unspecified
        | AddressKind::Mapped => false,
    };
    let mut checked: Vec<IpAddr> = addresses.iter().copied().filter(open).collect();
    if !checked.is_empty() {
        return Ok(checked);
    }
    let mut refusal = Refusal::NotListed(target.clone());
    for &address in addresses {
        let kind = AddressKind::of(address);
        let Ok(host) = Host::from_address(address) else {
            refusal = Refusal::NoHost {
                target: target.clone(),
                address,
                kind,
            };
            continue;
        };
        let at = Target {
            host,
            port: target.port,
        };
        match judge.judge(&at).await {
            Verdict::Allowed => checked.push(address),
            Verdict::NotListed => {
                refusal = Refusal::NotPublic {
                    target: target.clone(),
                    address: at,
                    kind,
                };
            }
            Verdict::Denied(why) => refusal = Refusal::Denied(target.clone(), why),
        }
    }
    if checked.is_empty() {
        return Err(refusal);
    }
    Ok(checked)
}

/// A public address may be one of this machine's own, and then leads past its walls as loopback
/// does. The kernel says so: it picks the same address for both ends.
async fn refuse_this_machine(
    target: &Target,
    stream: &TcpStream,
    judge: &dyn Judge,
) -> Result<(), NoConnection> {
    let ends = stream
        .local_addr()
        .and_then(|local| Ok((local, stream.peer_addr()?)));
    let (local, peer) = ends.map_err(|why| NoConnection::Unreachable(target.clone(), why))?;
    if local.ip() != peer.ip() || AddressKind::of(peer.ip()) != AddressKind::Public {
        return Ok(());
    }
    let address = Target {
        host: Host::Ip(peer.ip()),
        port: peer.port(),
    };
    match judge.judge(&address).await {
        Verdict::Allowed => Ok(()),
        Verdict::Denied(why) => Err(Refusal::Denied(target.clone(), why).into()),
        Verdict::NotListed => Err(Refusal::ThisMachine {
            target: target.clone(),
            address,
        }
        .into()),
    }
}

async fn connect(
    target: &Target,
    addresses: &[IpAddr],
    deadline: Duration,
) -> Result<TcpStream, NoConnection> {
    let one_by_one = async {
        let mut failure = NoConnection::TimedOut(target.clone());
        for (at, address) in addresses.iter().enumerate() {
            let patience = if at + 1 < addresses.len() {
                PER_ADDRESS
            } else {
                deadline
            };
            let address = SocketAddr::new(*address, target.port);
            match timeout(patience, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(why)) => failure = NoConnection::Unreachable(target.clone(), why),
                Err(_) => failure = NoConnection::TimedOut(target.clone()),
            }
        }
        Err(failure)
    };
    match timeout(deadline, one_by_one).await {
        Ok(result) => result,
        Err(_) => Err(NoConnection::TimedOut(target.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::HostList;

    /// The addresses that a connection to `target` may go to, of those that its name leads to.
    fn open(target: &str, list: &str, addresses: &[&str]) -> Option<Vec<String>> {
        let target = Target::parse(target, None).unwrap();
        let list = HostList::parse(list).unwrap();
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let localhost = matches!(&target.host, Host::Name(name) if name.is_localhost());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let open = runtime.block_on(reachable(&target, localhost, &addresses, &list));
        Some(open.ok()?.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn only_public_addresses_are_tried_where_a_name_has_any() {
        let addresses = ["127.0.0.1", "1.1.1.1", "10.0.0.1", "2606:4700::1", "::1"];
        let public = Some(vec!["1.1.1.1".to_owned(), "2606:4700::1".to_owned()]);
        assert_eq!(open("a.test:443", "a.test", &addresses), public);
        assert_eq!(open("a.test:443", "a.test, 10.0.0.1", &addresses), public);
    }

    #[test]
    fn other_addresses_are_tried_only_where_they_are_named_with_that_port() {
        let addresses = ["10.0.0.1", "10.0.0.2", "0.0.0.0", "::ffff:10.0.0.1"];
        let named = Some(vec!["10.0.0.2".to_owned()]);
        assert_eq!(open("a.test:443", "a.test, 10.0.0.2", &addresses), named);
        assert_eq!(open("a.test:443", "a.test, 10.0.0.2:22", &addresses), None);
        assert_eq!(open("a.test:443", "a.test", &addresses), None);
    }

    #[test]
    fn localhost_leads_to_loopback_and_no_further() {
        let named = "localhost, *.localhost";
        let loopback = Some(vec!["::1".to_owned(), "127.0.0.1".to_owned()]);
        let addresses = ["::1", "10.0.0.1", "127.0.0.1"];
        assert_eq!(open("localhost:80", named, &addresses), loopback);
        assert_eq!(open("dev.localhost:80", named, &addresses), loopback);
        assert_eq!(open("localhost:80", named, &["10.0.0.1"]), None);
        assert_eq!(
            open("localhost.test:80", "localhost.test", &addresses),
            None
        );
    }
}
