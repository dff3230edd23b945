package localdoor

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/cluster/node"
)

// leaving is a cluster whose leader makes every change, while the command that asks for it ends.
type leaving struct {
	Cluster
	leave func()
}

func (c leaving) Change(ctx context.Context, _ node.Change) (node.Status, error) {
	c.leave()
	return node.Status{}, ctx.Err()
}

// A change of the cluster is in the audit log even if the command that asks for it is interrupted.
func TestClusterChangeOfACommandThatLeaves(t *testing.T) {
	h := newHouse(t)
	log := audit.NewLog(h.engine, t.TempDir(), time.Now, slog.New(slog.DiscardHandler))
	t.Cleanup(log.Close)
	ctx, leave := context.WithCancel(t.Context())
	h.door.config.Audit, h.door.config.Cluster = log, leaving{leave: leave}
	r := httptest.NewRequestWithContext(ctx, "POST", changePath, nil)
	if _, err := h.door.change(r, []byte(`{"do": "remove", "node": "n3", "user": "ann"}`)); err != nil {
		t.Error(err)
	}
	page, err := audit.Read(t.Context(), h.engine, audit.Filter{}, 0, 1)
	if err != nil || len(page.Entries) != 1 || page.Entries[0].What != "cluster remove" || page.Entries[0].ID != "n3" {
		t.Errorf("%v, the audit log has %+v", err, page.Entries)
	}
}
