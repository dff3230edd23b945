package service

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/export"
	"github.com/musterhq/muster/internal/localdoor"
)

// export sends the records that have ended and left memory. A record that leaves later has ended later, so the next export continues
// where this one ends.
func (x *Service) export(ctx context.Context, to io.Writer, in localdoor.ExportRequest) error {
	for _, kind := range in.Kinds {
		if !slices.Contains(export.Kinds, kind) {
			return domain.Refuse(domain.Invalid, "kind %q; want %s", kind, strings.Join(export.Kinds, ", "))
		}
	}
	if in.From < 0 || in.Until < 0 || in.Rate < 0 {
		return domain.Refuse(domain.Invalid, "from %d, until %d, rate %d; none may be negative", in.From, in.Until, in.Rate)
	}
	if !x.exporting.TryLock() {
		return domain.Refuse(domain.Conflict, "another export is in progress")
	}
	defer x.exporting.Unlock()
	state, err := x.engine.Backup(ctx)
	if errors.Is(err, engine.ErrArchiveLacks) {
		return domain.Refuse(domain.Conflict, "this node is still copying the archive from another node: export there, or later")
	}
	if err != nil {
		return err
	}
	h := export.Head{Installation: x.installation(), From: in.From, Until: int64(state.Next)}
	if in.Until != 0 {
		h.Until = min(h.Until, in.Until)
	}
	oldest := x.engine.Now().Add(-engine.DefaultRetention).UnixMilli() - archive.Grain // nothing is older
	h.From = min(max(h.From, oldest), max(h.Until, in.From))
	err = export.Write(ctx, backup.Paced(ctx, to, in.Rate), x.archive, h, in.Kinds)
	if err != nil {
		x.log.Error("an export failed", "to", in.To, "error", err)
	}
	return err
}
