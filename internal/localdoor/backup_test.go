package localdoor

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain"
)

// A backup gets the path, and its answer or refusal comes back. It ends when the caller goes away.
func TestBackupOverTheLocalDoor(t *testing.T) {
	h := newHouse(t)
	began, ended := make(chan struct{}), make(chan struct{})
	h.door.config.Backup = func(ctx context.Context, path string) (s backup.Summary, err error) {
		switch path {
		case "/there":
			return s, domain.Refuse(domain.Conflict, "it is there")
		case "/slow":
			close(began)
			<-ctx.Done()
			close(ended)
			return s, ctx.Err()
		}
		s.Head.Entry, s.Bytes, s.Damaged = 7, 99, 1
		return s, nil
	}
	log := audit.NewLog(h.engine, t.TempDir(), time.Now, slog.New(slog.DiscardHandler))
	defer log.Close()
	h.door.config.Audit = log
	c := h.client(t)
	c.Reason = "before the cup"
	if s, err := c.Backup(t.Context(), "/new"); err != nil || s.Head.Entry != 7 || s.Bytes != 99 || s.Damaged != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	page, err := audit.Read(t.Context(), h.engine, audit.Filter{}, 0, 10)
	if err != nil || len(page.Entries) != 1 || page.Entries[0].What != "backup" || page.Entries[0].ID != "/new" || page.Entries[0].Reason != c.Reason || page.Entries[0].Who != Principal("ann") {
		t.Errorf("the entries are %+v, %v; want one of the backup", page.Entries, err)
	}
	if _, err := c.Backup(t.Context(), "/there"); !refusedFor(err, domain.Conflict) {
		t.Errorf("refused with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := c.Backup(ctx, "/slow"); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller went away: %v", err)
	}
	<-ended
}
