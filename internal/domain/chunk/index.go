package chunk

// Index finds the records of a table by a key that the record contains. It stores only hashes of the keys and references: 8 bytes per record, and
// half as much again for free slots. Go maps, which also stored the keys, took 170 bytes more for each player.
//
// The caller chooses the hash function, as long as equal keys have equal hashes, and tells whether a record has the key. The index exposes no order
// of the records, so nothing depends on the hashes.
//
// Each shard grows on its own, so that no call has to wait while a large index is moved.
type Index struct {
	shards [64]indexShard
	count  int
}

// indexShard is a hash table with linear probing: a record is in the first free slot from the home slot of its hash on. The slots are in the order of
// the hashes, so that a larger shard is filled from beginning to end.
type indexShard struct {
	slots []indexSlot
	used  int
}

type indexSlot struct {
	hash uint32
	ref  AnyRef // 0: the slot is free
}

// Len returns the number of records.
func (x *Index) Len() int { return x.count }

// Expect makes room for n records in an empty index.
func (x *Index) Expect(n int) {
	each := n / len(x.shards)
	for i := range x.shards {
		x.shards[i].resize(each + each/2) // the size of shards varies a little around the average
	}
}

// Find returns the record with the hash for which `is` returns true; 0 if there is none.
func (x *Index) Find(hash uint64, is func(AnyRef) bool) AnyRef {
	s, h := x.shard(hash)
	if at, found := s.find(h, is); found {
		return s.slots[at].ref
	}
	return 0
}

// Put adds a record. If there is one for which `is` returns true, Put replaces and returns it; otherwise it returns 0.
func (x *Index) Put(hash uint64, r AnyRef, is func(AnyRef) bool) (replaced AnyRef) {
	s, h := x.shard(hash)
	at, found := s.find(h, is)
	if !found {
		x.count++
		s.used++
		if 4*s.used > 3*len(s.slots) {
			s.resize(max(8, len(s.slots)*4/3))
			at, _ = s.find(h, is)
		}
	}
	replaced = s.slots[at].ref
	s.slots[at] = indexSlot{h, r}
	return replaced
}

// Remove removes the record with the hash for which `is` returns true, if any.
func (x *Index) Remove(hash uint64, is func(AnyRef) bool) {
	s, h := x.shard(hash)
	at, found := s.find(h, is)
	if !found {
		return
	}
	x.count--
	s.used--
	// A later record moves to the free slot, unless that would put it before its home slot.
	for next := s.after(at); s.slots[next].ref != 0; next = s.after(next) {
		if s.distance(s.home(s.slots[next].hash), next) >= s.distance(at, next) {
			s.slots[at] = s.slots[next]
			at = next
		}
	}
	s.slots[at] = indexSlot{}
}

func (x *Index) shard(hash uint64) (*indexShard, uint32) {
	return &x.shards[hash>>58], uint32(hash)
}

// find returns the slot of the record for which `is` returns true, or the free slot for it.
func (s *indexShard) find(hash uint32, is func(AnyRef) bool) (at int, found bool) {
	if len(s.slots) == 0 {
		return 0, false
	}
	for at = s.home(hash); s.slots[at].ref != 0; at = s.after(at) {
		if s.slots[at].hash == hash && is(s.slots[at].ref) {
			return at, true
		}
	}
	return at, false
}

// home returns the home slot of a hash.
func (s *indexShard) home(hash uint32) int { return int(uint64(hash) * uint64(len(s.slots)) >> 32) }

func (s *indexShard) after(at int) int {
	if at++; at < len(s.slots) {
		return at
	}
	return 0
}

// distance returns how many slots a probe has to advance.
func (s *indexShard) distance(from, to int) int {
	if to < from {
		return to - from + len(s.slots)
	}
	return to - from
}

func (s *indexShard) resize(slots int) {
	old := s.slots
	s.slots = make([]indexSlot, slots)
	for _, x := range old {
		if x.ref == 0 {
			continue
		}
		at := s.home(x.hash)
		for s.slots[at].ref != 0 {
			at = s.after(at)
		}
		s.slots[at] = x
	}
}
