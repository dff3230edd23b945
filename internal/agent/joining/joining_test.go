package joining

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/hostproof"
)

// A machine keeps its key when the service's answer is lost, joins once, and has another key for another service.
func TestJoin(t *testing.T) {
	dir := t.TempDir()
	var asked []hostproof.Join
	answer := http.StatusServiceUnavailable
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in hostproof.Join
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/base/agent/join" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		asked = append(asked, in)
		w.WriteHeader(answer)
		_ = json.NewEncoder(w).Encode(hostproof.Joined{Host: "h-1", Name: in.Name})
	}))
	defer service.Close()
	token, text := filepath.Join(dir, "token"), ""
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(token, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base, _ := url.Parse(service.URL + "/base/")
	config := Config{Server: base, StateDir: filepath.Join(dir, "state"), TokenFile: token, Name: "rack-1", Client: http.DefaultClient, Address: func() (string, string, error) { return "10.0.0.1", "", nil }}
	open := func() *Host {
		t.Helper()
		h, err := Open(config)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, content := range []string{"", "muster-join-1/10.0.0.1:8090/x/y/z\n", "a private key of something else\n"} { // is not sent to the service
		write(content)
		if _, err := open().Target(t.Context()); err == nil || !strings.Contains(err.Error(), token+" does not have one") || len(asked) > 0 {
			t.Fatalf("with %q: %v, asked %+v", content, err, asked)
		}
	}
	text, _, _ = hostproof.NewToken()
	write(text + "\n")
	if _, err := open().Target(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Fatalf("without an answer: %v", err)
	}
	answer = http.StatusOK
	h := open()
	if _, err := h.Target(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 2 || string(asked[0].Key) != string(asked[1].Key) || asked[1].Token != text {
		t.Fatalf("asked %+v; want the same key twice", asked)
	}
	if err := os.Remove(token); err != nil { // it is not needed any more
		t.Fatal(err)
	}
	last := int64(0)
	for i, h := range []*Host{h, h, open()} {
		target, err := h.Target(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, strings.Replace(target.Endpoint, "ws", "http", 1), nil)
		r.Header = target.Header
		p, err := hostproof.Read(r)
		if err != nil || !p.Signed(asked[0].Key) || !p.For(r, "", "") || p.Host != "h-1" || p.IP != "10.0.0.1" || r.URL.Path != "/base/agent" {
			t.Errorf("proof %+v, %v", p.Claim, err)
		}
		if i == 1 && p.At <= last {
			t.Errorf("the time %d is not after that of the connection before, %d", p.At, last)
		}
		last = p.At
	}
	if len(asked) != 2 {
		t.Errorf("joined %d times", len(asked)-1)
	}
	config.Server, _ = url.Parse("https://muster.example.com")
	if _, err := open().Target(t.Context()); !errors.Is(err, os.ErrNotExist) { // it would join there, with a token
		t.Errorf("at another service: %v", err)
	}
	if err := os.WriteFile(filepath.Join(config.StateDir, FileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(config); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged file: %v", err)
	}
}
