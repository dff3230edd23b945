package sessionlogs

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/cluster/requests"
	"github.com/musterhq/muster/internal/domain"
)

// CopiesPrefix begins the paths of requests from other nodes, followed by the name of an archive: HEAD asks whether this node has it, and PUT stores it.
const CopiesPrefix = "/session-logs/copies/"

// holderWait is how long other nodes may take to answer whether they have an archive.
const holderWait = 3 * time.Second

// aloneError means that no other node accepted a copy of an archive, so the loss of this node would lose the archive.
type aloneError struct{ why []string }

func (e *aloneError) Error() string {
	return "no other node of the cluster accepts a copy of the archive: " + strings.Join(e.why, "; ")
}

// copyElsewhere copies an archive from this node to one other node. A cluster of one has no other node.
func (d *Door) copyElsewhere(ctx context.Context, name string) error {
	nodes := d.Net.Others()
	if len(nodes) == 0 {
		return nil
	}
	first := fnv.New32a()
	_, _ = io.WriteString(first, name) // distributes archives over the nodes; never fails
	e := &aloneError{}
	for i := range nodes {
		node := nodes[(int(first.Sum32()%uint32(len(nodes)))+i)%len(nodes)]
		err := d.copyTo(ctx, node, name)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e.why = append(e.why, fmt.Sprintf("node %s: %v", node, err))
	}
	return e
}

func (d *Door) copyTo(ctx context.Context, node, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*pauseMax)
	defer cancel()
	content, err := d.Store.open(name)
	if err != nil {
		return err
	}
	defer content.Close()
	info, err := content.Stat()
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, requests.URL(node, CopiesPrefix+name), io.NopCloser(content))
	if err != nil {
		return err
	}
	r.ContentLength = info.Size()
	answer, err := d.Net.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 512)) // a part of the text is better than none
		return fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

// holder returns another node that has an archive; empty: none that answers has it. The error then means that some do not answer.
func (d *Door) holder(ctx context.Context, name string) (node string, err error) {
	if d.Net == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, holderWait)
	defer cancel()
	var found sync.Mutex
	var asking sync.WaitGroup
	var silent []string
	for _, other := range d.Net.Others() {
		asking.Go(func() {
			has, err := d.ask(ctx, other, name)
			found.Lock()
			defer found.Unlock()
			switch {
			case has:
				node = other
				cancel()
			case err != nil:
				silent = append(silent, other)
			}
		})
	}
	asking.Wait()
	if node == "" && len(silent) > 0 {
		return "", domain.Refuse(domain.Overloaded, "the log of this game session may be at node %s, which does not answer", strings.Join(silent, " or node "))
	}
	return node, nil
}

func (d *Door) ask(ctx context.Context, node, name string) (has bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, requests.URL(node, CopiesPrefix+name), nil)
	if err != nil {
		return false, err
	}
	answer, err := d.Net.Do(r)
	if err != nil {
		return false, err
	}
	answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusNotFound:
		return false, nil
	}
	return false, errors.New(answer.Status)
}

// giveFromElsewhere forwards the request to a node that has the archive.
func (d *Door) giveFromElsewhere(w http.ResponseWriter, r *http.Request, name string) {
	node, err := d.holder(r.Context(), name)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case node == "":
		http.Error(w, "this log of a game session is no longer kept", http.StatusNotFound)
	default:
		d.Net.Forward(w, r, node, true, func(err error) { // the ticket protects the archive, so the connection to the client need not be private
			d.Log.Warn("log of a game session cannot be fetched from the node that has it", "node", node, "error", err)
			http.Error(w, "the node that has this log cannot be reached: try again", http.StatusServiceUnavailable)
		})
	}
}

// ServeQuestion serves the requests of other nodes.
func (d *Door) ServeQuestion(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, CopiesPrefix)
	switch {
	case !isName(name):
		http.Error(w, "want the name of an archive", http.StatusBadRequest)
	case r.Method == http.MethodHead && d.Store.has(name):
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPut && r.ContentLength >= 1 && r.ContentLength <= agentproto.LogBundleMax:
		if !enter(w, d.copies) {
			return
		}
		defer func() { <-d.copies }()
		body := &patient{body: r.Body, control: http.NewResponseController(w), until: time.Now().Add(2 * pauseMax)}
		d.taken(w, r, body, d.Store.put(name, body, r.ContentLength))
	default:
		http.Error(w, "want HEAD, or PUT with an archive of 1 byte to 66 MiB", http.StatusBadRequest)
	}
}
