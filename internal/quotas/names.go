package quotas

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/quota"
)

// Namer returns a function that names holders: by the requests that they made here, and access keys, of which list returns all, in any case. One of which nothing else is known has a number.
func (d *Desk) Namer(list func() []access.Key) func(quota.Holder) string {
	var keys map[quota.Holder]string // of all access keys, once they are needed
	return func(h quota.Holder) string {
		if name, ok := d.Name(h); ok {
			return name
		}
		if keys == nil {
			keys = map[quota.Holder]string{}
			for _, k := range list() {
				keys[quota.HolderNamed(k.ID)] = k.ID
			}
		}
		if id, ok := keys[h]; ok {
			d.remember(h, id)
			return id
		}
		return fmt.Sprintf("%016x", uint64(h))
	}
}
