// Package localdoor is the door for users who hold the data directory of a running service: through it the command line changes the
// service's records, on a loopback port that service.json in the directory names. Requests and answers are authenticated
// with a key that is derived from the secret in the same directory, so the door works for every user who can read the secret,
// including root, and for no other.
package localdoor

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/secretrotation"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/support"
)

// Limits of the door. They also apply to local users without the secret; other machines cannot connect.
const (
	connectionsMax = 64
	bodyMax        = 64 << 10 // bytes
	headerMax      = 8 << 10  // bytes
	readPatience   = 5 * time.Second
	answerPatience = 30 * time.Second
	idlePatience   = 10 * time.Second
)

// Paths of the door.
const (
	runsPath = "/v1/runs"

	listPath   = "/v1/keys/list"
	createPath = "/v1/keys/create"
	revokePath = "/v1/keys/revoke"

	rotatePath = "/v1/keys/rotate"
	finishPath = "/v1/keys/finish"

	limitPath             = "/v1/keys/limit"
	revokeCredentialsPath = "/v1/keys/revoke-credentials"
)

// doorName is the name of this door in audit records.
const doorName = "local"

type problem struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Config is what a Door needs.
type Config struct {
	Dir  string // data directory
	Keys *keyring.Ring
	// Secrets rotates the cell's secret.
	Secrets *secretrotation.Rotator
	Log     *slog.Logger

	Audit   *audit.Log
	RolesOf keyring.RolesOf // for explanations
	Cluster Cluster         // nil: a single machine
	// Stream writes a backup that the caller stores.
	Stream func(ctx context.Context, to io.Writer, in StreamRequest) (backup.Summary, error)
	// Stored records that the caller has stored the backup.
	Stored func(ctx context.Context, b StoredBackup) error
	// Export writes ended records.
	Export func(ctx context.Context, to io.Writer, in ExportRequest) error
	// SupportBundle gathers the service's half of a support bundle.
	SupportBundle func(ctx context.Context, processor time.Duration) (*support.Parts, error)
	// Reload reads the settings of the service again.
	Reload func(ctx context.Context) (settings.Reloaded, error)
}

// Door serves the local port.
type Door struct {
	config Config
	run    string // identifies this run of the service
	nonces nonces
	server http.Server
	served chan struct{}
	end    context.CancelFunc // of the contexts of all requests
}

// Open listens and writes service.json.
func Open(c Config) (*Door, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("local door: %w", err)
	}
	running, end := context.WithCancel(context.Background())
	d := &Door{config: c, run: rand.Text(), served: make(chan struct{}), end: end}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+runsPath, d.wrap(runs))
	mux.HandleFunc("POST "+listPath, d.wrap(d.list))
	mux.HandleFunc("POST "+createPath, d.wrap(changing(d, "keys create", d.create)))
	mux.HandleFunc("POST "+revokePath, d.wrap(changing(d, "keys revoke", d.revoke)))
	mux.HandleFunc("POST "+rotatePath, d.wrap(changing(d, "keys rotate", d.rotate)))
	mux.HandleFunc("POST "+finishPath, d.wrap(changing(d, "keys rotate --finish", d.finish)))
	mux.HandleFunc("POST "+limitPath, d.wrap(changing(d, "keys limit", d.limit)))
	mux.HandleFunc("POST "+revokeCredentialsPath, d.wrap(changing(d, "keys revoke-credentials", d.revokeCredentials)))
	d.policyPaths(mux)
	d.secretPaths(mux)
	d.clusterPaths(mux)
	mux.HandleFunc("POST "+supportPath, d.wrapSlow(changing(d, "support-bundle", d.support)))
	mux.HandleFunc("POST "+reloadPath, d.wrap(changing(d, "reload", d.reload)))
	mux.HandleFunc("POST "+storedPath, d.wrap(d.stored))
	mux.HandleFunc("POST "+streamPath, d.stream("backup", d.streamBackup))
	mux.HandleFunc("POST "+exportPath, d.stream("export", d.streamExport))
	d.server = http.Server{
		Handler: mux, MaxHeaderBytes: headerMax, ReadTimeout: readPatience, WriteTimeout: answerPatience, IdleTimeout: idlePatience,
		BaseContext: func(net.Listener) context.Context { return running },
		ErrorLog:    slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	if err := writeServiceFile(c.Dir, serviceFile{fileFormat, l.Addr().String(), d.run, os.Getpid(), time.Now().UTC().Truncate(time.Second)}); err != nil {
		l.Close()
		return nil, fmt.Errorf("local door: %w", err)
	}
	go func() {
		defer close(d.served)
		if err := d.server.Serve(connlimit.AtMost(l, connectionsMax)); !errors.Is(err, http.ErrServerClosed) {
			c.Log.Error("the local port for commands failed: commands with --data cannot reach this service", "error", err)
		}
	}()
	return d, nil
}

