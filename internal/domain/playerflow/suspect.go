package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// HostChanged updates whether the host of a game instance is suspected to be lost, because its connection is down or it does not report
// itself healthy. While it is suspect, the holds on its seats stand still.
func (t *Games) HostChanged(key fleet.Key) {
	process, ok := t.hosting.FindProcess(key)
	if !ok || t.hosting.Process(process).Session == 0 {
		return
	}
	p := t.hosting.Process(process)
	r, ok := t.Flow.InstanceOfGame(string(t.hosting.Game(session.GameRef(p.Session)).ID))
	if !ok {
		return
	}
	well := p.Linked && p.Health != fleet.Unhealthy && !t.Flow.Instances.Get(r).MissedOne
	t.suspect(r, !well)
}

func (t *Games) suspect(r flow.InstanceRef, suspect bool) {
	x := t.Flow.Instances.Get(r)
	if !x.Live() || suspect == (x.Suspect != 0) {
		return
	}
	t.changeInstance(r, func(x *flow.Instance) {
		x.Suspect = 0
		if suspect {
			x.Suspect = t.Contact
		}
	})
	for _, ref := range slices.Clone(t.Flow.Instances.Get(r).Members()) {
		m := t.Flow.Memberships.Get(ref)
		switch {
		case suspect && m.HoldBy != 0: // changeMembership stops the clock
			t.changeMembership(ref, func(*flow.Membership) {})
		case !suspect && m.HoldLeft != 0:
			t.changeMembership(ref, func(m *flow.Membership) {
				m.HoldBy, m.HoldLeft = t.Contact+domain.ContactTime(m.HoldLeft), 0
			})
		}
	}
}

// keepAliveMissed marks a host that has missed a keep-alive as suspect, and later gives it up.
func (t *Games) keepAliveMissed(r flow.InstanceRef) {
	x := t.Flow.Instances.Get(r)
	if !x.MissedOne && x.Rules.KeepAliveMisses > 1 {
		t.changeInstance(r, func(x *flow.Instance) {
			x.MissedOne = true
			x.KeepAliveBy = t.Contact.Add(x.Rules.KeepAlive * time.Duration(x.Rules.KeepAliveMisses-1))
		})
		t.suspect(r, true)
		return
	}
	t.Cause = "KeepAliveLost"
	game := x.Game
	t.end(r, flow.HostLost, flow.HostLost, "", nil)
	t.stopHost(game)
}
