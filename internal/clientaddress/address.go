// Package clientaddress finds the client's address of a request, for limits by address.
package clientaddress

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/live"
)

// Proxies are the networks of proxies whose X-Forwarded-For is trusted. A nil *Proxies has none.
type Proxies struct{ networks live.Value[[]netip.Prefix] }

// NewProxies returns Proxies of these networks.
func NewProxies(networks ...netip.Prefix) *Proxies {
	p := &Proxies{}
	p.Set(networks)
	return p
}

// Set replaces the networks, while requests are served.
func (p *Proxies) Set(networks []netip.Prefix) { p.networks.Set(networks) }

// Networks returns the networks that are trusted now.
func (p *Proxies) Networks() []netip.Prefix {
	if p == nil {
		return nil
	}
	return p.networks.Get()
}

// Trust reports whether an address is one of the proxies.
func (p *Proxies) Trust(address netip.Addr) bool { return trust(p.Networks(), address) }

// Of is the client's address of a request: behind trusted proxies, the last hop in X-Forwarded-For that is not one of them. A client
// may have invented the hops before it. For IPv6 it is the network, because one host can use any number of addresses. See
// B168.
func (p *Proxies) Of(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	networks := p.Networks()
	if len(networks) == 0 && strings.IndexByte(host, ':') < 0 {
		return host // IPv4, as it is in most requests
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	hops := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
	for trust(networks, address) {
		at := strings.LastIndexByte(hops, ',')
		next, err := parseHop(strings.TrimSpace(hops[at+1:]))
		if err != nil {
			break // the proxy that wrote it is the last known hop
		}
		if address = next; at < 0 {
			break
		}
		hops = hops[:at]
	}
	return network(address)
}

// trust ignores the zone of an address, because networks have none.
func trust(networks []netip.Prefix, address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
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
