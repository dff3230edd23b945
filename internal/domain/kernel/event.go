package kernel

import (
	"github.com/musterhq/muster/internal/domain/wire"
)

// Kind tells the events apart. The numbers are those of proto/journal.proto: they are never changed and never reused.
type Kind uint8

// Event is a fact. What Fields names is all that Apply may use beside the state.
type Event interface {
	wire.Message
	Kind() Kind
}

// NewEvent returns an empty event of a kind, or nil when there is none.
func (k *Kernel) NewEvent(kind Kind) Event {
	if construct := k.constructors[kind]; construct != nil {
		return construct()
	}
	return nil
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
