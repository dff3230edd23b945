package inspection

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// ChangesOf returns the changes of a player's keys that are not in the archive yet, oldest first.
func (v *View) ChangesOf(player string) (all []flow.Change) {
	v.SawAll()
	v.c.Flow.ChangesOf(player, func(x *flow.Change) bool {
		all = append(all, *x)
		return true
	})
	return all
}

// PlayerFilter selects players. Its zero value selects all.
type PlayerFilter struct {
	Phases    []flow.Phase  // one of them; none: any
	OlderThan time.Duration // the minimum time since their keys changed
	HostLost  *bool         // true: in a game whose host is suspected to be lost; false: not in such a game
}

// PlayerLine is a player in a list.
type PlayerLine struct {
	ID       string
	Keys     flow.Keys
	Since    domain.Time // when the keys last changed; 0: never, or before that was recorded
	Presence flow.Presence
	HostLost bool
}

// FindPlayers returns players that a filter selects, in the order of their places in memory, beginning after a place. It
// examines at most `most` of them, however few it finds. last is the place of the last one that it examined; more reports that others follow it.
func (v *View) FindPlayers(f *PlayerFilter, now domain.Time, after flow.PlayerRef, limit, most int) (page []PlayerLine, last flow.PlayerRef, more bool) {
	v.SawAll()
	last = after
	looked := 0
	var at flow.PlayerRef
	for p := range v.c.Flow.Players.From(after, &at) {
		if len(page) == limit || looked == most {
			return page, last, true
		}
		looked++
		last = at
		x := v.c.playerLine(p)
		if f.chooses(&x, now) {
			page = append(page, x)
		}
	}
	return page, last, false
}

func (f *PlayerFilter) chooses(x *PlayerLine, now domain.Time) bool {
	switch {
	case len(f.Phases) > 0 && !slices.Contains(f.Phases, x.Keys.Phase()),
		f.OlderThan > 0 && x.Since.Add(f.OlderThan) > now,
		f.HostLost != nil && x.HostLost != *f.HostLost:
		return false
	}
	return true
}

// PlayerLine returns one player as in a list.
func (v *View) PlayerLine(player string) (PlayerLine, bool) {
	v.SawAll()
	r, ok := v.c.Flow.Player(player)
	if !ok {
		return PlayerLine{}, false
	}
	return v.c.playerLine(v.c.Flow.Players.Get(r)), true
}

func (c *Inspection) playerLine(p *flow.Player) PlayerLine {
	x := PlayerLine{ID: p.ID, Keys: p.Keys, Since: p.Since, Presence: p.Presence}
	if p.Membership() != 0 {
		m := c.Flow.Memberships.Get(p.Membership())
		x.HostLost = c.Flow.Instances.Get(m.InstanceRef()).Suspect != 0
	}
	return x
}
