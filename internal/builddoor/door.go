// Package builddoor receives the files of builds and serves them to hosts. Clients upload a zip with the few S3 operations that
// `aws gamelift upload-build` and the SDKs use, or only the parts that the service does not have yet. Hosts fetch parts by digest.
package builddoor

import (
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/cluster/requests"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/objects"
	"github.com/musterhq/muster/internal/objects/copies"
	"github.com/musterhq/muster/internal/s3"
	"github.com/musterhq/muster/internal/signin"
)

const (
	// Bucket is the bucket for uploads of builds. A name with an underscore cannot be a host name, so every SDK writes it into the path.
	Bucket = "muster_builds"
	// UploadPrefix begins the paths of uploads.
	UploadPrefix = "/" + Bucket + "/"
	// FetchPrefix begins the paths at which hosts fetch builds.
	FetchPrefix = "/builds/v1/"

	suffix = ".zip" // of the object of a build, after the build's id
)

// Bounds of the door.
const (
	KeyLife     = time.Hour        // of upload credentials; the cloud service's are valid for 15 minutes, which is too short for a large build over a slow connection
	uploadsMax  = 32               // concurrent requests with content
	fetchesMax  = 128              // concurrent requests of hosts
	fetchWait   = 20 * time.Second // how long further ones wait, less than a host waits for an answer
	readingsMax = 2                // manifests that are read from requests concurrently: each takes several times its size in memory
)

// Config is what a Door needs.
type Config struct {
	Engine  *engine.Engine
	Secret  identity.CellSecret
	Objects *objects.Store           // uploads, until they are builds
	Parts   objects.Parts            // the parts of builds; nil: only in Objects
	Net     *requests.Net            // to the other nodes of a cluster; nil: no cluster
	Private func(*http.Request) bool // reports whether others on the network could not read or change a request
	Proxies *clientaddress.Proxies
	Signins *signin.Door
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
}

// Door serves uploads and downloads of builds.
type Door struct {
	Config

	uploads, fetches, readings chan struct{}

	completing sync.Mutex // so that an upload is completed only once
	intake     intake
	commits    *commits
}

// New makes a Door. Run turns uploads into builds.
func New(c Config) *Door {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Parts == nil {
		c.Parts = objects.Local{Store: c.Objects}
	}
	return &Door{
		Config: c, uploads: make(chan struct{}, uploadsMax), fetches: make(chan struct{}, fetchesMax), readings: make(chan struct{}, readingsMax),
		intake: newIntake(), commits: newCommits(),
	}
}

// Place returns the bucket and key at which the files of a build are uploaded.
func (d *Door) Place(build string) (bucket, key string) { return Bucket, build + suffix }

// Key returns credentials for the upload of a build.
func (d *Door) Key(build string) identity.UploadKey {
	return d.Secret.UploadKey(build, d.Now().Add(KeyLife))
}

// Serves reports whether a path belongs to this door.
func Serves(path string) bool {
	return strings.HasPrefix(path, UploadPrefix) || strings.HasPrefix(path, FetchPrefix) || path == "/"+Bucket
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, FetchPrefix) {
		d.serveFetch(w, r)
		return
	}
	if err := d.serveUpload(w, r); err != nil {
		d.refuse(w, r, err)
	}
}

// Refuse answers that the service does not accept such requests; message explains why.
func Refuse(w http.ResponseWriter, message string) {
	writeError(w, &apiError{Code: "AccessDenied", Message: message, status: http.StatusForbidden})
}

// refuse answers an error in the form of S3.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refused, ok := errors.AsType[*apiError](err)
	full, isFull := errors.AsType[*objects.FullError](err)
	busy, isBusy := errors.AsType[*domain.Refusal](err)
	few, isFew := errors.AsType[*copies.NotHeldError](err)
	switch {
	case ok:
	case isFew:
		d.Log.Error("upload of a build is not finished: too few nodes could copy its files", "path", r.URL.Path, "error", err)
		refused = &apiError{Code: "ServiceUnavailable", Message: few.Error(), status: http.StatusServiceUnavailable}
	case isFull:
		d.Log.Error("upload of a build refused: no space", "path", r.URL.Path, "error", err)
		refused = &apiError{Code: "EntityTooLarge", Message: full.Reason, status: http.StatusInsufficientStorage}
	case s3.IsFault(err):
		d.Log.Error("upload of a build failed at the object store", "path", r.URL.Path, "error", err)
		refused = &apiError{Code: "ServiceUnavailable", Message: "the service's object store does not accept the content at the moment; the service's log has the cause", status: http.StatusServiceUnavailable}
	case isBusy && busy.Reason == domain.Overloaded:
		refused = &apiError{Code: "ServiceUnavailable", Message: busy.Detail, status: http.StatusServiceUnavailable}
	case r.Context().Err() != nil || isClients(err):
		refused = &apiError{Code: "IncompleteBody", Message: "the request ended before its content: " + err.Error(), status: http.StatusBadRequest}
	default:
		d.Log.Error("upload of a build failed", "path", r.URL.Path, "error", err)
		refused = &apiError{Code: "InternalError", Message: "the service could not store the content", status: http.StatusInternalServerError}
	}
	w.Header().Set("Connection", "close") // the rest of the content is not read
	writeError(w, refused)
}

