package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/hostname"
)

// Targets are the allowed targets of messages whose URL was named by a caller and not by the operator. The zero value allows every host, at
// addresses of the public Internet only.
type Targets struct {
	names    []string       // in lower case; "*.example.com" is any name below example.com, "*" any name
	networks []netip.Prefix // allowed although their addresses are not public, with any name
	Loopback bool           // this machine, too: in development mode
}

// ParseTargets reads an allow-list, separated by spaces: host names, patterns such as *.example.com and *, addresses and networks.
// An empty text is the zero value. Otherwise a target must have a name of the list and a public address, or an address in one of
// the networks.
func ParseTargets(text string) (t Targets, err error) {
	var errs []error
	for _, word := range strings.Fields(strings.ToLower(text)) {
		if network, err := hostname.Network(word); err == nil {
			t.networks = append(t.networks, network)
		} else if name := strings.TrimPrefix(word, "*."); word == "*" || name != "" && !strings.ContainsAny(name, "*/:@?#[]") {
			t.names = append(t.names, word)
		} else {
			errs = append(errs, fmt.Errorf("%q: want a host name, a pattern such as *.example.com, an address, or a network such as 10.1.0.0/16", word))
		}
	}
	return t, errors.Join(errs...)
}

// ErrNotAllowed is the reason why a message was not sent.
var ErrNotAllowed = errors.New("the target is not allowed for webhooks; see --webhook-allow")

// CheckURL is the function CheckURL for a URL that a caller names. It refuses wrong URLs without using the network, since an answer that
// depended on a name's address, or on a listening program, would make this service a scanner of its own network. The address is
// checked with each connection.
func (t *Targets) CheckURL(text string) error {
	if err := CheckURL(text); err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	address, err := netip.ParseAddr(host)
	switch {
	case err == nil && t.allows(host, address):
		return nil
	case err != nil && (host == "localhost" || strings.HasSuffix(host, ".localhost")):
		if t.allows(host, netip.AddrFrom4([4]byte{127, 0, 0, 1})) || t.allows(host, netip.IPv6Loopback()) {
			return nil
		}
	case err != nil && (t.named(host) || len(t.networks) > 0):
		return nil
	}
	return ErrNotAllowed
}

// NewTargetsClient makes a client as NewClient does, whose every connection goes to an address that is allowed at that time. It checks the address that it
// connects to, after the name is resolved, so a name that resolves to something else the second time gains nothing. It uses no proxy
// of the environment, because the proxy would choose the address.
func NewTargetsClient(now func() Targets, connections int) *http.Client {
	client := NewClient(connections)
	transport := client.Transport.(*http.Transport)
	transport.Proxy = nil
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: func(_, resolved string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(resolved)
			t := now()
			if err != nil || !t.allows(host, to.Addr()) {
				return fmt.Errorf("%s: %w", resolved, ErrNotAllowed)
			}
			return nil
		}}
		return dialer.DialContext(ctx, network, address)
	}
	return client
}

// allows decides about an address that a host has.
func (t *Targets) allows(host string, address netip.Addr) bool {
	plain := address.Unmap().WithZone("")
	if slices.ContainsFunc(t.networks, func(n netip.Prefix) bool { return n.Contains(plain) }) || t.Loopback && plain.IsLoopback() {
		return true
	}
	return t.named(strings.ToLower(strings.TrimSuffix(host, "."))) && public(address)
}

// named reports whether the list has the name. An empty list has all.
func (t *Targets) named(host string) bool {
	if len(t.names) == 0 && len(t.networks) == 0 {
		return true
	}
	return slices.ContainsFunc(t.names, func(name string) bool {
		below, pattern := strings.CutPrefix(name, "*")
		return pattern && strings.HasSuffix(host, below) || host == name
	})
}

// special are networks that are not of the public Internet, or are another way to write an address: IANA's registries of
// special-purpose addresses, RFC 6890. Metadata services of clouds are among the link-local, shared and unique local ones.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// unicast is the part of IPv6 that is assigned to the public Internet; the rest is refused, also if it is assigned later.
var unicast = netip.MustParsePrefix("2000::/3")

// nat64 addresses have an IPv4 address in their last four bytes: RFC 6052.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(all ...string) (list []netip.Prefix) {
	for _, text := range all {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// public reports whether an address is one of the public Internet.
func public(address netip.Addr) bool {
	if address = address.Unmap(); !address.IsValid() || address.Zone() != "" {
		return false
	}
	if nat64.Contains(address) {
		b := address.As16()
		address = netip.AddrFrom4([4]byte(b[12:]))
	}
	if address.Is6() && !unicast.Contains(address) {
		return false
	}
	return !slices.ContainsFunc(special, func(n netip.Prefix) bool { return n.Contains(address) })
}
