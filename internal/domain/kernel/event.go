package kernel

import (
	"github.com/musterhq/muster/internal/domain/wire"
)

// Kind is the type of an event. The numbers are those of proto/journal.proto: they are never changed and never reused.
type Kind uint16

// kindsMax is greater than every kind.
const kindsMax = 512

// Event is a fact. Apply may use only the state and the data in Fields.
type Event interface {
	wire.Message
	Kind() Kind
}

// NewEvent returns an empty event of a kind, or nil for an unknown kind.
func (k *Kernel) NewEvent(kind Kind) Event {
	if construct := k.constructors[kind]; construct != nil {
		return construct()
	}
	return nil
}

// Empty returns a new event of the type T.
func Empty[T any, E interface {
	*T
	Event
}]() Event {
	return E(new(T))
}

// KindMask is a set of kinds.
type KindMask [kindsMax / 64]uint64

// Kinds returns the set of the kinds of events.
func Kinds(events ...Event) KindMask {
	var m KindMask
	for _, e := range events {
		k := e.Kind()
		m[k/64] |= 1 << (k % 64)
	}
	return m
}

// AllKinds returns the set of all kinds.
func AllKinds() (m KindMask) {
	for i := range m {
		m[i] = ^uint64(0)
	}
	return m
}

// Has reports whether the set contains k.
func (m *KindMask) Has(k Kind) bool { return m[k/64]&(1<<(k%64)) != 0 }

// Add adds the kinds of another set.
func (m *KindMask) Add(other KindMask) {
	for i := range m {
		m[i] |= other[i]
	}
}
