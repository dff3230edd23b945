package keyring

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
)

// notedEvery is the interval at which a node records the uses of keys in the state, which accepts one use per minute for each key.
const notedEvery = 30 * time.Second

// noteUses records the last uses of keys, for lists, until ctx ends. It loses the uses of the last moments.
func (r *Ring) noteUses(ctx context.Context) {
	every := time.NewTicker(notedEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			for batch := range slices.Chunk(r.unrecorded(), access.UsesMax) {
				if err := r.engine.Do(ctx, &access.NoteKeyUses{Uses: batch}); err != nil && ctx.Err() == nil {
					r.log.Debug("uses of access keys could not be recorded yet", "keys", len(batch), "error", err)
					break // there is no leader, or the disk is full: the next round has the same uses
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// unrecorded returns the uses on this node that the state would record.
func (r *Ring) unrecorded() []access.Use {
	all := r.Uses()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(all, func(x access.Use) bool { return x.At.Sub(r.known[x.Key].LastUse.At) < access.UsedEvery })
}

// learnUses adopts recorded uses. The caller holds r.mu.
func (r *Ring) learnUses(uses []access.Use) {
	for _, use := range uses {
		if k, ok := r.known[use.Key]; ok {
			k.LastUse = use
			r.known[use.Key] = k
		}
	}
}

// Refresh updates keys from the state with the last uses that this node has seen.
func (r *Ring) Refresh(keys []access.Key) {
	here := map[string]access.Use{}
	for _, use := range r.Uses() {
		here[use.Key] = use
	}
	for i := range keys {
		if use := here[keys[i].ID]; use.At > keys[i].LastUse.At {
			keys[i].LastUse = use
		}
	}
}

func (r *Ring) lastUsed(k access.Key) access.Key {
	one := []access.Key{k}
	r.Refresh(one)
	return one[0]
}
