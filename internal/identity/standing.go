package identity

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
)

// ErrElsewhere means that an access key, or temporary credentials of it, do not work from the client's address. Doors answer as if
// the key did not exist, because a thief must not learn that it works elsewhere.
var ErrElsewhere = errors.New("the access key does not work from this address")

// standing is shared by an access key and the temporary credentials issued to it: where and until when they work, and their last use.
type standing struct {
	id      string
	now     func() time.Time
	texts   []string // as in the state
	sources []netip.Prefix
	expires atomic.Int64 // in milliseconds of Unix time; 0: never
	used    atomic.Pointer[access.Use]
}

func newStanding(r *access.Key, now func() time.Time) *standing {
	s := &standing{id: r.ID, now: now, texts: r.Sources}
	for _, text := range r.Sources {
		if network, err := netip.ParsePrefix(text); err == nil { // an invalid network contains no address
			s.sources = append(s.sources, network)
		}
	}
	return s
}

// Sources returns the only networks from which the key works; none: it works from everywhere.
func (k AccessKey) Sources() []string {
	if k.standing == nil {
		return nil
	}
	return k.standing.texts
}

// expireAt sets when the key expires; 0: never.
func (k *AccessKey) expireAt(at domain.Time) {
	k.standing.expires.Store(int64(at))
	if k.Expires = (time.Time{}); at != 0 {
		k.Expires = at.Std()
	}
}

func (s *standing) expired(now func() time.Time) bool {
	if s == nil {
		return false
	}
	at := s.expires.Load()
	return at != 0 && now().UnixMilli() >= at
}

// check returns an error if the key does not work for a client at an address.
func (s *standing) check(from string) error {
	switch {
	case s == nil:
		return nil
	case s.expired(s.now):
		return ErrExpired
	case len(s.texts) > 0 && !s.contains(from):
		return ErrElsewhere
	}
	return nil
}

// contains reports whether a client's address is in one of the networks. An IPv6 client is identified by its /64 network.
func (s *standing) contains(from string) bool {
	text, _, _ := strings.Cut(from, "/")
	address, err := netip.ParseAddr(text)
	return err == nil && slices.ContainsFunc(s.sources, func(n netip.Prefix) bool { return n.Contains(address.Unmap()) })
}

// InNetworks reports whether a key with these Sources would work from a client's address.
func InNetworks(sources []string, from string) bool {
	return newStanding(&access.Key{Sources: sources}, nil).contains(from)
}

// usedEvery is the minimum interval between two recorded uses.
const usedEvery = access.UsedEvery / 2

func (s *standing) use(address, operation string) {
	if s == nil || s.now == nil { // a key that is only for display
		return
	}
	now := domain.TimeOf(s.now())
	if last := s.used.Load(); last != nil && now.Sub(last.At) < usedEvery {
		return
	}
	s.used.Store(&access.Use{Key: s.id, At: now, Address: strings.Clone(address), Operation: strings.Clone(operation)}) // otherwise they would keep the request alive
}

// Uses returns the last use on this node of each access key that was used since the start, to within half a minute.
func (k *Keys) Uses() (all []access.Use) {
	for _, key := range k.known.Load().keys {
		if use := key.standing.used.Load(); use != nil {
			all = append(all, *use)
		}
	}
	slices.SortFunc(all, func(a, b access.Use) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// narrowestIPv6 is the longest prefix of an IPv6 network: clients are identified by their network of this size.
const narrowestIPv6 = 64

// ParseSources parses networks or single addresses from which an access key works. It returns them in a canonical form without duplicates.
func ParseSources(texts []string) ([]string, error) {
	var all []netip.Prefix
	for _, text := range texts {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if address, alone := netip.ParseAddr(strings.TrimSpace(text)); alone == nil {
			network, err = netip.PrefixFrom(address.WithZone(""), address.BitLen()), nil
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("network %.100q: want one in CIDR notation, such as 192.0.2.0/24 or 2001:db8::/32", text)
		case network.Addr().Is4In6():
			return nil, fmt.Errorf("network %.100q: want it in the form of IPv4, such as 192.0.2.0/24", text)
		case network.Addr().Is6() && network.Bits() > narrowestIPv6:
			return nil, fmt.Errorf("network %.100q: want at most /%d, because clients with IPv6 are known by their network of that size", text, narrowestIPv6)
		}
		all = append(all, network.Masked())
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	var out []string
	for _, network := range slices.Compact(all) {
		out = append(out, network.String())
	}
	return out, nil
}
