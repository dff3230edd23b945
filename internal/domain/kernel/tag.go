package kernel

import (
	"github.com/musterhq/muster/internal/domain/keyvalue"
)

// Tagged is a resource that carries tags.
type Tagged struct {
	Tags  []keyvalue.Pair
	Own   keyvalue.Own                // the tags that the service itself acts on
	Store func([]keyvalue.Pair) Event // makes the event that replaces the resource's tags
}

// Patch sets dst if src is not nil.
func Patch[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}

// RecordCount is the number of records of a kind.
type RecordCount struct {
	Kind  string
	Count int
	Most  int // the limit; 0: none, or another limit applies
}
