package attention

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/secretrotation"
)

// Bounds of what generations of the secret may have before them without a warning.
const (
	secretWaits = 10 * time.Minute    // a new one for nodes that do not have it
	secretSoon  = 14 * 24 * time.Hour // before the date of last use, and after a use that matters for it
)

// secrets are generations of the secret of which an operator has to do something.
func (f *Finder) secrets(ctx context.Context) (all []Item, err error) {
	if f.config.Secrets == nil {
		return nil, nil
	}
	list, err := f.config.Secrets(ctx)
	for i := range list {
		all = append(all, secret(&list[i], f.config.Engine.Now())...)
	}
	return all, err
}

func secret(g *secretrotation.Document, now time.Time) []Item {
	at := func(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }
	switch {
	case g.State == secretrotation.Distributed && now.Sub(g.Created) > secretWaits:
		return []Item{{
			What: fmt.Sprintf("Generation %d of the secret has been waiting since %s for nodes that do not have it: %s.", g.Number, at(g.Created), strings.Join(g.WaitsFor, ", ")),
			Next: fmt.Sprintf("Start these nodes, or remove them from the cluster. muster secret retire %d cancels the rotation.", g.Number),
		}}
	case g.State == secretrotation.Accepted && !g.Until.IsZero() && g.Until.Sub(now) < secretSoon && g.LastUse != nil && now.Sub(g.LastUse.At) < secretSoon:
		return []Item{{
			What: fmt.Sprintf("Signatures of generation %d of the secret are refused from %s on, but are still in use: last at %s, for %s.", g.Number, at(g.Until), at(g.LastUse.At), g.LastUse.Purpose),
			Next: "Replace them before that time; receivers of webhooks need the key that muster webhook-key prints.",
		}}
	case g.State == secretrotation.Ended && g.EndedBy != nil && g.AccessKeys > 0:
		return []Item{{
			What: fmt.Sprintf("Generation %d of the secret was retired at %s, and %s: a holder of that secret can derive theirs.", g.Number, at(g.Ended),
				plural.Of(g.AccessKeys, "access key derived from it still works", "access keys derived from it still work")),
			Next: fmt.Sprintf("Rotate each of them (muster keys rotate), or muster secret retire %d --revoke-keys. muster secret list counts them.", g.Number),
		}}
	}
	return nil
}
