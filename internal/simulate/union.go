package simulate

import (
	"cmp"
	"slices"
)

// union returns the distinct items of all reports, in the order of their first occurrence or sorted.
func union[T any, K cmp.Ordered](reports []*Report, of func(*Report) []T, key func(T) K, sorted bool) (all []K) {
	for _, r := range reports {
		for _, x := range of(r) {
			if k := key(x); !slices.Contains(all, k) {
				all = append(all, k)
			}
		}
	}
	if sorted {
		slices.Sort(all)
	}
	return all
}
