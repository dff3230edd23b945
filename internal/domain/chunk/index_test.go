package chunk_test

import (
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/internal/domain/chunk"
)

// TestIndex compares an Index with a map, with hashes of which many are alike: all of them, their shards, the slots they lead to, or none.
func TestIndex(t *testing.T) {
	for name, hash := range map[string]func(key uint32) uint64{
		"one hash":    func(uint32) uint64 { return 1<<64 - 1 },
		"few hashes":  func(key uint32) uint64 { return uint64(key % 7) },
		"one shard":   func(key uint32) uint64 { return uint64(key) * 0x9e3779b97f4a7c15 >> 32 },
		"last slots":  func(key uint32) uint64 { return 1<<32 - 1 - uint64(key%50) },
		"good hashes": func(key uint32) uint64 { return uint64(key) * 0x9e3779b97f4a7c15 },
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			keys := map[chunk.AnyRef]uint32{} // of the records
			want := map[uint32]chunk.AnyRef{}
			var x chunk.Index
			if random.IntN(2) == 0 {
				x.Expect(random.IntN(1000))
			}
			is := func(key uint32) func(chunk.AnyRef) bool {
				return func(r chunk.AnyRef) bool { return keys[r] == key }
			}
			for step := range 5000 {
				key := random.Uint32N(300)
				if more := step/1000%2 == 0; random.IntN(10) < 3 == more {
					x.Remove(hash(key), is(key))
					delete(want, key)
				} else {
					r := chunk.AnyRef(step + 1)
					keys[r] = key
					x.Put(hash(key), r, is(key))
					want[key] = r
				}
				if x.Len() != len(want) {
					t.Fatalf("step %d: %d records, want %d", step, x.Len(), len(want))
				}
			}
			for key := range uint32(301) {
				if got := x.Find(hash(key), is(key)); got != want[key] {
					t.Errorf("key %d: record %d, want %d", key, got, want[key])
				}
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	const n = 1 << 20
	keys := make([]uint64, n+1)
	is := func(key uint64) func(chunk.AnyRef) bool {
		return func(r chunk.AnyRef) bool { return keys[r] == key }
	}
	var x chunk.Index
	for r := range keys[1:] {
		keys[r+1] = rand.Uint64()
		x.Put(keys[r+1], chunk.AnyRef(r+1), is(keys[r+1]))
	}
	b.Run("find", func(b *testing.B) {
		for i := range b.N {
			key := keys[1+i*0x9e3779b1%n]
			if x.Find(key, is(key)) == 0 {
				b.Fatal("not found")
			}
		}
	})
	b.Run("remove and put", func(b *testing.B) {
		for i := range b.N {
			r := 1 + i*0x9e3779b1%n
			x.Remove(keys[r], is(keys[r]))
			x.Put(keys[r], chunk.AnyRef(r), is(keys[r]))
		}
	})
}
