package localdoor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain"
)

// A stream arrives as a whole, with its proof, or ends with an error. One that was sent has an entry in the audit log.
func TestStreamOverTheLocalDoor(t *testing.T) {
	h := newHouse(t)
	log := audit.NewLog(h.engine, t.TempDir(), time.Now, slog.New(slog.DiscardHandler))
	defer log.Close()
	h.door.config.Audit = log
	h.door.config.Stream = func(ctx context.Context, to io.Writer, in StreamRequest) (s backup.Summary, err error) {
		switch in.To {
		case "refused":
			return s, domain.Refuse(domain.Conflict, "another one")
		case "cut":
			_, err = to.Write(make([]byte, 100_000))
			return s, errors.Join(err, errors.New("the disk failed"))
		}
		for range in.Rate {
			if _, err := to.Write(bytes.Repeat([]byte("abc"), 1000)); err != nil {
				return s, err
			}
		}
		return s, nil
	}
	c := h.client(t)
	for _, pieces := range []int64{1, 1000} {
		in, err := c.Stream(t.Context(), StreamRequest{To: "there", Rate: pieces})
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, in)
		if err := errors.Join(err, in.Close()); err != nil || n != pieces*3000 {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	if _, err := c.Stream(t.Context(), StreamRequest{To: "refused"}); !domain.IsRefused(err, domain.Conflict) {
		t.Errorf("refused with %v", err)
	}
	in, err := c.Stream(t.Context(), StreamRequest{To: "cut"})
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	if err == nil {
		t.Error("a stream that was cut has ended as if it were whole")
	}
	if page, err := audit.Read(t.Context(), h.engine, audit.Filter{}, 0, 10); err != nil || len(page.Entries) != 2 {
		t.Errorf("the entries are %+v, %v; want those of two backups", page.Entries, err)
	}
}

// An answer that another program has sent, or has altered in transit, is refused.
func TestStreamWithoutProof(t *testing.T) {
	h := newHouse(t)
	h.door.config.Stream = func(_ context.Context, to io.Writer, _ StreamRequest) (s backup.Summary, err error) {
		_, err = to.Write([]byte("backup"))
		return s, err
	}
	door := h.door.server.Handler
	for _, proof := range []string{"", "0000"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", proofHeader)
			_, _ = w.Write([]byte("backup"))
			w.Header().Set(proofHeader, proof)
		}))
		c := h.client(t)
		c.file.Address = server.Listener.Addr().String()
		in, err := c.Stream(t.Context(), StreamRequest{To: "there"})
		if err == nil {
			_, err = io.Copy(io.Discard, in)
		}
		if err == nil || !strings.Contains(err.Error(), "not sent by the service") {
			t.Errorf("with the proof %q: %v", proof, err)
		}
		server.Close()
	}
	answer := httptest.NewRecorder()
	door.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, streamPath, strings.NewReader(`{"to":"there"}`)))
	if answer.Code != http.StatusForbidden {
		t.Errorf("a request without proof: %d", answer.Code)
	}
}

// A service that stops does not wait for the end of a backup, whether it is being sent or its reader stalls.
func TestCloseEndsStreams(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, to io.Writer) error{
		"sent": func(ctx context.Context, _ io.Writer) error { <-ctx.Done(); return ctx.Err() },
		"stalls": func(_ context.Context, to io.Writer) (err error) {
			for err == nil {
				_, err = to.Write(make([]byte, 1<<20))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			began, ended := make(chan struct{}), make(chan error, 1)
			h.door.config.Stream = func(ctx context.Context, to io.Writer, _ StreamRequest) (s backup.Summary, err error) {
				if _, err := to.Write([]byte("backup")); err != nil {
					return s, err
				}
				close(began)
				err = do(ctx, to)
				ended <- err
				return s, err
			}
			c := h.client(t)
			go func() {
				if in, err := c.Stream(t.Context(), StreamRequest{To: "there"}); err == nil {
					<-t.Context().Done()
					_ = in.Close() // it was cut
				}
			}()
			<-began
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := errors.Join(h.door.Close(ctx), ctx.Err()); err != nil {
				t.Errorf("Close waits for the backup: %v", err)
			}
			if err := <-ended; err == nil {
				t.Error("the backup is complete")
			}
		})
	}
}
