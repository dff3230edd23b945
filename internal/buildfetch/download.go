package buildfetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
)

// partURL returns the URL of a part, derived from that of the manifest.
func partURL(from string, digest buildfiles.Digest) (string, error) {
	u, err := url.Parse(from)
	if err != nil {
		return "", err
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/") + "/parts/" + digest.String() + "?" + u.RawQuery, nil
}

// get passes content to write as it arrives, with the offset of each piece, and checks its digest at the end. It continues an interrupted answer.
func (b *Builds) get(ctx context.Context, from string, digest buildfiles.Digest, limit int64, write func(p []byte, offset int64) error) error {
	d := &download{sum: sha256.New(), limit: limit, write: write}
	var err error
	progress := time.Now()
	for attempt := 0; attempt < attemptsMax; {
		before := d.have
		if err = b.attempt(ctx, from, d); err == nil {
			if got := hex.EncodeToString(d.sum.Sum(nil)); got != digest.String() {
				return fmt.Errorf("content of %d bytes has digest %s; want %s", d.have, got, digest)
			}
			return nil
		}
		if d.failed != nil || errors.Is(err, ErrTicket) || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			return err
		}
		if d.have > before {
			attempt, progress = 0, time.Now()
		}
		doublings := attempt
		if errors.Is(err, errBusy) && time.Since(progress) < busyMax {
			doublings = 0
		} else {
			attempt++
		}
		if err := b.wait(ctx, doublings); err != nil {
			return err
		}
	}
	return err
}

// errBusy means that the service refuses a request only because of its load.
var errBusy = errors.New("the service serves too many hosts at the moment")

func (b *Builds) wait(ctx context.Context, doublings int) error {
	if b.pause != nil {
		return b.pause(ctx, doublings)
	}
	select {
	case <-time.After(time.Second << doublings):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// download is the progress of a download.
type download struct {
	sum    hash.Hash
	have   int64
	limit  int64
	write  func(p []byte, offset int64) error
	failed error // writing failed, or there is more than the limit
}

func (d *download) Write(p []byte) (int, error) {
	if d.have+int64(len(p)) > d.limit {
		d.failed = fmt.Errorf("the service sends more than %d bytes", d.limit)
		return 0, d.failed
	}
	if d.failed = d.write(p, d.have); d.failed != nil {
		return 0, d.failed
	}
	d.sum.Write(p)
	d.have += int64(len(p))
	return len(p), nil
}

// stallMax is how long a server may take to answer, and how long it may pause within an answer.
const stallMax = 60 * time.Second

func (b *Builds) attempt(ctx context.Context, from string, d *download) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stalled := time.AfterFunc(stallMax, cancel)
	defer stalled.Stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	if d.have > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.have))
	}
	client := b.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(r)
	if err != nil {
		return hideQuery(err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusForbidden:
		return ErrTicket
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("the service does not have it: %w", fs.ErrNotExist)
	case answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != "":
		return errBusy
	case d.have == 0 && answer.StatusCode == http.StatusOK:
	case d.have > 0 && answer.StatusCode == http.StatusPartialContent && strings.HasPrefix(answer.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", d.have)):
	case d.have > 0 && answer.StatusCode == http.StatusRequestedRangeNotSatisfiable: // everything had arrived before the connection broke
		return nil
	default:
		return fmt.Errorf("the service answered %s", answer.Status)
	}
	_, err = io.Copy(d, &watched{answer.Body, stalled})
	return hideQuery(err)
}

// watched postpones the cancellation of a request whenever data arrive.
type watched struct {
	io.Reader
	stalled *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.stalled.Reset(stallMax)
	}
	return n, err
}

// hideQuery keeps the ticket of a URL out of errors, which are logged.
func hideQuery(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
