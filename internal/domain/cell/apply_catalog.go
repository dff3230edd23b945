package cell

// applyCatalog folds in what changes one record that nothing else counts.
func (c *Cell) applyCatalog(event Event) {
	number := c.touch()
	switch e := event.(type) {
	case *AliasChanged:
		a := e.Alias
		a.Changed = number
		c.fleets.Aliases.Put(a)
	case *AliasRemoved:
		r, _ := c.fleets.Aliases.Find(e.ID)
		c.fleets.Aliases.Drop(r)
	case *BuildChanged:
		b := e.Build
		b.Changed = number
		c.fleets.Builds.Put(b)
	case *BuildRemoved:
		r, _ := c.fleets.Builds.Find(e.ID)
		c.fleets.Builds.Drop(r)
	}
}
