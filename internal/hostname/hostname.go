// Package hostname classifies the host of a URL or of a listening address by its text, without a lookup, and parses networks of settings.
package hostname

import "net/netip"

// IsLoopback reports whether a host is localhost or a loopback address, which only this machine reaches. An empty host is not one.
func IsLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// IsUnspecified reports whether a host in a listening address means all addresses of the machine: it is empty, 0.0.0.0 or ::.
func IsUnspecified(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "" || err == nil && address.Unmap().IsUnspecified()
}

// Network parses a network or a single address. IPv4 may be in the form of IPv6, such as ::ffff:10.0.0.0/104: it becomes an IPv4 network, because
// addresses of clients and servers are compared without that form.
func Network(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if mapped := 128 - 32; p.Addr().Is4In6() && p.Bits() >= mapped {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped)
	}
	return p.Masked(), err
}
