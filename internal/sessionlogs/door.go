package sessionlogs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/cluster/requests"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/s3"
)

// Prefix begins the paths of archives. The name of the archive follows it, and the query contains the ticket.
const Prefix = "/session-logs/v1/"

const ticketQuery = "ticket"

// Bounds of the door.
const (
	URLLife     = 15 * time.Minute // of a URL to fetch an archive, as documented in the API
	uploadLife  = time.Hour        // of a URL to upload one
	uploadsMax  = 8                // at a time
	fetchesMax  = 64               // at a time
	pauseMax    = time.Minute      // of a client during an upload
	transferMax = 30 * time.Minute // of an upload or a download
)

// Config is what a Door needs.
type Config struct {
	Store  *Store
	Secret identity.CellSecret
	URL    string        // of the service, for clients and agents
	Net    *requests.Net // to the other nodes of a cluster; nil: no cluster
	Bucket *s3.Client    // keeps the archives, and Store only those in transit; nil: Store keeps them
	Log    *slog.Logger
}

// Door receives archives from agents and serves them to clients.
type Door struct {
	Config

	uploads, fetches, copies chan struct{}
}

// New makes a Door.
func New(c Config) *Door {
	return &Door{Config: c, uploads: make(chan struct{}, uploadsMax), fetches: make(chan struct{}, fetchesMax), copies: make(chan struct{}, uploadsMax)}
}

// UploadURL returns the URL at which an agent uploads the archive of a game session, by PUT.
func (d *Door) UploadURL(session string) string {
	return d.url(identity.LogUpload, nameOf(session), uploadLife)
}

// URL returns the URL at which a client fetches the archive of a game session, by GET, within URLLife; false: there is none. The error, an Overloaded refusal, means that
// a node or the object store that may have the archive does not answer.
func (d *Door) URL(ctx context.Context, session string) (url string, ok bool, err error) {
	name := nameOf(session)
	if !d.Store.has(name) {
		if has, err := d.hasElsewhere(ctx, name); !has {
			return "", false, err
		}
	}
	return d.url(identity.LogFetch, name, URLLife), true, nil
}

func (d *Door) url(use identity.LogUse, name string, life time.Duration) string {
	return strings.TrimRight(d.Config.URL, "/") + Prefix + name + "?" + ticketQuery + "=" + d.Secret.LogTicket(use, name, d.Store.Now().Add(life))
}

// Serves reports whether a path belongs to this door.
func Serves(path string) bool { return strings.HasPrefix(path, Prefix) }

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	use := identity.LogFetch
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPut:
		use = identity.LogUpload
	default:
		http.Error(w, "want GET, HEAD or PUT", http.StatusMethodNotAllowed)
		return
	}
	if !isName(name) || !d.Secret.ChecksLogTicket(r.URL.Query().Get(ticketQuery), use, name, d.Store.Now()) {
		http.Error(w, "the ticket is missing, wrong or expired: GetGameSessionLogUrl returns a new URL", http.StatusForbidden)
		return
	}
	connlimit.Prove(r.Context())
	if use == identity.LogUpload {
		d.take(w, r, name)
	} else {
		d.give(w, r, name)
	}
}

// enter takes one of the slots for a kind of request, or refuses the request.
func enter(w http.ResponseWriter, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many logs of game sessions are transferred at the moment", http.StatusServiceUnavailable)
		return false
	}
}

// take stores an archive.
func (d *Door) take(w http.ResponseWriter, r *http.Request, name string) {
	if r.ContentLength < 1 || r.ContentLength > agentproto.LogBundleMax {
		http.Error(w, "want an archive of 1 byte to 66 MiB, with its length", http.StatusRequestEntityTooLarge)
		return
	}
	if !enter(w, d.uploads) {
		return
	}
	defer func() { <-d.uploads }()
	control := http.NewResponseController(w)
	body := &patient{body: r.Body, control: control, until: time.Now().Add(transferMax)}
	err := d.Store.put(name, body, r.ContentLength)
	switch {
	case err != nil:
	case d.Bucket != nil:
		err = d.moveToBucket(r.Context(), name)
	case d.Net != nil:
		err = d.copyElsewhere(r.Context(), name)
	}
	d.taken(w, r, body, err)
}

// taken answers an upload after take has stored it or failed.
func (d *Door) taken(w http.ResponseWriter, r *http.Request, body *patient, err error) {
	_ = body.control.SetWriteDeadline(time.Now().Add(pauseMax)) // copying may have used up the time since the last byte
	refused, isFull := errors.AsType[*FullError](err)
	alone, isAlone := errors.AsType[*aloneError](err)
	inBucket, isInBucket := errors.AsType[*bucketError](err)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusCreated)
	case isFull:
		d.Log.Error("log of a game session is refused, and its host tries again: no space", "error", err)
		http.Error(w, refused.Reason, http.StatusInsufficientStorage)
	case isInBucket && r.Context().Err() == nil:
		d.Log.Error("log of a game session cannot be put into the object store, and its host tries again", "error", inBucket.cause)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the object store does not accept the archive at the moment", http.StatusServiceUnavailable)
	case isAlone:
		d.Log.Error("log of a game session is at this node only, and its host tries again: no other node accepts a copy", "error", err)
		w.Header().Set("Retry-After", "5")
		http.Error(w, alone.Error(), http.StatusServiceUnavailable)
	case r.Context().Err() != nil || body.failed:
		http.Error(w, "the request ended before its content", http.StatusBadRequest)
	default:
		d.Log.Error("log of a game session cannot be stored, and its host tries again", "error", err)
		http.Error(w, "the service cannot store the archive", http.StatusInternalServerError)
	}
}

// patient is a body whose client must only send something within each pauseMax, until the limit for the whole transfer.
type patient struct {
	body    io.Reader
	control *http.ResponseController
	until   time.Time
	asked   time.Time
	failed  bool
}

func (p *patient) Read(b []byte) (int, error) {
	if now := time.Now(); now.Sub(p.asked) > time.Second {
		p.asked = now
		limit := now.Add(pauseMax)
		if limit.After(p.until) {
			limit = p.until
		}
		// Only connections in tests have no deadlines.
		_ = p.control.SetReadDeadline(limit)
		_ = p.control.SetWriteDeadline(limit.Add(pauseMax))
	}
	n, err := p.body.Read(b)
	p.failed = p.failed || err != nil && !errors.Is(err, io.EOF)
	return n, err
}

// give serves an archive.
func (d *Door) give(w http.ResponseWriter, r *http.Request, name string) {
	if !enter(w, d.fetches) {
		return
	}
	defer func() { <-d.fetches }()
	content, err := d.Store.open(name)
	if errors.Is(err, fs.ErrNotExist) && d.Bucket != nil && d.giveFromBucket(w, r, name) {
		return
	}
	if errors.Is(err, fs.ErrNotExist) && d.Net != nil && !requests.Forwarded(r) {
		d.giveFromElsewhere(w, r, name)
		return
	}
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "this log of a game session is no longer kept", http.StatusNotFound)
		return
	}
	if err != nil {
		d.Log.Error("log of a game session cannot be read", "error", err)
		http.Error(w, "the service cannot read the archive", http.StatusInternalServerError)
		return
	}
	defer content.Close()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferMax)) // only connections in tests have no deadlines
	archiveHeader(w, name)
	http.ServeContent(w, r, "", time.Time{}, content)
}

func archiveHeader(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+suffix+`"`)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "private, no-store")
}
