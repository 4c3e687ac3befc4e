//! What kind of address an IP address is: the public internet, or something near this machine.
//!
//! A name that was let through must not become a way to this machine or its neighbours, so only
//! what is known to be public counts as public; all else has a word of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// A host on the public internet.
    Public,
    /// This machine.
    Loopback,
    /// A network of one's own (RFC 1918, and IPv6 unique local).
    Private,
    /// The wire this machine is on; also where clouds keep their metadata.
    LinkLocal,
    /// The provider's side of a shared address (RFC 6598).
    Shared,
    /// An IPv6 address that stands for an IPv4 address behind a translator or a tunnel: NAT64,
    /// 6to4, Teredo.
    Tunnelled,
    /// Set apart for documentation, measurements or later use.
    Reserved,
    /// Many hosts at once.
    Multicast,
    /// No host in particular; Linux takes it for this machine.
    Unspecified,
    /// An IPv4 address written as an IPv6 one.
    Mapped,
}

impl AddressKind {
    /// The kind of `address`.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => of_v4(v4),
            IpAddr::V6(v6) => of_v6(v6),
        }
    }

    /// Whether such an address is that of one host, so that it makes sense to name it.
    #[must_use]
    pub fn is_one_host(self) -> bool {
        match self {
            Self::Public
            | Self::Loopback
            | Self::Private
            | Self::LinkLocal
            | Self::Shared
            | Self::Tunnelled
            | Self::Reserved => true,
            Self::Multicast | Self::Unspecified | Self::Mapped => false,
        }
    }

    /// It in words, as in "leads to 10.0.0.1, *a private address*".
    #[must_use]
    pub fn as_words(self) -> &'static str {
        match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Shared => "a shared address of the provider",
            Self::Tunnelled => "an IPv4 address behind a tunnel",
            Self::Reserved => "a reserved address",
            Self::Multicast => "a multicast or broadcast address",
            Self::Unspecified => "the address of no host",
            Self::Mapped => "an IPv4 address in the clothes of an IPv6 one",
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressKind {
    match address.octets() {
        [0, ..] => AddressKind::Unspecified,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [100, 64..=127, ..] => AddressKind::Shared,
        [127, ..] => AddressKind::Loopback,
        [169, 254, ..] => AddressKind::LinkLocal,
        [192, 88, 99, _] => AddressKind::Tunnelled,
        [192, 0, 0 | 2, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            AddressKind::Reserved
        }
        [224..=239, ..] | [255, 255, 255, 255] => AddressKind::Multicast,
        [240..=255, ..] => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressKind {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // Compatible (::a.b.c.d), mapped (::ffff:a.b.c.d) and translated (::ffff:0:a.b.c.d).
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => AddressKind::Mapped,
        [0x64, 0xff9b, ..] | [0x2002, ..] | [0x2001, 0, ..] => AddressKind::Tunnelled,
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        // Site-local (fec0::/10) is its deprecated kin, and some networks still route it.
        [0xfe80..=0xfeff, ..] => AddressKind::LinkLocal,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        [0x2001, 0x0001..=0x01ff | 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => AddressKind::Reserved,
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_the_kind_that_the_registries_give_it() {
        let table = [
            ("1.1.1.1", AddressKind::Public),
            ("172.15.255.255", AddressKind::Public),
            ("172.32.0.1", AddressKind::Public),
            ("100.63.255.255", AddressKind::Public),
            ("100.128.0.1", AddressKind::Public),
            ("192.0.1.1", AddressKind::Public),
            ("223.255.255.255", AddressKind::Public),
            ("0.0.0.0", AddressKind::Unspecified),
            ("0.1.2.3", AddressKind::Unspecified),
            ("10.0.0.1", AddressKind::Private),
            ("172.16.0.1", AddressKind::Private),
            ("172.31.255.255", AddressKind::Private),
            ("192.168.1.1", AddressKind::Private),
            ("100.64.0.1", AddressKind::Shared),
            ("100.127.255.255", AddressKind::Shared),
            ("127.0.0.1", AddressKind::Loopback),
            ("127.255.255.254", AddressKind::Loopback),
            ("169.254.169.254", AddressKind::LinkLocal),
            ("192.0.0.8", AddressKind::Reserved),
            ("192.0.2.1", AddressKind::Reserved),
            ("192.88.99.1", AddressKind::Tunnelled),
            ("198.18.0.1", AddressKind::Reserved),
            ("198.19.255.255", AddressKind::Reserved),
            ("198.51.100.7", AddressKind::Reserved),
            ("203.0.113.7", AddressKind::Reserved),
            ("224.0.0.1", AddressKind::Multicast),
            ("239.255.255.255", AddressKind::Multicast),
            ("240.0.0.1", AddressKind::Reserved),
            ("255.255.255.255", AddressKind::Multicast),
            ("2606:4700:4700::1111", AddressKind::Public),
            ("2a00:1450::1", AddressKind::Public),
            ("2001:200::1", AddressKind::Public),
            ("::", AddressKind::Unspecified),
            ("::1", AddressKind::Loopback),
            ("::127.0.0.1", AddressKind::Mapped),
            ("::ffff:127.0.0.1", AddressKind::Mapped),
            ("::ffff:8.8.8.8", AddressKind::Mapped),
            ("::ffff:0:127.0.0.1", AddressKind::Mapped),
            ("64:ff9b::7f00:1", AddressKind::Tunnelled),
            ("64:ff9b:1::a00:1", AddressKind::Tunnelled),
            ("2002:7f00:1::", AddressKind::Tunnelled),
            ("2001:0:4136:e378::1", AddressKind::Tunnelled),
            ("2001:db8::1", AddressKind::Reserved),
            ("2001:10::1", AddressKind::Reserved),
            ("3fff::1", AddressKind::Reserved),
            ("100::1", AddressKind::Reserved),
            ("5f00::1", AddressKind::Reserved),
            ("4000::1", AddressKind::Reserved),
            ("fc00::1", AddressKind::Private),
            ("fd00:ec2::254", AddressKind::Private),
            ("fe80::1", AddressKind::LinkLocal),
            ("fec0::1", AddressKind::LinkLocal),
            ("ff02::1", AddressKind::Multicast),
        ];
        for (text, kind) in table {
            assert_eq!(AddressKind::of(text.parse().unwrap()), kind, "{text}");
        }
    }
}
