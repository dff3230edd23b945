package service

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
)

// backup writes a backup to a file while the service goes on. The disk keeps twice the reserve: with less than the reserve the service would refuse changes.
func (x *Service) backup(ctx context.Context, path string) (s backup.Summary, err error) {
	if !x.saving.TryLock() {
		return s, domain.Refuse(domain.Conflict, "another backup is being made")
	}
	defer x.saving.Unlock()
	began := time.Now()
	state, err := x.engine.Backup(ctx)
	if errors.Is(err, engine.ErrArchiveLacks) {
		return s, domain.Refuse(domain.Conflict, "this node still copies the archive from another one: make the backup there, or later")
	}
	if err != nil {
		return s, err
	}
	s, err = backup.WriteFile(ctx, path, 2*uint64(x.settings.DiskReserve), backup.Content{
		Head: backup.Head{
			Installation: x.installation(), Entry: state.Entry, Level: state.Level, State: state.Last.Std(), Forgotten: state.Forgotten,
			Made: began.UTC(), Release: x.version,
		},
		State: state.Write, Secret: x.secret, Key: x.key, Archive: x.archive,
	})
	if err != nil {
		x.log.Error("a backup was not made", "to", path, "error", err)
		return s, err
	}
	x.log.Info("backup made", "to", path, "entry", s.Head.Entry, "bytes", s.Bytes, "took", time.Since(began).Round(time.Millisecond))
	return s, nil
}

func (x *Service) installation() uuid.UUID {
	if x.node != nil {
		return x.node.Data().Cluster()
	}
	return x.archive.Installation()
}
