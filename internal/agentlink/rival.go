package agentlink

import (
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/domain/cell"
)

// sharedEvery is how often the operator is told of a host whose identity several agents use.
const sharedEvery = 10 * time.Minute

// lookForRival finds agents with a copy of one identity, such as those of machines from one image. Each takes the place of the other, and both go on with heartbeats. An
// agent that connects again sends them by its new connection alone. The state has the latest connection, so the rival may be at another node.
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
	case now.Sub(l.outdated) >= s.config.Periods.Rival && s.mayTellShared(l.host, now):
		s.tellShared(l)
	}
}

// mayTellShared reports whether it is time to tell of a host, and forgets hosts of which nothing was told for long.
func (s *Server) mayTellShared(host string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.shared, func(_ string, at time.Time) bool { return now.Sub(at) >= sharedEvery })
	if _, told := s.shared[host]; told {
		return false
	}
	if s.shared == nil {
		s.shared = map[string]time.Time{}
	}
	s.shared[host] = now
	return true
}

// tellShared tells the operator and the agents. It ends nothing: game servers run on both machines, and the service cannot know which of them the host is.
func (s *Server) tellShared(l *link) {
	var of []*link
	var addresses []string
	for _, x := range s.links() {
		if x.host == l.host {
			of, addresses = append(of, x), append(addresses, x.from)
		}
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	s.log.Warn("several agents use the identity of one host, and take it from each other: a copy of its state directory is on another machine. "+
		"Remove host.json from the state directory of each copy, and give its agent a join token", "host", l.host, "name", l.name, "addresses", addresses)
	for _, x := range of {
		x.push(&agentproto.HostShared{Addresses: addresses})
	}
}
