package wire

import (
	"hash/maphash"
	"sync"
)

// Strings keeps one copy of each of many strings, for Readers that share them. It is safe for concurrent use.
//
// A Go map took three times as long for the bodies of events of a million players: nearly every access misses the processor's
// caches, and a map makes more of them. Here a new string takes one access, to eight bytes, and a known one takes three.
type Strings struct {
	seed   maphash.Seed
	shards [64]stringShard
}

type stringShard struct {
	lock  sync.Mutex
	slots []stringSlot // their number is a power of two; a string is in the first slot from its hash on that is free or has it
	all   []string
}

type stringSlot struct {
	hash uint32
	no   uint32 // number of the string among all, from 1; 0: the slot is free
}

// NewStrings returns an empty Strings.
func NewStrings() *Strings { return &Strings{seed: maphash.MakeSeed()} }

// of returns the string with these bytes.
func (s *Strings) of(b []byte, hash uint64) string {
	shard := &s.shards[hash>>58]
	shard.lock.Lock()
	defer shard.lock.Unlock()
	if len(shard.all) >= len(shard.slots)/2 {
		shard.grow()
	}
	mask := uint32(len(shard.slots) - 1)
	for at := uint32(hash) & mask; ; at = (at + 1) & mask {
		switch slot := &shard.slots[at]; {
		case slot.no == 0:
			kept := string(b)
			shard.all = append(shard.all, kept)
			*slot = stringSlot{uint32(hash), uint32(len(shard.all))}
			return kept
		case slot.hash == uint32(hash) && shard.all[slot.no-1] == string(b):
			return shard.all[slot.no-1]
		}
	}
}

func (s *stringShard) grow() {
	old := s.slots
	s.slots = make([]stringSlot, max(64, 2*len(old)))
	mask := uint32(len(s.slots) - 1)
	for _, slot := range old {
		if slot.no == 0 {
			continue
		}
		at := slot.hash & mask
		for s.slots[at].no != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = slot
	}
}

// shared is a Codec's part of a Strings: the strings that it met last, because the shortest of them are in nearly every message.
type shared struct {
	*Strings
	latest [256]string
}

func (s *shared) of(b []byte, least int) string {
	hash := maphash.Bytes(s.seed, b)
	latest := &s.latest[hash>>32&255]
	switch {
	case *latest == string(b):
	case len(b) < least:
		*latest = string(b)
	default:
		*latest = s.Strings.of(b, hash)
	}
	return *latest
}
