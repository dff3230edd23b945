package catalog

// Page copies up to limit records for which keep is true, in creation order, beginning after a place; a nil keep means all.
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
