package kernel

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/quota"
)

// Take checks that a holder may have one more record of a kind. limit is the installation's limit, 0 for none. Below the level that introduced
// holders, while nodes of an earlier release are in a cluster, new records get no holder.
func (t *Tx) Take(kind quota.Kind, held *quota.Held, h *quota.Holder, limit int) error {
	*h = t.HolderFor(*h, 0)
	return t.k.Quotas.Check(kind, held, *h, 1, limit)
}

// HolderFor returns the holder to store in a new record. Below the level that introduced holders, it contains only the maker.
func (t *Tx) HolderFor(h quota.Holder, m domain.Maker) quota.Holder {
	if t.k.level < quota.Level {
		h = 0
	}
	return quota.HolderOf(h, m)
}
