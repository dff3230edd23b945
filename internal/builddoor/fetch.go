package builddoor

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/objects"
	"github.com/musterhq/muster/internal/s3"
)

// ticketQuery is the parameter with the ticket in the URLs of a build.
const ticketQuery = "ticket"

// FetchPath returns the path and query at which hosts fetch the manifest of a build until the ticket expires. The parts are below the same path, at
// /parts/<digest>, with the same query.
func (d *Door) FetchPath(manifest string, life time.Duration) string {
	return FetchPrefix + manifest + "?" + ticketQuery + "=" + d.Secret.BuildTicket(manifest, d.Now().Add(life))
}

// awaitFetch takes one of the slots for requests of hosts, and waits for one if all are taken. Requests get slots in the order in which they arrive: if a host
// were refused at once, those that have slots would take them again with their next requests, and it would get none until they have their whole builds.
func (d *Door) awaitFetch(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	select {
	case d.fetches <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// serveFetch serves a manifest or a part to a host, from any byte on. A client with the ticket of one build and the digest of a part of another one already has
// its content, so the part is not looked up in the manifest.
func (d *Door) serveFetch(w http.ResponseWriter, r *http.Request) {
	manifest, part, isPart := strings.Cut(strings.TrimPrefix(r.URL.Path, FetchPrefix), "/parts/")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "want GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	if !d.Secret.ChecksBuildTicket(r.URL.Query().Get(ticketQuery), manifest, d.Now()) {
		http.Error(w, "the ticket is missing, wrong or expired: the agent gets a new one from the service", http.StatusForbidden)
		return
	}
	connlimit.Prove(r.Context())
	name := manifest
	if isPart {
		name = part
	}
	digest, err := buildfiles.ParseDigest(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !d.awaitFetch(r.Context()) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many hosts fetch builds at the moment", http.StatusServiceUnavailable)
		return
	}
	defer func() { <-d.fetches }()
	content, err := d.Parts.Open(r.Context(), digest)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, objects.ErrDamaged):
		http.Error(w, "the service does not have this part of the build, or it was damaged: push the build again", http.StatusNotFound)
		return
	case s3.IsFault(err):
		d.Log.Error("part of a build cannot be read from the object store", "digest", digest.String(), "error", err)
		http.Error(w, "the object store cannot return this part of the build at the moment", http.StatusServiceUnavailable)
		return
	case err != nil:
		d.Log.Error("part of a build cannot be read", "digest", digest.String(), "error", err)
		http.Error(w, "the service cannot read this part of the build", http.StatusInternalServerError)
		return
	}
	defer content.Close()
	// A part has at most 8 MiB. Only connections in tests have no deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(5 * pauseMax))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "private, immutable")
	w.Header().Set("ETag", `"`+digest.String()+`"`)
	http.ServeContent(w, r, "", time.Time{}, content)
}
