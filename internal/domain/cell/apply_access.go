package cell

func (c *Cell) applyAccess(event Event) {
	number := c.touch()
	switch e := event.(type) {
	case *AccessKeysTakenOver:
		taken := e.TakenOver
		c.access.TakenOver = &taken
		for _, k := range e.Keys {
			k.Changed = number
			c.access.Put(k)
		}
	case *AccessKeyCreated:
		k := e.Key
		k.Changed = number
		c.access.Put(k)
	case *AccessKeyRevoked:
		r, _ := c.access.Keys.Find(e.ID)
		k := *c.access.Keys.Get(r)
		k.Revoked, k.RevokedBy, k.Changed = e.At, e.By, number
		c.access.Put(k)
	case *AccessKeysForgotten:
		for _, id := range e.IDs {
			c.access.Drop(id)
		}
	}
}