func writeError(w http.ResponseWriter, e *apiError) {
	w.Header().Set("Cache-Control", "no-store")
	writeXML(w, e.status, e)
}

func writeXML(w http.ResponseWriter, status int, v any) {
	text, err := xml.Marshal(v)
	if err != nil {
		panic(err) // only texts and numbers of our own are written
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), text...)) // fails if the client has gone
}

// enter takes one of the slots for a kind of request; false: all are taken.
func enter(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

func slowDown() error {
	return fail(http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate: too many uploads at a time.")
}

// serveUpload authenticates an upload and finds its build.
func (d *Door) serveUpload(w http.ResponseWriter, r *http.Request) (err error) {
	s, err := d.authenticate(r)
	if err != nil {
		return err
	}
	connlimit.Prove(r.Context())
	if r.URL.Path != UploadPrefix+s.upload.Build+suffix {
		return fail(http.StatusForbidden, "AccessDenied", "these credentials are for %s%s only", UploadPrefix, s.upload.Build+suffix)
	}
	if !enter(d.uploads) {
		return slowDown()
	}
	defer func() { <-d.uploads }()
	control := http.NewResponseController(w)
	r.Body = &patient{ReadCloser: r.Body, control: control}
	defer func() {
		if err != nil && r.Header.Get("Expect") == "" {
			readOn(r, control)
		}
	}()
	query := r.URL.Query()
	if node := d.elsewhere(r, query); node != "" {
		return d.forward(w, r, node)
	}
	operation, known := operations[operationOf(r, query)]
	if !known {
		return fail(http.StatusNotImplemented, "NotImplemented", "this store accepts only uploads of builds")
	}
	u := &upload{Door: d, w: w, r: r, query: query, signed: s, build: s.upload.Build}
	u.by = audit.Origin{Principal: uploadCredentials + " " + s.upload.ID, Door: audit.DoorBuilds, Address: d.Proxies.Of(r), Agent: r.UserAgent(), Operation: uploadOperation}
	if u.open, err = d.uploadable(r.Context(), u.build); err != nil {
		return err
	}
	return operation(u)
}

// Limits for reading the rest of a refused upload.
const (
	refusedBytesMax = 16 << 20
	refusedWait     = 5 * time.Second
)

// readOn reads the rest of a refused upload. Most clients send everything before they read the answer, and would never see it if the
// connection was closed earlier.
func readOn(r *http.Request, control *http.ResponseController) {
	_ = control.SetReadDeadline(time.Now().Add(refusedWait)) // only connections in tests have no deadlines
	body := r.Body
	if p, ok := body.(*patient); ok {
		body = p.ReadCloser
	}
	_, _ = io.CopyN(io.Discard, body, refusedBytesMax) // the answer is sent in any case
}

// operationOf names an operation of S3 or of the service by method, parameters and headers.
func operationOf(r *http.Request, query url.Values) string {
	name := r.Method
	for _, parameter := range slices.Sorted(maps.Keys(query)) {
		if lower := strings.ToLower(parameter); lower != "x-id" && !strings.HasPrefix(lower, "x-amz-") { // SDKs add x-id, presigned URLs add x-amz-…
			name += " " + parameter
		}
	}
	if r.Header.Get("X-Amz-Copy-Source") != "" {
		name += " copy"
	}
	return name
}

var operations = map[string]func(*upload) error{
	"PUT":                     (*upload).putObject,
	"HEAD":                    (*upload).headObject,
	"POST uploads":            (*upload).createMultipart,
	"PUT partNumber uploadId": (*upload).putPart,
	"GET uploadId":            (*upload).listParts,
	"POST uploadId":           (*upload).completeMultipart,
	"DELETE uploadId":         (*upload).abortMultipart,
	"POST " + MissingQuery:    (*upload).missingParts,
	"PUT " + PartQuery:        (*upload).pushPart,
	"POST " + CommitQuery:     (*upload).commit,
}
