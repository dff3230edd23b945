package sessionlogs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/s3"
)

// logsBelow begins the keys of archives in a bucket.
const logsBelow = "session-logs/"

func keyOf(name string) string { return logsBelow + name + suffix }

// bucketError means that the object store did not accept an archive.
type bucketError struct{ cause error }

func (e *bucketError) Error() string { return e.cause.Error() }
func (e *bucketError) Unwrap() error { return e.cause }

// moveToBucket moves an archive from the disk to the bucket. It removes the archive from the disk even if it fails: the agent keeps it until the service has it.
func (d *Door) moveToBucket(ctx context.Context, name string) error {
	content, err := d.Store.open(name)
	if err != nil {
		return err
	}
	defer func() {
		content.Close()
		if err := d.Store.remove(name); err != nil {
			d.Log.Warn("log of a game session cannot be removed from the disk: it stays until it expires", "error", err)
		}
	}()
	sum := sha256.New()
	size, err := io.Copy(sum, content)
	if err != nil {
		return err
	}
	if err := d.Bucket.Put(ctx, keyOf(name), content, size, [sha256.Size]byte(sum.Sum(nil))); err != nil {
		return &bucketError{err}
	}
	return nil
}

// hasElsewhere reports whether the bucket, or another node, has an archive. The error is an Overloaded refusal.
func (d *Door) hasElsewhere(ctx context.Context, name string) (bool, error) {
	if d.Bucket != nil {
		info, err := d.Bucket.Head(ctx, keyOf(name))
		if err == nil && info.Modified.After(d.Store.Now().Add(-Keep)) {
			return true, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.Log.Error("object store does not say whether it has the log of a game session", "error", err)
			return false, domain.Refuse(domain.Overloaded, "the object store does not say whether it has the log of this game session")
		}
	}
	node, err := d.holder(ctx, name)
	return node != "", err
}

// giveFromBucket answers with an archive from the bucket. It reports false, without an answer, if the bucket lacks the archive.
func (d *Door) giveFromBucket(w http.ResponseWriter, r *http.Request, name string) bool {
	ctx, cancel := context.WithTimeout(r.Context(), transferMax) // a store that hangs must not occupy the slot of a fetch
	defer cancel()
	content, err := d.Bucket.Open(ctx, keyOf(name), r.Header.Get("Range"))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if refused, ok := errors.AsType[*s3.Error](err); ok && refused.Status == http.StatusRequestedRangeNotSatisfiable {
		http.Error(w, "the archive is shorter", refused.Status)
		return true
	}
	if err != nil {
		d.Log.Error("log of a game session cannot be read from the object store", "error", err)
		http.Error(w, "the object store cannot return the archive at the moment", http.StatusServiceUnavailable)
		return true
	}
	defer content.Body.Close()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferMax)) // only connections in tests have no deadlines
	archiveHeader(w, name)
	for _, header := range []string{"Content-Length", "Content-Range", "Accept-Ranges"} {
		if value := content.Header.Get(header); value != "" {
			w.Header().Set(header, value)
		}
	}
	w.WriteHeader(content.StatusCode)
	if r.Method == http.MethodHead {
		return true
	}
	if _, err := io.Copy(w, content.Body); err != nil {
		panic(http.ErrAbortHandler) // the client must not mistake a part for the whole
	}
	return true
}

// SweepBucket removes archives from the bucket that are older than Keep, and the oldest ones beyond the quota. Only one node calls it.
func (d *Door) SweepBucket(ctx context.Context) error {
	var all []s3.Info
	bytes, until := int64(0), time.Time{}
	err := d.Bucket.List(ctx, logsBelow, func(now time.Time, page []s3.Info) error {
		until = now.Add(-Keep)
		for _, x := range page {
			bytes += x.Size
		}
		all = append(all, page...)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b s3.Info) int { return a.Modified.Compare(b.Modified) })
	quota, _ := d.Store.limits()
	for i, x := range all {
		if x.Modified.After(until) && bytes <= quota && len(all)-i <= filesMax {
			break
		}
		if err := d.Bucket.Delete(ctx, x.Key); err != nil {
			return fmt.Errorf("remove an old log: %w", err)
		}
		bytes -= x.Size
	}
	return nil
}
