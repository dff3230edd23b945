package console

import "slices"

// ranking selects the first rows after a place, in an order, from any number of rows. It keeps only a few times as many
// as it returns in memory.
type ranking[P any] struct {
	most    int
	compare func(a, b P) int
	from    *P // nil: the first page
	all     []P
	more    bool
}

// add adds a place if it may be among the first.
func (x *ranking[P]) add(p P) {
	if x.from != nil && x.compare(p, *x.from) <= 0 || x.more && len(x.all) >= x.most && x.compare(p, x.all[x.most-1]) > 0 {
		return
	}
	if x.all = append(x.all, p); len(x.all) >= 4*x.most {
		x.cut()
	}
}

func (x *ranking[P]) cut() {
	slices.SortFunc(x.all, x.compare)
	x.more = x.more || len(x.all) > x.most
	x.all = x.all[:min(len(x.all), x.most)]
}

// first returns the first places, and whether more follow.
func (x *ranking[P]) first() (all []P, more bool) {
	x.cut()
	return x.all, x.more
}
