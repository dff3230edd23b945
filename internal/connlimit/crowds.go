package connlimit

import (
	"container/list"
	"net/netip"
)

// host is one IPv4 address or one IPv6 /64, the smallest network that a host with IPv6 gets.
type host struct {
	key      netip.Prefix
	network  *network
	total    int
	unproven list.List // *Conn, in order of arrival
}

// network is one IPv4 address or one IPv6 /56, the usual network of a site.
type network struct {
	key             netip.Prefix
	hosts           []*host // 256 at most
	total, unproven int
	place           *list.Element // in crowds; nil without unproven connections
}

// keysOf returns the prefixes by which connections of an address are counted.
func keysOf(a netip.Addr) (network, host netip.Prefix) {
	a = a.Unmap().WithZone("")
	if a.Is4() || !a.IsValid() {
		whole := netip.PrefixFrom(a, a.BitLen())
		return whole, whole
	}
	network, _ = a.Prefix(56)
	host, _ = a.Prefix(64)
	return network, host
}

func (n *network) host(key netip.Prefix) *host {
	for _, h := range n.hosts {
		if h.key == key {
			return h
		}
	}
	h := &host{key: key, network: n}
	n.hosts = append(n.hosts, h)
	return h
}

func (n *network) forget(h *host) {
	for i, x := range n.hosts {
		if x == h {
			n.hosts[i] = n.hosts[len(n.hosts)-1]
			n.hosts = n.hosts[:len(n.hosts)-1]
			return
		}
	}
}

// crowdedHost is the host with the most unproven connections.
func (n *network) crowdedHost() *host {
	var most *host
	for _, h := range n.hosts {
		if most == nil || h.unproven.Len() > most.unproven.Len() {
			most = h
		}
	}
	return most
}

// crowds orders networks by their unproven connections, so that the largest crowd is found in constant time. Sizes change by one.
type crowds struct {
	bySize  []*list.List // *network
	largest int
}

func (c *crowds) resize(n *network, by int) {
	if n.place != nil {
		c.bySize[n.unproven].Remove(n.place)
		n.place = nil
	}
	n.unproven += by
	for len(c.bySize) <= n.unproven {
		c.bySize = append(c.bySize, list.New())
	}
	if n.unproven > 0 {
		n.place = c.bySize[n.unproven].PushBack(n)
	}
	c.largest = max(c.largest, n.unproven)
	for c.largest > 0 && c.bySize[c.largest].Len() == 0 {
		c.largest--
	}
}

// most is the network with the most unproven connections, nil when there are none.
func (c *crowds) most() *network {
	if c.largest == 0 {
		return nil
	}
	return c.bySize[c.largest].Front().Value.(*network)
}
