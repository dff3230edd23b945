package playerflow

import (
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Before returns the state that followers need from before an event that is about to be applied:
//
//	MembershipChanged    flow.Membership     nil: the player had none
//	GameInstanceChanged  flow.InstanceStatus nil: there was no such game instance
//	PlayerChanged        []flow.Penalty      nil: the player was unknown
func (c *State) Before(event kernel.Event) any {
	switch e := event.(type) {
	case *MembershipChanged:
		if r, ok := c.Flow.Player(e.Membership.Player); ok && c.Flow.Players.Get(r).Membership() != 0 {
			return *c.Flow.Memberships.Get(c.Flow.Players.Get(r).Membership())
		}
	case *GameInstanceChanged:
		if r, ok := c.Flow.Instance(e.Instance.ID); ok {
			return c.Flow.Instances.Get(r).Status
		}
	case *PlayerChanged:
		if r, ok := c.Flow.Player(e.Player); ok {
			return c.Flow.Players.Get(r).Penalties
		}
	}
	return nil
}
