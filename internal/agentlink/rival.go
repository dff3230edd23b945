package agentlink

import (
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/domain/cell"
)

// sharedEvery is how often the operator is warned about a host identity that several agents use.
const sharedEvery = 10 * time.Minute

// lookForRival detects two agents that share one host identity, for example because their machines were cloned from one image. Each replaces the
// other's connection, and both keep sending heartbeats, whereas an agent that reconnects sends them only over its new connection. The state has the
// latest connection, because the rival may be connected to another node.
func (l *link) lookForRival(now time.Time) {
	if l.host == "" {
		return
	}
	s := l.server
	later := false
	_ = s.engine.ReadHere(s.ctx, func(v *cell.View) error { // on an error the engine has stopped
		h, ok := v.Host(l.host)
		later = ok && h.Signed > l.signed
		return nil
	})
	switch {
	case !later:
	case l.outdated.IsZero():
		l.outdated = now
	case now.Sub(l.outdated) >= s.config.Periods.Rival && s.sharers(l.host, now) == nil:
		s.tellShared(l, now)
	}
}

// sharing is the last warning about a host identity that several agents use.
type sharing struct {
	told      time.Time
	addresses []string // of the agents; never nil
}

// sharers returns the addresses from a warning about a host within sharedEvery; nil if there was none.
func (s *Server) sharers(host string, now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.shared[host]; now.Sub(x.told) < sharedEvery {
		return x.addresses
	}
	return nil
}

// tellShared warns the operator and the agents. It ends nothing, because game servers run on both machines, and the service cannot know which of them
// is the real host.
func (s *Server) tellShared(l *link, now time.Time) {
	var of []*link
	addresses := []string{l.from}
	for _, x := range s.links() {
		if x.host == l.host {
			of, addresses = append(of, x), append(addresses, x.from)
		}
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	s.mu.Lock()
	maps.DeleteFunc(s.shared, func(_ string, x sharing) bool { return now.Sub(x.told) >= sharedEvery })
	if s.shared == nil {
		s.shared = map[string]sharing{}
	}
	_, told := s.shared[l.host]
	if !told {
		s.shared[l.host] = sharing{now, addresses}
	}
	s.mu.Unlock()
	if told { // another connection has reported it meanwhile
		return
	}
	s.log.Warn("several agents use the identity of one host and disconnect each other: a copy of its state directory is on another machine. "+
		"Remove host.json from the state directory of each copy, and give its agent a join token", "host", l.host, "name", l.name, "addresses", addresses)
	for _, x := range of {
		x.push(&agentproto.HostShared{Addresses: addresses})
	}
}
