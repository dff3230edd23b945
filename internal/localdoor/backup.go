package localdoor

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain"
)

// Paths of backups.
const (
	backupPath = "/v1/backup"
	storedPath = "/v1/backup/stored"
)

type backupRequest struct {
	To     string `json:"to"`
	User   string `json:"user"`
	Reason string `json:"reason,omitempty"`
}

func (d *Door) backup(r *http.Request, body []byte) (any, error) {
	var in backupRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	d.config.Log.Info("a backup was asked for", "to", in.To, "principal", Principal(in.User))
	ctx, err := recorded(r, byUser(r, in.User), "backup", in.Reason)
	if err != nil {
		return nil, err
	}
	s, err := d.config.Backup(audit.Without(ctx), in.To)
	d.config.Audit.Refused(ctx, err)
	if err == nil {
		d.config.Audit.Record(ctx, "backup", in.To)
	}
	return s, err
}

// Backup has the service write a backup of itself to an absolute path of this machine, and returns when it is on the disk. When ctx ends before, there is none.
func (c *Client) Backup(ctx context.Context, path string) (s backup.Summary, err error) {
	patient := *c
	patient.http.Timeout = 0
	return s, patient.call(ctx, backupPath, backupRequest{path, c.user, c.Reason}, &s)
}

// StoredBackup is a backup that the caller has stored.
type StoredBackup struct {
	To    string    `json:"to"`
	Entry uint64    `json:"entry"` // of the journal, after which its state is
	Made  time.Time `json:"made"`
}

func (d *Door) stored(r *http.Request, body []byte) (any, error) {
	var in StoredBackup
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	return struct{}{}, d.config.Stored(r.Context(), in)
}

// Stored tells the service that a backup is stored which it has sent.
func (c *Client) Stored(ctx context.Context, b StoredBackup) error {
	return c.call(ctx, storedPath, b, &struct{}{})
}
