package copies

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/objects"
)

// The questions of other nodes.
const (
	// Prefix begins their paths.
	Prefix = "/builds/parts/"

	partsPath   = Prefix + "content/" // GET, followed by a digest: the content
	missingPath = Prefix + "missing"  // POST with digests: those that this node lacks
	holdPath    = Prefix + "hold/"    // POST, followed by the digest of a manifest: fetch the parts of the build that this node lacks
	fromQuery   = "from"              // of holdPath: the node that has all of it
	leftHeader  = "Muster-Parts-Left" // of the answer Accepted to holdPath: how many parts this node lacks; -1: it has not begun
)

// Bounds of questions.
const (
	holdFor    = 10 * time.Second // how long the answer to holdPath waits for the copy; fetches then in progress are still completed
	holdMost   = 2 * partWait     // in addition to holdFor: for the manifest, and for fetches in progress
	sendWait   = partWait         // for a node to take a part
	digestsMax = 16 << 20         // bytes of the digests in one question; a build has fewer
	askedWait  = 5 * time.Second  // for the answers of other nodes to missingPath
)

// ServeHTTP answers another node.
func (c *Copies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, partsPath) && r.Method == http.MethodGet:
		c.servePart(w, r, strings.TrimPrefix(r.URL.Path, partsPath))
	case strings.HasPrefix(r.URL.Path, holdPath) && r.Method == http.MethodPost:
		c.serveHold(w, r, strings.TrimPrefix(r.URL.Path, holdPath))
	case r.URL.Path == missingPath && r.Method == http.MethodPost:
		c.serveMissing(w, r)
	default:
		http.Error(w, "this node does not know the request: it may come from a later release", http.StatusNotImplemented)
	}
}

func (c *Copies) servePart(w http.ResponseWriter, r *http.Request, name string) {
	digest, err := buildfiles.ParseDigest(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	content, err := c.Store.Open(digest)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, objects.ErrDamaged):
		http.Error(w, "this node does not have the part", http.StatusNotFound)
		return
	case err != nil:
		c.Log.Error("part of a build cannot be read", "digest", digest.String(), "error", err)
		http.Error(w, "the part cannot be read", http.StatusInternalServerError)
		return
	}
	defer content.Close()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendWait)) // connections of nodes have deadlines
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, content)
}

func (c *Copies) serveHold(w http.ResponseWriter, r *http.Request, name string) {
	manifest, err := buildfiles.ParseDigest(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), c.holdFor+holdMost)
	defer cancel()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(c.holdFor + holdMost + sendWait))
	var left atomic.Int64
	left.Store(-1)
	_, err = c.copy(ctx, manifest, copying{from: r.URL.Query().Get(fromQuery), beginFor: c.holdFor, left: func(n int) { left.Store(int64(n)) }})
	full, isFull := errors.AsType[*objects.FullError](err)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
	case isFull:
		c.Log.Error("build cannot be copied to this node: no space", "manifest", manifest.String(), "error", err)
		http.Error(w, full.Reason, http.StatusInsufficientStorage)
	case errors.Is(err, errLater), ctx.Err() != nil:
		w.Header().Set(leftHeader, strconv.FormatInt(left.Load(), 10))
		w.WriteHeader(http.StatusAccepted)
	default:
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// serveMissing answers with those of the given digests whose content this node lacks. The others stay for a day.
func (c *Copies) serveMissing(w http.ResponseWriter, r *http.Request) {
	asked, err := readDigests(http.MaxBytesReader(w, r.Body, digestsMax))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	for _, d := range asked {
		if !c.Store.Has(d) {
			if _, err := w.Write(d[:]); err != nil {
				return // the asking node has gone
			}
		}
	}
}

// readDigests reads consecutive digests of 32 bytes each.
func readDigests(r io.Reader) (all []buildfiles.Digest, err error) {
	for {
		var d buildfiles.Digest
		switch _, err := io.ReadFull(r, d[:]); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, d)
	}
}

// missingElsewhere returns those of the given digests whose content no other node has, as far as the nodes answer.
func (c *Copies) missingElsewhere(ctx context.Context, digests []buildfiles.Digest) []buildfiles.Digest {
	ctx, cancel := context.WithTimeout(ctx, askedWait)
	defer cancel()
	body := make([]byte, 0, len(digests)*len(buildfiles.Digest{}))
	for _, d := range digests {
		body = append(body, d[:]...)
	}
	var counting sync.Mutex
	lackedBy := map[buildfiles.Digest]int{}
	answered := 0
	var asking sync.WaitGroup
	for _, node := range c.Net.Others() {
		asking.Go(func() {
			lacking, err := c.askMissing(ctx, node, body)
			if err != nil {
				return // the client sends what this node may have
			}
			counting.Lock()
			defer counting.Unlock()
			answered++
			for _, d := range lacking {
				lackedBy[d]++
			}
		})
	}
	asking.Wait()
	missing := make([]buildfiles.Digest, 0, len(digests))
	for _, d := range digests {
		if lackedBy[d] == answered {
			missing = append(missing, d)
		}
	}
	return missing
}

func (c *Copies) askMissing(ctx context.Context, node string, digests []byte) ([]buildfiles.Digest, error) {
	answer, err := c.ask(ctx, node, http.MethodPost, missingPath, bytes.NewReader(digests))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, refusalOf(answer)
	}
	return readDigests(io.LimitReader(answer.Body, digestsMax))
}
