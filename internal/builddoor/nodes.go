package builddoor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/cluster/requests"
)

// In a cluster, every node accepts uploads. The zip of a build stays at the node that received it until the build is READY. A multipart upload stays at the node where it
// began; the upload's id names that node, and other nodes forward to it. A change of the leader does not affect uploads.

// QuestionPrefix begins the paths of requests from other nodes: GET with a build id at the end returns the object that was uploaded for it.
const QuestionPrefix = "/builds/uploads/"

const objectWait = 3 * time.Second // for the answers of other nodes

// randomDigits is the length of a randomID.
const randomDigits = 32

// multipartID returns the id for a new multipart upload.
func (d *Door) multipartID() string {
	if d.Net == nil {
		return randomID()
	}
	return randomID() + "-" + d.Net.Self()
}

// elsewhere returns the other node that has the upload of a request; empty: it is this node, or no member.
func (d *Door) elsewhere(r *http.Request, query url.Values) string {
	id := query.Get("uploadId")
	if d.Net == nil || len(id) < randomDigits+2 || id[randomDigits] != '-' || requests.Forwarded(r) {
		return ""
	}
	node := id[randomDigits+1:]
	if !slices.Contains(d.Net.Others(), node) {
		return ""
	}
	return node
}

func (d *Door) forward(w http.ResponseWriter, r *http.Request, node string) (err error) {
	d.Net.Forward(w, r, node, d.Private(r), func(cause error) {
		d.Log.Warn("upload of a build cannot be forwarded to the node that has its first parts", "node", node, "path", r.URL.Path, "error", cause)
		err = fail(http.StatusServiceUnavailable, "ServiceUnavailable", "node %s, which has the first parts of this upload, cannot be reached: try again, or begin another upload", node)
	})
	return err
}

// ServeQuestion sends the object of a build to another node.
func (d *Door) ServeQuestion(w http.ResponseWriter, r *http.Request) {
	build := strings.TrimPrefix(r.URL.Path, QuestionPrefix)
	if r.Method != http.MethodGet || build == "" || strings.ContainsAny(build, `/\.`) {
		http.Error(w, "want GET "+QuestionPrefix+"BUILD", http.StatusBadRequest)
		return
	}
	o, ok, err := d.object(build)
	switch {
	case err != nil:
		d.Log.Error("upload of a build cannot be read", "build", build, "error", err)
		http.Error(w, "the upload cannot be read", http.StatusInternalServerError)
	case !ok:
		http.Error(w, "nothing was uploaded here for the build", http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o) // fails if the other node has gone
	}
}

// anyObject returns the object of the build from any node that answers: a client that lost an answer may repeat its request at another node.
func (u *upload) anyObject() (o object, ok bool, err error) {
	if o, ok, err = u.object(u.build); ok || err != nil || u.Net == nil {
		return o, ok, err
	}
	ctx, cancel := context.WithTimeout(u.r.Context(), objectWait)
	defer cancel()
	var found sync.Mutex
	var asking sync.WaitGroup
	for _, node := range u.Net.Others() {
		asking.Go(func() {
			theirs, err := u.objectAt(ctx, node)
			if err != nil {
				return // treated as if it had none: the client then gets a refusal, and nothing is lost
			}
			found.Lock()
			defer found.Unlock()
			o, ok = theirs, true
			cancel()
		})
	}
	asking.Wait()
	return o, ok, nil
}

const objectMax = 2 << 20 // bytes of an object with 10,000 files

func (u *upload) objectAt(ctx context.Context, node string) (o object, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, requests.URL(node, QuestionPrefix+u.build), nil)
	if err != nil {
		return o, err
	}
	answer, err := u.Net.Do(r)
	if err != nil {
		return o, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return o, errors.New(answer.Status)
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, objectMax)).Decode(&o)
	return o, err
}
