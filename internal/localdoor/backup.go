package localdoor

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain"
)

const backupPath = "/v1/backup"

type backupRequest struct {
	To   string `json:"to"`
	User string `json:"user"`
}

func (d *Door) backup(r *http.Request, body []byte) (any, error) {
	var in backupRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	d.config.Log.Info("a backup was asked for", "to", in.To, "principal", Principal(in.User))
	return d.config.Backup(r.Context(), in.To)
}

// Backup has the service write a backup of itself to an absolute path of this machine, and returns when it is on the disk. When ctx ends before, there is none.
func (c *Client) Backup(ctx context.Context, path string) (s backup.Summary, err error) {
	patient := *c
	patient.http.Timeout = 0
	return s, patient.call(ctx, backupPath, backupRequest{path, c.user}, &s)
}
