package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/audit"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/commandcodec"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// recorded wraps a command whose context has an origin, so that a change gets an entry in the audit log. While the leader may run an earlier release,
// which would refuse Given as unknown, it returns the command unchanged.
func (e *Engine) recorded(ctx context.Context, cmd kernel.Command) kernel.Command {
	given := wrapped(ctx, cmd)
	if given == nil || e.config.Unrecorded {
		return cmd
	}
	if inForce, _ := e.Level(); inForce < domainaudit.Level {
		return cmd
	}
	return given
}

// wrapped returns the command wrapped with the origin in ctx, or nil if the command is not to be recorded.
func wrapped(ctx context.Context, cmd kernel.Command) *domainaudit.Given {
	if by, ok := audit.From(ctx); ok && commandcodec.Travels(cmd) {
		return &domainaudit.Given{Command: cmd, By: by.Cut()}
	}
	return nil
}

// AuditHead implements audit.Reader.
func (e *Engine) AuditHead(ctx context.Context) (head domainaudit.Head, err error) {
	err = e.Read(ctx, func(v *cell.View) error { head = v.AuditHead(); return nil })
	return head, err
}

// AuditStored implements audit.Reader. It skips unreadable parts of the archive.
func (e *Engine) AuditStored(ctx context.Context, no uint64) (all []audit.Stored, err error) {
	first := no - no%domainaudit.GroupSize
	err = e.Read(ctx, func(v *cell.View) error {
		for _, w := range v.AuditWaiting(first, first+domainaudit.GroupSize-1) {
			all = append(all, audit.Stored{No: w.Entry.No, Data: w.Entry.Stored()})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	records, err := e.archivedList(ctx, archive.AuditEntry, archive.ByGroup, domainaudit.ArchiveGroup(no), archive.Cursor{}, domainaudit.GroupSize)
	if err = ignoreDamage(err); err != nil {
		return nil, err
	}
	for _, r := range records {
		if len(r.ID) == 8 {
			all = append(all, audit.Stored{No: binary.BigEndian.Uint64([]byte(r.ID)), Data: r.Data})
		}
	}
	slices.SortStableFunc(all, func(a, b audit.Stored) int { return cmp.Compare(a.No, b.No) })
	return slices.CompactFunc(all, func(a, b audit.Stored) bool { return a.No == b.No }), nil
}
