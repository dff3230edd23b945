package chunk

// Index finds the records of a table by a key that is in the record. It has only hashes of the keys and references: 8 bytes for each record,
// and half as much again for free slots. Maps of Go, which had the keys too, took 170 bytes more for each player.
//
// A caller hashes keys as it likes, as long as equal keys have equal hashes, and says whether a record has the key. No order of the records can be
// seen, so nothing depends on the hashes.
//
// Each shard grows by itself, so that no call waits for the move of a large index.
type Index struct {
	shards [64]indexShard
	count  int
}

// indexShard has a slot for each record: the first free one, looked for from the slot on that its hash leads to. Those slots are in the order of the hashes, so
// that a larger shard is filled from its beginning to its end.
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
		x.shards[i].resize(each + each/2) // a shard has a few more or less than the average
	}
}

// Find returns the record with the hash for which is returns true; 0 if there is none.
func (x *Index) Find(hash uint64, is func(AnyRef) bool) AnyRef {
	s, h := x.shard(hash)
	if at, found := s.find(h, is); found {
		return s.slots[at].ref
	}
	return 0
}

// Put adds a record. It replaces one for which is returns true, and returns that; 0 if there is none.
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

// Remove removes the record with the hash for which is returns true, if there is one.
func (x *Index) Remove(hash uint64, is func(AnyRef) bool) {
	s, h := x.shard(hash)
	at, found := s.find(h, is)
	if !found {
		return
	}
	x.count--
	s.used--
	// A record behind it moves to the free slot, unless it would stand before the one that its hash leads to.
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

// find returns the slot of the record for which is returns true, or else the free one for it.
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

// home is the slot that a hash leads to.
func (s *indexShard) home(hash uint32) int { return int(uint64(hash) * uint64(len(s.slots)) >> 32) }

func (s *indexShard) after(at int) int {
	if at++; at < len(s.slots) {
		return at
	}
	return 0
}

// distance is how many slots a search goes on from one to the other.
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
