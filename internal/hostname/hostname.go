// Package hostname classifies the host of a URL or of a listening address by its text, without a lookup.
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
