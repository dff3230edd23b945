package access

import (
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Bounds of the recorded uses of keys.
const (
	// UsedEvery is the least time between two recorded uses of a key, and so about the precision of its last use.
	UsedEvery = time.Minute
	// UsesMax is the most uses that one command records.
	UsesMax = 512
	useMax  = 128 // bytes of each text
)

// Use is a use of an access key, or of temporary credentials issued to it.
type Use struct {
	Key       string // empty in the record of the key itself
	At        domain.Time
	Address   string // of the client, in the form used for limits by address
	Operation string // API operation, or a description of another use
}

func (u *Use) Fields(c *wire.Codec) {
	c.Shared(1, &u.Key)
	wire.Int(c, 2, &u.At)
	c.Shared(3, &u.Address)
	c.Shared(4, &u.Operation)
}

// NoteKeyUses records the latest uses of keys observed by a node. It skips keys with a use recorded in the minute before.
type NoteKeyUses struct{ Uses []Use }

func (cmd *NoteKeyUses) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if len(cmd.Uses) > UsesMax {
		return domain.Refuse(domain.Invalid, "%d uses of access keys: want at most %d", len(cmd.Uses), UsesMax)
	}
	if t.Level() < levelOfLimits {
		return nil // the next use is recorded as soon as all nodes run this release
	}
	e := &AccessKeysUsed{}
	seen := map[string]bool{}
	for _, use := range cmd.Uses {
		r, ok := t.Records.Keys.Find(use.Key)
		if !ok || seen[use.Key] || use.At.Sub(t.Records.Keys.Get(r).LastUse.At) < UsedEvery {
			continue
		}
		seen[use.Key] = true
		for _, text := range []*string{&use.Address, &use.Operation} {
			if len(*text) > useMax {
				*text = strings.ToValidUTF8((*text)[:useMax], "")
			}
		}
		e.Uses = append(e.Uses, use)
	}
	if len(e.Uses) > 0 {
		t.Emit(e)
	}
	return nil
}
