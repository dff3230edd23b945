package keyvalue

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
)

// Own has the tags of a kind of resource that the service itself acts on, with their values.
type Own map[string][]string

// Merge returns have with the tags of add, sorted by key. It refuses a duplicate key, more than most tags, and an unknown tag of the
// service's own name space, because a misspelt one would have no effect.
func Merge(have, add []Pair, own Own, most int) ([]Pair, error) {
	for i, tag := range add {
		if !strings.HasPrefix(tag.Key, "muster:") {
			continue
		}
		values, ok := own[tag.Key]
		switch {
		case !ok:
			return nil, domain.Refuse(domain.Invalid, "Tags[%d].Key: %q has no effect on this resource; keys that begin with \"muster:\" are reserved for Muster", i, tag.Key)
		case !slices.Contains(values, tag.Value):
			return nil, domain.Refuse(domain.Invalid, "Tags[%d].Value: %q of %s is not one of %s", i, tag.Value, tag.Key, strings.Join(values, ", "))
		}
	}
	all := slices.Clone(have)
	for i, tag := range add {
		if slices.ContainsFunc(add[:i], func(x Pair) bool { return x.Key == tag.Key }) {
			return nil, domain.Refuse(domain.Invalid, "Tags[%d].Key: %q is given twice", i, tag.Key)
		}
		if at := slices.IndexFunc(all, func(x Pair) bool { return x.Key == tag.Key }); at >= 0 {
			all[at] = tag
		} else {
			all = append(all, tag)
		}
	}
	if len(all) > most {
		return nil, domain.Refuse(domain.Invalid, "Tags: the resource would have %d tags; the limit is %d", len(all), most)
	}
	slices.SortFunc(all, func(a, b Pair) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}
