package repository

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/s3"
)

// newBucket returns a repository in a store, with another handler in front of it.
func newBucket(t *testing.T, before func(w http.ResponseWriter, r *http.Request) (answered bool)) *Repository {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("games"); err != nil {
		t.Fatal(err)
	}
	store := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !before(w, r) {
			store.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	place, err := s3.ParseAt("s3://games/backups?sse=AES256", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return New(&Bucket{Client: s3.New(place, credentials.NewStaticCredentialsProvider("AKID", "secret", "")), pause: time.Millisecond})
}

// A store that occasionally refuses, is slow, or ends connections in the middle of a body still gets whole backups.
func TestBucketThatFailsAtTimes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var requests, plain atomic.Int64
	r := newBucket(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && r.Header.Get("X-Amz-Server-Side-Encryption") != "AES256" {
			plain.Add(1)
		}
		switch requests.Add(1) % 7 {
		case 2:
			http.Error(w, "<Error><Code>SlowDown</Code></Error>", http.StatusServiceUnavailable)
			return true
		case 4:
			panic(http.ErrAbortHandler)
		case 6: // the head of an answer, and a part of a body
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		}
		return false
	})
	h.ended(time.Now().Add(-time.Hour), "one", "two")
	h.take(r)
	h.work(10)
	m := h.take(r)
	if v, err := r.Verify(t.Context(), Wanted{}, nil); err != nil || v.Replayed == 0 {
		t.Errorf("verified %+v, %v", v, err)
	}
	s, sum, records := restored(t, r, Wanted{Entry: m.Head.From + 3})
	if sum != h.sumAt(s.Head.Entry) || len(records) != 2 {
		t.Errorf("restored %+v, records %q", s, records)
	}
	if n := plain.Load(); n > 0 {
		t.Errorf("%d objects were stored without the encryption that was asked for", n)
	}
	if removed, err := r.Keep(t.Context(), 1); err != nil || removed != 0 {
		t.Errorf("removed %d young backups, %v", removed, err)
	}
}

// A permanent refusal by the store ends the backup at once, with the store's message.
func TestBucketThatRefuses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.ended(time.Now().Add(-time.Hour), "one") // an object behind that of the state
	refused := make(chan struct{}, 10)
	r := newBucket(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/objects/") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte("<Error><Code>AccessDenied</Code><Message>no key for you</Message></Error>"))
			refused <- struct{}{}
			return true
		}
		return false
	})
	options := h.options()
	options.Stream = func(ctx context.Context, since *backup.Since) (io.ReadCloser, error) {
		in, err := h.stream(ctx, since)
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(in)
		const end = 40 // the end block, behind state and records
		out, pipe := io.Pipe()
		go func() { // the end comes when an object has been refused
			_, _ = pipe.Write(content[:len(content)-end])
			select {
			case <-refused:
				time.Sleep(50 * time.Millisecond)
			case <-time.After(time.Second):
			}
			_, err := pipe.Write(content[len(content)-end:])
			pipe.CloseWithError(err)
		}()
		return out, err
	}
	if _, err := r.Take(t.Context(), options); err == nil || strings.Count(err.Error(), "AccessDenied: no key for you") != 1 || strings.Contains(err.Error(), "canceled") {
		t.Errorf("refused with %v", err)
	}
	if all, err := r.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d backups, %v", len(all), err)
	}
}

// An object that has grown is damaged, in a bucket as in a directory: Verify reports it with the other damage, and what is intact.
func TestObjectThatHasGrown(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Repository{"directory": New(NewDir(t.TempDir())), "bucket": newBucket(t, func(http.ResponseWriter, *http.Request) bool { return false })} {
		h := newHouse(t)
		m := h.take(r)
		object := objectName(m.State[0].Name)
		if err := r.store.Put(t.Context(), object, make([]byte, m.State[0].Stored+1)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Verify(t.Context(), Wanted{}, nil); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), "no backup is intact") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A person who waits for a store that does not answer is told the cause before each retry.
func TestBucketTellsWhyItWaits(t *testing.T) {
	t.Parallel()
	place, err := s3.ParseAt("s3://games/backups", "http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	b := &Bucket{Client: s3.New(place, aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("no role") })),
		Tell: func(err error, _ time.Duration) { told = append(told, err.Error()); cancel() }}
	_, err = b.Get(ctx, marker, 1)
	if err == nil || len(told) != 1 || told[0] != err.Error() || !strings.Contains(told[0], "credentials: no role") {
		t.Errorf("%v; told %q", err, told)
	}
}
