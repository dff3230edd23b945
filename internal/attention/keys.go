package attention

import (
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
)

// Bounds of what keys may have before them without a warning.
const (
	expirySoon = 14 * 24 * time.Hour // before the end of a key
	replaced   = 30 * 24 * time.Hour // after a successor was made
)

// keys are access keys that expire soon, and those whose replacement was begun long ago.
func keys(v *cell.View, now domain.Time) (all []Item) {
	byID := map[string]access.Key{}
	list := v.AccessKeys()
	for _, k := range list {
		byID[k.ID] = k
	}
	for _, k := range list {
		if !k.Works() {
			continue
		}
		next, rotating := byID[k.Successor]
		rotating = rotating && next.Works()
		switch {
		case k.Expires != 0 && k.Expires.Sub(now) < expirySoon:
			item := Item{"Access key " + keyName(&k) + " expires at " + k.Expires.Std().UTC().Format(time.DateTime) + " UTC" + used(&k) + ".",
				"muster keys rotate " + k.ID + " creates its successor, and both work until then.", "access key", k.ID}
			if rotating {
				item.Next = "Its successor is " + next.ID + ": make sure that all programs use that one."
			}
			all = append(all, item)
		case rotating && now.Sub(next.Created) > replaced:
			all = append(all, Item{"Access key " + keyName(&k) + " was replaced by " + next.ID + " at " + next.Created.Std().UTC().Format(time.DateTime) + " UTC and still works" + used(&k) + ".",
				"muster keys rotate --finish " + k.ID + " revokes it, once no program uses it.", "access key", k.ID})
		}
	}
	return all
}

func keyName(k *access.Key) string {
	if k.Name == "" {
		return k.ID
	}
	return k.Name + " (" + k.ID + ")"
}

func used(k *access.Key) string {
	if k.LastUse.At == 0 {
		return ", and no use of it is known"
	}
	return ". It was used last at " + k.LastUse.At.Std().UTC().Format(time.DateTime) + " UTC, for " + strings.TrimSpace(k.LastUse.Operation) + " from " + k.LastUse.Address
}
