//! How a name becomes addresses: outside the room, once per connection.

use std::io;
use std::net::IpAddr;

use super::judge::Pending;
use super::target::HostName;

/// Looks names up. The proxy connects to the very addresses that it got and checked; nothing is
/// looked up a second time.
pub trait Resolve: Send + Sync {
    /// The addresses of `name`, in the order they are to be tried.
    fn resolve<'a>(&'a self, name: &'a HostName) -> Pending<'a, io::Result<Vec<IpAddr>>>;
}

/// Looks names up as this machine does.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a HostName) -> Pending<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
