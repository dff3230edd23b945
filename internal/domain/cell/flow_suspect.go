package cell

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
)

// reviewHost notes whether the host of a game instance is suspected to be gone: its link is lost, or it does not report
// that it is healthy. While it is, no clock of a kept seat runs.
func (t *tx) reviewHost(key fleet.Key) {
	process, ok := t.c.fleets.Process(key)
	if !ok || t.c.fleets.Processes.Get(process).Session == 0 {
		return
	}
	p := t.c.fleets.Processes.Get(process)
	r, ok := t.c.flow.InstanceOfGame(string(t.c.sessions.Games.Get(p.Session).ID))
	if !ok {
		return
	}
	well := p.Linked && p.Health != fleet.Unhealthy && !t.c.flow.Instances.Get(r).MissedOne
	t.suspect(r, !well)
}

func (t *tx) suspect(r flow.Ref, suspect bool) {
	x := t.c.flow.Instances.Get(r)
	if !x.Live() || suspect == (x.Suspect != 0) {
		return
	}
	t.changeInstance(r, func(x *flow.Instance) {
		x.Suspect = 0
		if suspect {
			x.Suspect = t.contact
		}
	})
	for _, ref := range slices.Clone(t.c.flow.Instances.Get(r).Members()) {
		m := t.c.flow.Memberships.Get(ref)
		switch {
		case suspect && m.HoldBy != 0: // changeMembership stops the clock
			t.changeMembership(ref, func(*flow.Membership) {})
		case !suspect && m.HoldLeft != 0:
			t.changeMembership(ref, func(m *flow.Membership) {
				m.HoldBy, m.HoldLeft = t.contact+domain.ContactTime(m.HoldLeft), 0
			})
		}
	}
}

// keepAliveMissed suspects a host that did not say that it is alive, and later gives it up.
func (t *tx) keepAliveMissed(r flow.Ref) {
	x := t.c.flow.Instances.Get(r)
	if !x.MissedOne && x.Rules.KeepAliveMisses > 1 {
		t.changeInstance(r, func(x *flow.Instance) {
			x.MissedOne = true
			x.KeepAliveBy = t.contact.Add(x.Rules.KeepAlive * time.Duration(x.Rules.KeepAliveMisses-1))
		})
		t.suspect(r, true)
		return
	}
	t.flow.cause = "KeepAliveLost"
	game := x.Game
	t.endInstance(r, flow.HostLost, flow.HostLost, "", nil)
	t.stopHost(game)
}
