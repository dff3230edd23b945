package service

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/localdoor"
)

// noteBackup records a stored backup in the state, so that every node knows how old the last one is. A backup without this record is just as usable.
func (x *Service) noteBackup(ctx context.Context, b localdoor.StoredBackup) error {
	to := strings.ToValidUTF8(b.To[:min(len(b.To), access.BackupPlaceMax)], "")
	err := x.engine.Do(ctx, &access.NoteBackup{Backup: access.Backup{At: domain.TimeOf(b.Made), Entry: b.Entry, To: to}})
	if err != nil {
		x.log.Warn("a backup was stored, but the service could not record it and still shows the previous one as the last", "to", to, "error", err)
	}
	return err
}

// lastBackup collects metrics of the last backup that the state knows.
type lastBackup struct{ engine *engine.Engine }

var lastBackupDesc = prometheus.NewDesc("muster_backup_last_success_timestamp_seconds", "Unix time at which the last stored backup began. There is no value before the first one.", nil, nil)

// Describe implements prometheus.Collector.
func (lastBackup) Describe(to chan<- *prometheus.Desc) { to <- lastBackupDesc }

// Collect implements prometheus.Collector.
func (l lastBackup) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.engine.ReadHere(ctx, func(v *cell.View) error { // there is no value while this node has no state
		if b, ok := v.LastBackup(); ok {
			to <- prometheus.MustNewConstMetric(lastBackupDesc, prometheus.GaugeValue, float64(b.At.Std().UnixMilli())/1000)
		}
		return nil
	})
}

// streamBackup sends a backup to a command that stores it, and keeps the journal for the next one.
func (x *Service) streamBackup(ctx context.Context, to io.Writer, in localdoor.StreamRequest) (s backup.Summary, err error) {
	if in.Rate < 0 {
		return s, domain.Refuse(domain.Invalid, "rate: %d; want bytes per second, or 0 for no bound", in.Rate)
	}
	if in.Since != nil {
		engine.KeepJournal(x.engine, in.Since.Entry+1)
	}
	s, err = x.makeBackup(ctx, to, in)
	if err == nil && !in.Alone {
		engine.KeepJournal(x.engine, s.Head.Entry+1)
	}
	return s, err
}

// runningBackup is the backup that is being made.
type runningBackup struct {
	to    string
	began time.Time
}

func (x *Service) makeBackup(ctx context.Context, to io.Writer, in localdoor.StreamRequest) (s backup.Summary, err error) {
	began := time.Now()
	mine := &runningBackup{in.To, began}
	for !x.saving.CompareAndSwap(nil, mine) {
		if other := x.saving.Load(); other != nil {
			return s, domain.Refuse(domain.Conflict, "another backup is in progress: it began at %s and is written to %.300s", other.began.UTC().Format(time.RFC3339), other.to)
		}
	}
	defer x.saving.Store(nil)
	secret := x.secret.Frozen()
	state, err := x.engine.Backup(ctx)
	if errors.Is(err, engine.ErrArchiveLacks) {
		return s, domain.Refuse(domain.Conflict, "this node is still copying the archive from another node: make the backup there, or later")
	}
	if err != nil {
		return s, err
	}
	c := backup.Content{
		Head: backup.Head{
			Installation: x.installation(), Entry: state.Entry, Level: state.Level, State: state.Last.Std(), Forgotten: state.Forgotten,
			Made: began.UTC(), Release: x.version,
			Next: int64(state.Next), Audited: state.Audited, Retention: engine.DefaultRetention.Milliseconds(),
		},
		State: state.Write, Secret: x.secret.With(secret), Key: x.key, Archive: x.archive,
	}
	if c.Head.Continues(in.Since, state.Noted) {
		c.Head.Since = in.Since
		if err := x.addEntries(ctx, &c); err != nil {
			return s, err
		}
	}
	if s, err = backup.Write(ctx, backup.Paced(ctx, to, in.Rate), c); err != nil {
		x.log.Error("a backup failed", "to", in.To, "error", err)
		return s, err
	}
	x.log.Info("backup made", "to", in.To, "entry", s.Head.Entry, "bytes", s.Bytes, "took", time.Since(began).Round(time.Millisecond))
	return s, nil
}

// addEntries adds the journal since the earlier backup, unless it has been trimmed meanwhile.
func (x *Service) addEntries(ctx context.Context, c *backup.Content) error {
	from, to := c.Head.Since.Entry+1, c.Head.Entry
	if from > to {
		return nil
	}
	err := engine.Entries(ctx, x.engine, from, from, func(journal.Entry) error { return nil })
	if errors.Is(err, journal.ErrTrimmed) {
		return nil
	}
	if err != nil {
		return err
	}
	c.Head.From = from
	c.Entries = func(f func(number uint64, batch []byte) error) error {
		return engine.Entries(ctx, x.engine, from, to, func(e journal.Entry) error { return f(e.Number, e.Batch) })
	}
	return nil
}

func (x *Service) installation() uuid.UUID {
	if x.node != nil {
		return x.node.Data().Cluster()
	}
	return x.archive.Installation()
}
