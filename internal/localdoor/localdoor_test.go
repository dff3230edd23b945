package localdoor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/waittest"
)

// house implements the part of a running service that this door uses.
type house struct {
	dir    string
	engine *engine.Engine
	keys   *keyring.Ring
	door   *Door
	log    *bytes.Buffer
	full   atomic.Bool // the disk
}

func (h *house) shortage() error {
	if h.full.Load() {
		return errors.New("no space left on the disk of /data")
	}
	return nil
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{dir: t.TempDir(), log: &bytes.Buffer{}}
	secret, err := identity.OpenCellSecret(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	config := cell.DefaultConfig()
	config.Access.AccessKeysMax = 3
	e := enginetest.Open(t, engine.Config{Cell: config, Short: h.shortage})
	h.engine = e
	log := slog.New(slog.NewTextHandler(h.log, nil))
	if h.keys, err = keyring.Open(t.Context(), keyring.Config{Engine: e, Secret: secret, Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.keys.Close)
	h.open(t)
	return h
}

func (h *house) open(t *testing.T) {
	t.Helper()
	door, err := Open(Config{Dir: h.dir, Keys: h.keys, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h.door = door
	t.Cleanup(func() { _ = door.Close(t.Context()) })
}

func (h *house) client(t *testing.T) *Client {
	t.Helper()
	c, err := NewClient(h.dir, nil, "ann")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestKeysOverTheLocalDoor(t *testing.T) {
	h := newHouse(t)
	c := h.client(t)
	made, err := c.Create(t.Context(), keyring.New{Role: access.Backend, Name: "lobby"})
	if err != nil {
		t.Fatal(err)
	}
	found, ok := h.keys.Find(made.ID)
	if !ok || found.Secret != made.Secret || found.Role != identity.Backend || made.CreatedBy.Door != "local" || !strings.Contains(made.CreatedBy.Principal, "ann") {
		t.Errorf("made %+v, found %t %v", made, ok, found)
	}
	revoked, err := c.Revoke(t.Context(), made.ID)
	if _, ok := h.keys.Find(made.ID); err != nil || ok || revoked.Works() {
		t.Errorf("revoked %+v, %v; it works: %t", revoked, err, ok)
	}
	all, err := c.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Secret != "" || all[0].RevokedBy == nil {
		t.Errorf("listed %+v, %v", all, err)
	}
	if text := h.log.String(); strings.Contains(text, made.Secret) || !strings.Contains(text, "access key revoked") {
		t.Errorf("log: %s", text)
	}
	if _, err := c.Revoke(t.Context(), "MUSTNOTTHERE"); !domain.IsRefused(err, domain.NotFound) {
		t.Errorf("an unknown key: %v", err)
	}
	for range 2 {
		if _, err := c.Create(t.Context(), keyring.New{Role: access.Client}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Create(t.Context(), keyring.New{Role: access.Client}); !domain.IsRefused(err, domain.LimitExceeded) {
		t.Errorf("beyond the limit: %v", err)
	}
}

// A refusal on a full disk names the disk.
func TestRefusalNamesTheFullDisk(t *testing.T) {
	h := newHouse(t)
	h.full.Store(true)
	_, err := h.client(t).Create(t.Context(), keyring.New{Role: access.Client})
	if !domain.IsRefused(err, domain.Overloaded) || !strings.HasSuffix(err.Error(), "at the moment: no space left on the disk of /data") {
		t.Error(err)
	}
}

// The audit log has every change that was refused.
func TestRefusedChangesAreRecorded(t *testing.T) {
	h := newHouse(t)
	log := audit.NewLog(h.engine, t.TempDir(), time.Now, slog.New(slog.DiscardHandler))
	h.door.config.Audit = log
	c := h.client(t)
	if _, err := c.Revoke(t.Context(), "MUSTNOTTHERE"); !domain.IsRefused(err, domain.NotFound) {
		t.Errorf("an unknown key: %v", err)
	}
	if err := c.RevokeCredentials(t.Context(), keyring.Credentials{}); !domain.IsRefused(err, domain.Invalid) {
		t.Errorf("credentials of none: %v", err)
	}
	log.Close()
	page, err := audit.Read(t.Context(), h.engine, audit.Filter{Refused: true}, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var refused []string
	for _, e := range page.Entries {
		refused = append(refused, e.What)
	}
	slices.Sort(refused)
	if want := []string{"keys revoke", "keys revoke-credentials"}; !slices.Equal(refused, want) {
		t.Errorf("refused %q, want %q", refused, want)
	}
}

// Runs works without the service's state, and asks once.
func TestRuns(t *testing.T) {
	h := newHouse(t)
	c := h.client(t)
	by := c.http.Transport
	c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == runsPath {
			r.URL.Path = "/v1/unknown"
		}
		return by.RoundTrip(r)
	})
	if runs, err := c.Runs(t.Context(), time.Minute); !runs || err != nil {
		t.Errorf("a service of a release that does not know the request: runs %t, %v", runs, err)
	}
	if err := h.engine.Close(); err != nil {
		t.Fatal(err)
	}
	asked := 0
	c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) { asked++; return by.RoundTrip(r) })
	if runs, err := c.Runs(t.Context(), time.Minute); !runs || err != nil || asked != 1 {
		t.Errorf("a service whose engine has stopped: runs %t, %v, after %d requests", runs, err, asked)
	}
	if err := h.door.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if runs, err := c.Runs(t.Context(), time.Minute); runs || err != nil || asked != 2 {
		t.Errorf("a service that has ended: runs %t, %v, after %d requests", runs, err, asked)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// forge sends a request that change has altered after it was signed.
func (h *house) forge(t *testing.T, change func(r *http.Request, body *[]byte, date, nonce *string, key *[]byte, run *string)) int {
	t.Helper()
	c := h.client(t)
	body, date, nonce := []byte("{}"), strconv.FormatInt(time.Now().UnixMilli(), 10), fmt.Sprintf("%032x", time.Now().UnixNano())
	key, run := c.secret.LocalKey(), c.file.Run
	r, err := http.NewRequest(http.MethodPost, "http://"+c.file.Address+listPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed := body
	if change != nil {
		change(r, &body, &date, &nonce, &key, &run)
	}
	r.Header.Set(dateHeader, date)
	r.Header.Set(nonceHeader, nonce)
	if r.Header.Get(proofHeader) == "" {
		r.Header.Set(proofHeader, requestProof(key, run, http.MethodPost, listPath, date, nonce, signed))
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

func TestOnlyHoldersOfTheSecret(t *testing.T) {
	h := newHouse(t)
	if status := h.forge(t, nil); status != http.StatusOK {
		t.Fatalf("the right request: %d", status)
	}
	var stranger identity.CellSecret
	nonce := strings.Repeat("7", 2*nonceSize)
	same := func(_ *http.Request, _ *[]byte, _, n *string, _ *[]byte, _ *string) { *n = nonce }
	if status := h.forge(t, same); status != http.StatusOK {
		t.Fatalf("a nonce of one's own: %d", status)
	}
	for name, change := range map[string]func(r *http.Request, body *[]byte, date, nonce *string, key *[]byte, run *string){
		"another secret":      func(_ *http.Request, _ *[]byte, _, _ *string, key *[]byte, _ *string) { *key = stranger.LocalKey() },
		"no proof":            func(r *http.Request, _ *[]byte, _, _ *string, _ *[]byte, _ *string) { r.Header.Set(proofHeader, "-") },
		"another body":        func(_ *http.Request, body *[]byte, _, _ *string, _ *[]byte, _ *string) { *body = []byte("{ }") },
		"another run":         func(_ *http.Request, _ *[]byte, _, _ *string, _ *[]byte, run *string) { *run = "earlier" },
		"another path":        func(r *http.Request, _ *[]byte, _, _ *string, _ *[]byte, _ *string) { r.URL.Path = createPath },
		"sent before":         same,
		"signed long ago":     func(_ *http.Request, _ *[]byte, date, _ *string, _ *[]byte, _ *string) { *date = "1700000000000" },
		"ahead of the clock":  func(_ *http.Request, _ *[]byte, date, _ *string, _ *[]byte, _ *string) { *date = "9700000000000" },
		"a date without form": func(_ *http.Request, _ *[]byte, date, _ *string, _ *[]byte, _ *string) { *date = "now" },
		"no nonce":            func(_ *http.Request, _ *[]byte, _, n *string, _ *[]byte, _ *string) { *n = "" },
	} {
		if status := h.forge(t, change); status != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", name, status)
		}
	}
	if status := h.forge(t, func(_ *http.Request, body *[]byte, _, _ *string, _ *[]byte, _ *string) {
		*body = make([]byte, bodyMax+1)
	}); status != http.StatusBadRequest {
		t.Errorf("a body beyond the bound: %d", status)
	}
}

// The memory for nonces is bounded. A nonce is dropped when its request is too old to be accepted anyway.
func TestNonces(t *testing.T) {
	n, now := nonces{}, time.Now()
	for i := range noncesMax {
		if fresh, room := n.take(strconv.Itoa(i), now); !fresh || !room {
			t.Fatalf("nonce %d: %t, %t", i, fresh, room)
		}
	}
	if _, room := n.take("more", now); room {
		t.Error("more nonces than the bound")
	}
	if fresh, _ := n.take("7", now); fresh {
		t.Error("a nonce was taken twice")
	}
	if fresh, room := n.take("7", now.Add(2*skewMax+time.Second)); !fresh || !room || len(n.seen) != 1 {
		t.Errorf("a minute later: %t, %t, %d remembered", fresh, room, len(n.seen))
	}
}

// The service.json of a stopped service misleads no command, even when another program now listens on its port.
func TestLeftoverServiceFile(t *testing.T) {
	h := newHouse(t)
	left, err := os.ReadFile(filepath.Join(h.dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	address := h.client(t).file.Address
	if err := h.door.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(h.dir, nil, "ann"); !errors.Is(err, ErrNoService) {
		t.Errorf("after an orderly end: %v", err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, fileName), left, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client(t).List(t.Context()); !errors.Is(err, ErrNoService) {
		t.Errorf("without a listener: %v", err)
	}
	other := http.Server{Addr: address, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "[]") })}
	go func() { _ = other.ListenAndServe() }()
	defer other.Close()
	waittest.Until(t, "the other program listens", func() bool { _, err := http.Get("http://" + address); return err == nil })
	if all, err := h.client(t).List(t.Context()); !errors.Is(err, ErrNoService) {
		t.Errorf("another program listens: %v, %v", all, err)
	}
}

// Calls to a service that hangs end, even those without another timeout.
func TestServiceThatHangs(t *testing.T) {
	h := newHouse(t)
	c := h.client(t)
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // the system takes connections for it
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	c.file.Address, c.http.Timeout = hangs.Addr().String(), 50*time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := c.Stream(ctx, StreamRequest{}); !errors.Is(err, ErrHangs) {
		t.Errorf("backup: %v", err)
	}
	if _, err := c.SupportBundle(ctx, 0); !errors.Is(err, ErrHangs) {
		t.Errorf("support bundle: %v", err)
	}
}

// Connections beyond the limit are closed.
func TestConnectionsAreBounded(t *testing.T) {
	h := newHouse(t)
	address := h.client(t).file.Address
	// On a busy machine the first connections may time out before the last one is made. Then more are accepted.
	closed, opened := false, 0
	for end := time.Now().Add(time.Minute); !closed && time.Now().Before(end); opened++ {
		c, err := dial(address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if opened < connectionsMax {
			continue
		}
		_ = c.SetReadDeadline(time.Now().Add(readPatience / 16)) // one that is kept ends later
		_, err = c.Read(make([]byte, 1))
		closed = errors.Is(err, io.EOF)
	}
	if !closed {
		t.Errorf("%d connections were all kept", opened)
	}
	// They are closed when their time to send a request is over.
	waittest.Until(t, "there is room for a client", func() bool { _, err := h.client(t).List(t.Context()); return err == nil })
}

func dial(address string) (net.Conn, error) { return net.Dial("tcp", address) }
