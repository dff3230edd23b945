// Package clientaddress finds the client's address of a request, for limits by address.
package clientaddress

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of proxies whose X-Forwarded-For is trusted.
type Proxies []netip.Prefix

// Of is the client's address of a request: behind trusted proxies, the last hop in X-Forwarded-For that is not one of them. A client
// may have invented the hops before it. For IPv6 it is the network, because one host can use any number of addresses. See
// B168.
func (p Proxies) Of(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	if len(p) == 0 && strings.IndexByte(host, ':') < 0 {
		return host // IPv4, as it is in most requests
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !p.trust(address) {
			break
		}
		next, err := parseHop(strings.TrimSpace(hop))
		if err != nil {
			break // the proxy that wrote it is the last known hop
		}
		address = next
	}
	return network(address)
}

func (p Proxies) trust(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(address.Unmap()) })
}

// parseHop reads an address; some proxies add the port.
func parseHop(text string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr(), nil
	}
	return netip.ParseAddr(strings.Trim(text, "[]"))
}

// networkBits is the size of the smallest network that a host with IPv6 gets.
const networkBits = 64

func network(address netip.Addr) string {
	address = address.Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	prefix, err := address.Prefix(networkBits)
	if err != nil {
		return address.String()
	}
	return prefix.String()
}
