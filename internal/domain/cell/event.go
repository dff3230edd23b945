package cell

import "github.com/musterhq/muster/internal/domain/wire"

// Kind tells the events apart. The numbers are those of proto/journal.proto: they are never changed and never reused.
type Kind uint8

// Event is a fact. What Fields names is all that apply may use beside the state.
type Event interface {
	wire.Message
	Kind() Kind
}

// KindMask is a set of kinds.
type KindMask [4]uint64

// Kinds makes a set.
func Kinds(kinds ...Kind) KindMask {
	var m KindMask
	for _, k := range kinds {
		m[k/64] |= 1 << (k % 64)
	}
	return m
}

// AllKinds is the set of all.
func AllKinds() KindMask { return KindMask{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)} }

// Has reports whether the set holds k.
func (m *KindMask) Has(k Kind) bool { return m[k/64]&(1<<(k%64)) != 0 }

// Add adds the kinds of another set.
func (m *KindMask) Add(other KindMask) {
	for i := range m {
		m[i] |= other[i]
	}
}

// newEvents has a constructor at each kind that there is.
var newEvents [1 << 8]func() Event

func init() {
	for _, room := range [][]func() Event{kernelEvents, hostingEvents, matchmakingEvents, playerflowEvents, accessEvents} {
		for kind, construct := range room {
			if construct != nil {
				newEvents[kind] = construct
			}
		}
	}
}

// newEvent returns an empty event of a kind, or nil when there is none.
func newEvent(k Kind) Event {
	if construct := newEvents[k]; construct != nil {
		return construct()
	}
	return nil
}
