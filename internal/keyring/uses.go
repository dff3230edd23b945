package keyring

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
)

// notedEvery is how often a node has the uses of keys recorded that it has seen. Of each key, the state takes one a minute.
const notedEvery = 30 * time.Second

// noteUses has the last uses of keys recorded, for lists, until ctx ends. Uses of the last moments before the end are lost.
func (r *Ring) noteUses(ctx context.Context) {
	every := time.NewTicker(notedEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			for batch := range slices.Chunk(r.unrecorded(), access.UsesMax) {
				if err := r.engine.Do(ctx, &access.NoteKeyUses{Uses: batch}); err != nil && ctx.Err() == nil {
					r.log.Debug("uses of access keys are not recorded yet", "keys", len(batch), "error", err)
					break // no node decides, or the disk is full: the next time has the same ones
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// unrecorded are the uses here that the state would record.
func (r *Ring) unrecorded() []access.Use {
	all := r.Uses()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(all, func(x access.Use) bool { return x.At.Sub(r.known[x.Key].LastUse.At) < access.UsedEvery })
}

// learnUses takes over uses that were recorded. It is called with r.mu held.
func (r *Ring) learnUses(uses []access.Use) {
	for _, use := range uses {
		if k, ok := r.known[use.Key]; ok {
			k.LastUse = use
			r.known[use.Key] = k
		}
	}
}

// Refresh puts the last uses that this node has seen into keys of the state.
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
