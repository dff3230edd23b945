package cell

// before is what followers need of the state before an event that is about to be applied:
//
//	MembershipChanged    flow.Membership     nil: the player had none
//	GameInstanceChanged  flow.InstanceStatus nil: there was no such game instance
//	PlayerChanged        []flow.Penalty      nil: the player was unknown
func (c *Cell) before(event Event) any {
	switch e := event.(type) {
	case *MembershipChanged:
		if r, ok := c.flow.Player(e.Membership.Player); ok && c.flow.Players.Get(r).Membership() != 0 {
			return *c.flow.Memberships.Get(c.flow.Players.Get(r).Membership())
		}
	case *GameInstanceChanged:
		if r, ok := c.flow.Instance(e.Instance.ID); ok {
			return c.flow.Instances.Get(r).Status
		}
	case *PlayerChanged:
		if r, ok := c.flow.Player(e.Player); ok {
			return c.flow.Players.Get(r).Penalties
		}
	}
	return nil
}