// closePatience is how long Close lets requests continue. Most commands take milliseconds. A backup or an export can take longer than a supervisor
// waits for the whole service to stop.
const closePatience = 2 * time.Second

// Close removes service.json and ends the door. Requests in progress are ended after closePatience; Close returns once all have ended, or ctx.
func (d *Door) Close(ctx context.Context) error {
	err := os.Remove(filepath.Join(d.config.Dir, fileName))
	ending := time.AfterFunc(closePatience, d.end)
	defer ending.Stop()
	defer d.end()
	if stop := d.server.Shutdown(ctx); stop != nil {
		_ = d.server.Close()
	}
	<-d.served
	return err
}

// call carries out a request whose sender holds the secret.
type call func(r *http.Request, body []byte) (answer any, err error)

// wrap checks that the sender of a request holds the secret, and signs the answer.
func (d *Door) wrap(do call) http.HandlerFunc {
	return d.handle(do, func(http.ResponseWriter) {})
}

// wrapSlow is wrap for operations that may take any time. They end when the caller disconnects.
func (d *Door) wrapSlow(do call) http.HandlerFunc {
	return d.handle(do, func(w http.ResponseWriter) {
		c := http.NewResponseController(w)
		_, _ = c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{}) // they fail if the connection is closed
	})
}

func (d *Door) handle(do call, accepted func(http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, by, ok := d.proven(w, r)
		if !ok {
			return
		}
		accepted(w)
		answer, err := do(r, body)
		status := http.StatusOK
		if err != nil {
			status, answer = d.problem(r, err)
		}
		d.answer(w, by, status, answer)
	}
}

// proof has the values for signing the answer to a request.
type proof struct {
	key   []byte // that signed the request
	nonce string
}

// proven reads a request and checks that its sender holds the secret; otherwise it answers the request itself.
func (d *Door) proven(w http.ResponseWriter, r *http.Request) (body []byte, by proof, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		http.Error(w, "the body cannot be read, or has more than 65536 bytes", http.StatusBadRequest)
		return nil, by, false
	}
	by.nonce = r.Header.Get(nonceHeader)
	key, status, refused := d.check(r, by.nonce, body)
	if refused != "" {
		http.Error(w, refused, status)
		return nil, by, false
	}
	by.key = key
	return body, by, true
}

// answer sends a signed answer.
func (d *Door) answer(w http.ResponseWriter, by proof, status int, answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // the types of answers can always be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(proofHeader, answerProof(by.key, by.nonce, status, text))
	w.WriteHeader(status)
	_, _ = w.Write(text) // fails if the caller has gone
}

// check returns the key that signed a request.
func (d *Door) check(r *http.Request, nonce string, body []byte) (key []byte, status int, refused string) {
	date := r.Header.Get(dateHeader)
	proven := d.config.Keys.CellSecret().Accepts("command on this machine", func(g identity.CellSecret) bool {
		by := g.LocalKey()
		ok := equal(r.Header.Get(proofHeader), requestProof(by, d.run, r.Method, r.URL.Path, date, nonce, body))
		if ok {
			key = by
		}
		return ok
	})
	if !proven || len(nonce) != 2*nonceSize {
		return nil, http.StatusForbidden, "the request is not signed with the secret of this service's data directory"
	}
	at, _ := strconv.ParseInt(date, 10, 64) // signed, so it is a number
	now := time.Now()
	if age := now.Sub(time.UnixMilli(at)); age > skewMax || age < -skewMax {
		return nil, http.StatusForbidden, "the request was signed too long ago, or is ahead of this service's clock"
	}
	switch fresh, room := d.nonces.take(nonce, now); {
	case !fresh:
		return nil, http.StatusForbidden, "the request was sent before"
	case !room:
		return nil, http.StatusServiceUnavailable, "too many requests within a minute"
	}
	return key, 0, ""
}

func (d *Door) problem(r *http.Request, err error) (status int, p problem) {
	if refusal, ok := errors.AsType[*domain.Refusal](err); ok {
		return http.StatusConflict, problem{refusal.Reason.String(), engine.ForOperators(refusal)}
	}
	if errors.Is(err, engine.ErrStopped) {
		return http.StatusServiceUnavailable, problem{"Stopped", err.Error()}
	}
	d.config.Log.Error("a request of the command line failed", "path", r.URL.Path, "error", err)
	return http.StatusInternalServerError, problem{"Internal", err.Error()}
}

// byUser returns the actor of a request. A user who can read the data directory may do everything, so the user's name is only a note.
func byUser(r *http.Request, user string) access.Actor {
	by := identity.Principal{ID: Principal(user)}
	return by.Actor(r, doorName)
}

// Principal returns the name of a holder of the data directory in audit records.
func Principal(user string) string { return "data directory (user " + user + ")" }
