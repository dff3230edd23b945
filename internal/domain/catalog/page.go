package catalog

// Page copies up to limit records that keep allows, in creation order, beginning behind a place; a nil keep allows all.
func (c *Catalog[T]) Page(after Place, limit int, keep func(*T) bool) []T {
	var page []T
	c.From(after, func(record *T) bool {
		if keep == nil || keep(record) {
			page = append(page, *record)
		}
		return len(page) < limit
	})
	return page
}
