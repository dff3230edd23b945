package playerapi

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress is where a request comes from, as far as it can be believed: behind proxies that are trusted, it is the last
// hop in X-Forwarded-For that is none of them. What stands before it a client may have made up. Of IPv6 it is the network: a
// host has as many addresses as it likes. See B168.
func (d *Door) clientAddress(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !d.config.Transport.Trusts(address) {
			break
		}
		next, err := parseHop(strings.TrimSpace(hop))
		if err != nil {
			break // the proxy that wrote it is the last one that is known
		}
		address = next
	}
	return network(address)
}

// parseHop reads an address; some proxies add the port.
func parseHop(text string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr(), nil
	}
	return netip.ParseAddr(strings.Trim(text, "[]"))
}

// networkBits is the least that somebody with IPv6 is given.
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
