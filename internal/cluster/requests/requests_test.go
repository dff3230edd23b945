package requests_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/cluster/requests"
	"github.com/musterhq/muster/internal/cluster/requests/requeststest"
)

func ask(t *testing.T, n *requests.Net, node string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, requests.URL(node, "/question"), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := n.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, strings.TrimSpace(string(text))
}

// A node answers requests once it has handlers. Nodes that are not members, and the node itself, are not asked.
func TestQuestions(t *testing.T) {
	t.Parallel()
	cluster := requeststest.New(t)
	a, b := cluster.Join("a.x_1"), cluster.Join("B")
	if status, text := ask(t, a, "B"); status != http.StatusServiceUnavailable {
		t.Errorf("before Handle: %d %s", status, text)
	}
	b.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }), http.NotFoundHandler())
	if status, text := ask(t, a, "B"); status != http.StatusOK || text != "/question" {
		t.Errorf("got %d %s", status, text)
	}
	for _, other := range []string{"c", "a.x_1"} {
		if status, text := ask(t, a, other); status != 0 || !strings.Contains(text, "not a node of the cluster") {
			t.Errorf("asked %s: %d %s", other, status, text)
		}
	}
	cluster.Cut("B")
	if status, _ := ask(t, a, "B"); status != 0 {
		t.Errorf("a node that is cut off answered %d", status)
	}
	cluster.Mend("B")
	if status, _ := ask(t, a, "B"); status != http.StatusOK {
		t.Errorf("a node that is back answered %d", status)
	}
}

// A forwarded request arrives as the client sent it, with the first node's data about the connection. A client's own statements about that are ignored.
func TestForward(t *testing.T) {
	t.Parallel()
	cluster := requeststest.New(t)
	a, b := cluster.Join("a"), cluster.Join("b")
	type seen struct {
		host, from, path, query, proxies, claimed, body string
		private, ok, forwarded                          bool
	}
	got := make(chan seen, 1)
	b.Handle(http.NotFoundHandler(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		private, ok := requests.Private(r)
		got <- seen{r.Host, r.RemoteAddr, r.URL.Path, r.URL.RawQuery, r.Header.Get("X-Forwarded-For"), r.Header.Get("Muster-Forwarded-By"), string(text), private, ok, requests.Forwarded(r)}
		w.Header().Set("Trailer", "End")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "an answer")
		w.Header().Set("End", "here")
	}))
	for _, private := range []bool{true, false} {
		r := httptest.NewRequest(http.MethodPut, "http://muster.example.com/a%20path?x=1&y=%2F", strings.NewReader("content"))
		r.RemoteAddr = "203.0.113.9:1"
		r.Header.Set("X-Forwarded-For", "192.0.2.7")
		r.Header.Set("Muster-Forwarded-By", "an attacker")
		r.Header.Set("Muster-Forwarded-From", "127.0.0.1:1")
		if _, ok := requests.Private(r); ok || requests.Forwarded(r) {
			t.Error("a client's headers make a request a forwarded one")
		}
		w := httptest.NewRecorder()
		a.Forward(w, r, "b", private, func(err error) { t.Error(err) })
		want := seen{"muster.example.com", "203.0.113.9:1", "/a path", "x=1&y=%2F", "192.0.2.7", "", "content", private, true, true}
		if s := <-got; s != want {
			t.Errorf("got  %+v\nwant %+v", s, want)
		}
		if w.Code != http.StatusTeapot || w.Body.String() != "an answer" || w.Result().Trailer.Get("End") != "here" {
			t.Errorf("answered %d %s %v", w.Code, w.Body, w.Result().Trailer)
		}
	}
	cluster.Cut("b")
	w := httptest.NewRecorder()
	failed := false
	a.Forward(w, httptest.NewRequest(http.MethodGet, "/", nil), "b", true, func(error) { failed = true })
	if !failed {
		t.Errorf("a node that is cut off answered %d", w.Code)
	}
}

// Clients that keep their forwarded requests open leave room for requests between nodes.
func TestQuestionsBesideForwards(t *testing.T) {
	t.Parallel()
	const clients = 32 // as many as forwarded requests have connections
	cluster := requeststest.New(t)
	a, b := cluster.Join("a"), cluster.Join("b")
	began, end := make(chan struct{}, clients), make(chan struct{})
	b.Handle(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-end
	}))
	var open sync.WaitGroup
	defer open.Wait()
	defer close(end)
	for range clients {
		open.Go(func() {
			a.Forward(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), "b", true, func(err error) { t.Error(err) })
		})
	}
	for range clients {
		<-began
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, requests.URL("b", "/question"), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := a.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
}

// An answer whose last part was sent long ago ends without an error.
func TestEndAfterSilence(t *testing.T) {
	t.Parallel()
	cluster := requeststest.New(t)
	a, b := cluster.Join("a"), cluster.Join("b")
	read := make(chan struct{})
	var client *http.ResponseController // of the connection of the client
	b.Handle(http.NotFoundHandler(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "part")
		_ = http.NewResponseController(w).Flush()
		<-read
		_ = client.SetWriteDeadline(time.Unix(1, 0)) // as if the time for the part was over
	}))
	port := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client = http.NewResponseController(w)
		a.Forward(w, r, "b", true, func(err error) { t.Error(err) })
	}))
	defer port.Close()
	answer, err := http.Get(port.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, err = io.ReadFull(answer.Body, make([]byte, len("part")))
	close(read)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(answer.Body); err != nil || len(rest) > 0 {
		t.Errorf("the end of the answer: %q, %v", rest, err)
	}
}
