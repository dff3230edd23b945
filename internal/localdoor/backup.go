package localdoor

import (
	"context"
	"net/http"
	"time"
)

const storedPath = "/v1/backup/stored"

// StoredBackup is a backup that the caller has stored.
type StoredBackup struct {
	To    string    `json:"to"`
	Entry uint64    `json:"entry"` // of the journal: the last one in the backup's state
	Made  time.Time `json:"made"`
}

func (d *Door) stored(r *http.Request, body []byte) (any, error) {
	in, err := read[StoredBackup](body)
	if err != nil {
		return nil, err
	}
	return struct{}{}, d.config.Stored(r.Context(), in)
}

// Stored tells the service that a backup that it sent is stored.
func (c *Client) Stored(ctx context.Context, b StoredBackup) error {
	return c.call(ctx, storedPath, b, &struct{}{})
}
