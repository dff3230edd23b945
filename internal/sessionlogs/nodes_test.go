package sessionlogs

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/cluster/requests/requeststest"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

// cluster has several doors, each at its own node.
type cluster struct {
	*testing.T
	*requeststest.Cluster
	secret identity.CellSecret
	doors  map[string]*Door
	ports  map[string]*httptest.Server
}

func newCluster(t *testing.T, nodes ...string) *cluster {
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, Cluster: requeststest.New(t), secret: secret, doors: map[string]*Door{}, ports: map[string]*httptest.Server{}}
	for _, node := range nodes {
		c.open(node, 1<<20)
	}
	return c
}

func (c *cluster) open(node string, quota int64) {
	c.Helper()
	store, err := Open(Options{Dir: c.TempDir(), Quota: quota, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.Fatal(err)
	}
	d := New(Config{Store: store, Secret: c.secret, Log: slog.New(slog.DiscardHandler), Net: c.Join(node)})
	d.Net.Handle(http.HandlerFunc(d.ServeQuestion), d)
	c.doors[node], c.ports[node] = d, httptest.NewServer(d)
	d.Config.URL = c.ports[node].URL
	c.Cleanup(c.ports[node].Close)
}

func (c *cluster) do(method, url string, body io.Reader) (int, string) {
	c.Helper()
	return (&house{T: c.T}).do(method, url, body)
}

// holders returns the nodes whose disks have the archive of a session.
func (c *cluster) holders(session string) (nodes []string) {
	for node, d := range c.doors {
		if d.Store.Has(session) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// An archive is at two nodes before the agent gets its answer, and every node finds it, even if one of these two is lost.
func TestArchivesInACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b", "c")
	content := bytes.Repeat([]byte("log "), 10_000)
	for _, session := range []string{"s1", "s2", "s3", "s4"} {
		if status, text := c.do(http.MethodPut, c.doors["a"].UploadURL(session), bytes.NewReader(content)); status != http.StatusCreated {
			t.Fatalf("%s: %d %s", session, status, text)
		}
		if at := c.holders(session); len(at) != 2 || !c.doors["a"].Store.Has(session) {
			t.Errorf("%s is at %v", session, at)
		}
	}
	fetch := func(node string) {
		t.Helper()
		url, ok, err := c.doors[node].URL(t.Context(), "s1")
		if !ok || err != nil {
			t.Fatalf("URL of %s: %v, %v", node, ok, err)
		}
		if status, text := c.do(http.MethodGet, url, nil); status != http.StatusOK || text != string(content) {
			t.Errorf("from %s: %d with %d bytes", node, status, len(text))
		}
	}
	for node := range c.doors {
		fetch(node)
		if _, ok, err := c.doors[node].URL(t.Context(), "unknown"); ok || err != nil {
			t.Errorf("a log that there is nowhere: %v, %v", ok, err)
		}
	}
	c.Cut("a")
	fetch("b")
	fetch("c")
	_, ok, err := c.doors["b"].URL(t.Context(), "unknown")
	if refusal, is := errors.AsType[*domain.Refusal](err); ok || !is || refusal.Reason != domain.Overloaded || !strings.Contains(refusal.Detail, "node a") {
		t.Errorf("a log that the silent node may have: %v, %v", ok, err)
	}
}

// Without a second copy the agent gets no Created: it tries again until there is one.
func TestNoSecondCopy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	c.open("full", 10)
	c.Cut("b")
	upload := func() (int, string) {
		return c.do(http.MethodPut, c.doors["a"].UploadURL("s1"), strings.NewReader("more than ten bytes"))
	}
	if status, text := upload(); status != http.StatusServiceUnavailable || !strings.Contains(text, "node full: 507") || !strings.Contains(text, "node b: ") {
		t.Errorf("got %d %s", status, text)
	}
	c.Mend("b")
	if status, text := upload(); status != http.StatusCreated || len(c.holders("s1")) != 2 {
		t.Errorf("got %d %s; the log is at %v", status, text, c.holders("s1"))
	}
	alone := newCluster(t, "only")
	if status, text := alone.do(http.MethodPut, alone.doors["only"].UploadURL("s1"), strings.NewReader("x")); status != http.StatusCreated {
		t.Errorf("a cluster of one: %d %s", status, text)
	}
}

// A request that was forwarded is not forwarded again, so nodes that take each other for the holder do not loop; and questions are checked.
func TestQuestionsAboutArchives(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	name := nameOf("gone")
	url := c.doors["a"].url(identity.LogFetch, name, time.Hour)
	r := httptest.NewRequest(http.MethodGet, url, nil)
	w := httptest.NewRecorder()
	c.doors["a"].Net.Forward(w, r, "b", true, func(err error) { t.Error(err) })
	if w.Code != http.StatusNotFound {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	for path, want := range map[string]int{CopiesPrefix + "../x": 400, CopiesPrefix + name: 400} {
		w := httptest.NewRecorder()
		c.doors["a"].ServeQuestion(w, httptest.NewRequest(http.MethodPost, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

// The agent gets its answer even if the copy took longer than a client may pause.
func TestAnswerAfterASlowCopy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	a, b := c.doors["a"], c.doors["b"]
	var agent *http.ResponseController
	port := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent = http.NewResponseController(w)
		a.ServeHTTP(w, r)
	}))
	defer port.Close()
	a.Config.URL = port.URL
	b.Net.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = agent.SetWriteDeadline(time.Unix(1, 0)) // as if it took that long
		b.ServeQuestion(w, r)
	}), b)
	if status, text := c.do(http.MethodPut, a.UploadURL("s1"), strings.NewReader("log")); status != http.StatusCreated {
		t.Errorf("got %d %s", status, text)
	}
}
