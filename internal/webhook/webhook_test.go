package webhook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestTell(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	status := http.StatusOK
	var heard *http.Request
	var body string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		heard, body = r, string(b)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer receiver.Close()
	m := Message{URL: receiver.URL + "/in?secret=hidden", Keys: []string{"key"}, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte("{}")}
	for _, tc := range []struct {
		status int
		want   string
	}{{200, ""}, {204, ""}, {302, "it answered 302 Found"}, {404, "it answered 404 Not Found"}, {503, "it answered 503 Service Unavailable"}} {
		status = tc.status
		if got := text(Tell(context.Background(), NewClient(1), now, &m)); got != tc.want {
			t.Errorf("status %d: got %q, want %q", tc.status, got, tc.want)
		}
		if body != "{}" || heard.URL.Path != "/in" || heard.Header.Get("Content-Type") != "application/json" || heard.Header.Get(SignatureHeader) != Sign(now, m.Body, "key") {
			t.Errorf("the receiver got %q with %v", body, heard.Header)
		}
	}
}

// While a receiver has several keys, receivers that know nothing of that see the signature by the oldest one, and others those by the later ones, too.
func TestSignaturesBySeveralKeys(t *testing.T) {
	var heard http.Header
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard = r.Header }))
	defer receiver.Close()
	now := time.Unix(1_800_000_000, 0)
	for _, keys := range [][]string{{"old"}, {"new", "old"}, {"newest", "new", "old"}} {
		if err := Tell(context.Background(), NewClient(1), now, &Message{URL: receiver.URL, Keys: keys, Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		next := ""
		if len(keys) > 1 {
			next = Sign(now, []byte("{}"), keys[:len(keys)-1]...)
		}
		if heard.Get(SignatureHeader) != Sign(now, []byte("{}"), "old") || heard.Get(NextSignatureHeader) != next || strings.Count(next, "v1=") != len(keys)-1 {
			t.Errorf("%q: %v", keys, heard)
		}
	}
}

// A receiver that never ends its answer does not hold up what is sent: after answerMax the rest is of no interest.
func TestEndlessAnswersAreCutOff(t *testing.T) {
	var written atomic.Int64
	gone := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		block := make([]byte, 32<<10)
		for {
			n, err := w.Write(block)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	defer receiver.Close()
	if err := Tell(context.Background(), NewClient(1), time.Now(), &Message{URL: receiver.URL, Keys: []string{"key"}}); err != nil {
		t.Errorf("got %v, want the status to count", err)
	}
	<-gone
	if n := written.Load(); n < answerMax {
		t.Errorf("the receiver wrote %d bytes, want more than %d", n, answerMax)
	}
}

// The head of an answer is in memory before its end is known, so a receiver does not choose its size.
func TestAttackEndlessHeads(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 20 {
			w.Header().Add("X-Large", strings.Repeat("x", answerMax/10))
		}
	}))
	defer receiver.Close()
	for name, client := range map[string]*http.Client{"operator": NewClient(1), "caller": NewTargetsClient(func() Targets { return Targets{Loopback: true} }, 1)} {
		if err := Tell(context.Background(), client, time.Now(), &Message{URL: receiver.URL, Keys: []string{"key"}}); err == nil {
			t.Errorf("receiver of the %s: a head of %d bytes is taken", name, 2*answerMax)
		}
	}
}

// A URL may hold a secret, and errors are logged.
func TestErrorsDoNotRepeatTheURL(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:1/in?secret=hidden", "http://hidden:%zz/"} {
		err := Tell(context.Background(), NewClient(1), time.Now(), &Message{URL: url, Keys: []string{"key"}})
		if err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("got %v, want an error without what the URL holds", err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Messages about players go over TLS, or do not leave the machine.
func TestCheckURL(t *testing.T) {
	for url, good := range map[string]bool{
		"https://backend.example.com/hooks?key=1": true,
		"https://10.0.0.5:8443":                   true,
		"http://127.0.0.1:7001/x":                 true,
		"http://127.9.9.9":                        true,
		"http://[::1]:7001":                       true,
		"http://localhost":                        true,
		"HTTP://localhost":                        true,

		"":                                false,
		"backend.example.com":             false,
		"https://":                        false,
		"https:///hooks":                  false,
		"https://backend.example.com/#x":  false,
		"http://backend.example.com":      false,
		"http://10.0.0.5":                 false,
		"http://0.0.0.0":                  false,
		"http://169.254.169.254/":         false,
		"http://127.0.0.1.example.com":    false,
		"http://localhost.example.com":    false,
		"http://localhost@example.com":    false,
		"http://[::ffff:169.254.169.254]": false,
		"ftp://localhost":                 false,
		"file:///etc/passwd":              false,
		"//localhost/x":                   false,
		"unix:/run/docker.sock":           false,
	} {
		if err := CheckURL(url); (err == nil) != good {
			t.Errorf("%s: %v", url, err)
		}
	}
}
