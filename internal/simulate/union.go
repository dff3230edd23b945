package simulate

import (
	"cmp"
	"slices"
)

// union lists what reports have, each once: in the order of the first report that has it, or sorted.
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
