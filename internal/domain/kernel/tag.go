package kernel

import (
	"github.com/musterhq/muster/internal/domain/keyvalue"
)

// Tagged is a resource that carries tags.
type Tagged struct {
	Tags  []keyvalue.Pair
	Own   keyvalue.Own                // the tags that the service itself acts on
	Store func([]keyvalue.Pair) Event // the event that gives the resource other tags
}

// Patch overwrites dst if there is a new value.
func Patch[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}

// RecordCount is how many records of a kind there are.
type RecordCount struct {
	Kind  string
	Count int
	Most  int // that there may be; 0: another limit bounds them, or none
}
